package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"inquest/store"
)

// DefaultMinFreeBytes is the room that the stores leave on a disk.
const DefaultMinFreeBytes = 256 << 20

// FreeBytes tells how many bytes an unprivileged process may still write to the
// file system that holds dir.
type FreeBytes func(dir string) (uint64, error)

func statfsFree(dir string) (uint64, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return st.Bavail * uint64(st.Bsize), nil
}

// diskGuard refuses work while a disk has too little room. It keeps no state,
// so work goes on by itself when there is room again.
type diskGuard struct {
	dir  string
	min  uint64
	free FreeBytes
}

func newDiskGuard(dir string, minFree int64, free FreeBytes) diskGuard {
	if minFree == 0 {
		minFree = DefaultMinFreeBytes
	}
	if free == nil {
		free = statfsFree
	}
	return diskGuard{dir: dir, min: uint64(max(minFree, 0)), free: free}
}

// mayAppend returns nil when new data may be taken.
func (g diskGuard) mayAppend() error { return g.need(g.min) }

// mayFlush returns nil when data that was taken before may be written out. It
// needs less room than new data, since it is what the reserve is for.
func (g diskGuard) mayFlush() error { return g.need(g.min / 4) }

func (g diskGuard) need(want uint64) error {
	free, err := g.free(g.dir)
	if err != nil {
		return fmt.Errorf("%w: cannot determine free space of %s: %w", store.ErrUnavailable, g.dir, err)
	}
	if free < want {
		return fmt.Errorf("%w: %d MiB free at %s, at least %d MiB are needed: free some space, or lower the retention",
			store.ErrUnavailable, free>>20, g.dir, want>>20)
	}
	return nil
}

// prepareDir makes dir and finds out whether this process can write to it, as
// the storage libraries panic when they cannot.
func prepareDir(dir string) error {
	if dir == "" {
		return errors.New("no data folder given: set Dir")
	}
	if err := makeDir(dir); err != nil {
		return fmt.Errorf("cannot make data folder: %w", err)
	}
	probe := filepath.Join(dir, ".probe")
	if err := writeFileSync(probe, []byte("x")); err != nil {
		return fmt.Errorf("cannot write to data folder: %w", err)
	}
	if err := os.Remove(probe); err != nil {
		return fmt.Errorf("cannot write to data folder: %w", err)
	}
	return syncDir(dir)
}

// makeDir makes dir and those above it durably.
func makeDir(dir string) error {
	_, err := os.Stat(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(dir)
	if err := makeDir(parent); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(parent)
}

// probeLock returns an error when another process, or another store of this
// process, holds the lock file at path.
func probeLock(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("%s is locked: another process uses this data folder: %w", path, err)
	}
	return syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
}

func writeFileSync(path string, data []byte) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(data); err != nil {
		return err
	}
	return f.Sync()
}

// replaceFile puts data at path so that after a crash either the old or the new
// content is there, and after its return the new one.
func replaceFile(path string, data []byte) error {
	tmp := path + ".tmp"
	if err := writeFileSync(tmp, data); err != nil {
		return err
	}
	if err := os.Rename(tmp, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes the entries of dir durable, syncFile a file's content. On Linux
// a sync covers all writes to the file, by whichever descriptor they came.
func syncDir(dir string) error { return syncFile(dir) }

func syncFile(path string) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return f.Sync()
}
