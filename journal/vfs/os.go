//go:build unix

package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const (
	dirMode  fs.FileMode = 0o750
	fileMode fs.FileMode = 0o640
)

// OS is the machine's file system. Its zero value is ready.
type OS struct{}

var _ FS = OS{}

type osFile struct{ *os.File }

// Create implements [FS].
func (OS) Create(name string) (File, error) {
	return wrapFile(os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, fileMode))
}

// Open implements [FS].
func (OS) Open(name string) (File, error) { return wrapFile(os.Open(name)) }

// OpenWrite implements [FS].
func (OS) OpenWrite(name string) (File, error) { return wrapFile(os.OpenFile(name, os.O_RDWR, 0)) }

func wrapFile(f *os.File, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// Rename implements [FS].
func (OS) Rename(oldName, newName string) error { return os.Rename(oldName, newName) }

// Remove implements [FS].
func (OS) Remove(name string) error { return os.Remove(name) }

// List implements [FS].
func (OS) List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// Stat implements [FS].
func (OS) Stat(name string) (int64, error) {
	fi, err := os.Stat(name)
	if err != nil {
		return 0, err
	}
	return fi.Size(), nil
}

// MkdirAll implements [FS].
func (o OS) MkdirAll(dir string) error {
	fi, err := os.Stat(dir)
	if err == nil {
		if !fi.IsDir() {
			return fmt.Errorf("cannot make the folder %s: a file of that name is in the way", dir)
		}
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(filepath.Clean(dir))
	if err := o.MkdirAll(parent); err != nil {
		return err
	}
	if err := os.Mkdir(dir, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return o.SyncDir(parent)
}

// SyncDir implements [FS].
func (OS) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Free implements [FS]: what is left for users other than root.
func (OS) Free(dir string) (int64, error) {
	var st unix.Statfs_t
	for {
		err := unix.Statfs(dir, &st)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EINTR) {
			return 0, fmt.Errorf("cannot ask for the free room below %s: %w", dir, err)
		}
	}
	return int64(st.Bavail) * int64(st.Bsize), nil //nolint:unconvert // types differ between systems
}

// Lock implements [FS] with flock(2).
func (OS) Lock(name string) (io.Closer, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if errors.Is(err, unix.EINTR) {
			continue
		}
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s: %w", name, ErrLocked)
		}
		return nil, fmt.Errorf("cannot lock %s: %w", name, err)
	}
}

// Size implements [File].
func (f osFile) Size() (int64, error) {
	fi, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return fi.Size(), nil
}
