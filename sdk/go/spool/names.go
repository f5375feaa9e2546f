package spool

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	spoolSuffix = ".spool"
	posSuffix   = ".pos"
	tempSuffix  = ".tmp"
	asideFolder = "aside"
	lockName    = "watchdog.lock"
)

// newStem returns a file name without suffix that no other file has. Names sort
// by time.
func newStem(t time.Time, number int) string {
	var r [4]byte
	rand.Read(r[:]) // never fails
	return fmt.Sprintf("%016x-%d-%s-%d", t.UnixNano(), os.Getpid(), hex.EncodeToString(r[:]), number)
}

// entry is one file of a spool.
type entry struct {
	path     string
	size     int64
	modified time.Time
}

// stem returns the file's name without suffix.
func (e entry) stem() string { return strings.TrimSuffix(filepath.Base(e.path), spoolSuffix) }

// list returns the files of dir, the oldest name first. A folder that does not
// exist is empty.
func list(dir string) ([]entry, error) {
	names, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot list the spool: %w", err)
	}
	var out []entry
	for _, n := range names {
		if !n.Type().IsRegular() {
			continue
		}
		info, err := n.Info()
		if err != nil {
			continue // removed between the two calls
		}
		out = append(out, entry{filepath.Join(dir, n.Name()), info.Size(), info.ModTime()})
	}
	slices.SortFunc(out, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	return out, nil
}

// events returns those of files that hold events.
func events(files []entry) []entry {
	return slices.DeleteFunc(slices.Clone(files), func(e entry) bool { return filepath.Ext(e.path) != spoolSuffix })
}

// syncDir makes the names in dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// replaceFile stores b so that a crash leaves the old or the new file, whole.
func replaceFile(path string, b []byte) error {
	tmp := path + ".new"
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		os.Remove(tmp)
	}
	return err
}
