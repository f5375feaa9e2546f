// Package vfs is the small part of a file system that durable storage needs,
// behind an interface, so that torn writes, failed syncs, full disks and loss
// of power can be tested. [OS] is the real one; [Mem] keeps files in memory and
// knows what would be left of them after a loss of power.
package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
)

// ErrLocked is returned, wrapped, by [FS.Lock] when another holder has the lock.
var ErrLocked = errors.New("locked by another process")

// FS is a file system. Names are paths as package filepath knows them. Errors
// about a missing or an existing file match [fs.ErrNotExist] and [fs.ErrExist].
// All methods may be called concurrently.
//
// Nothing that changes a directory (Create, Rename, Remove) survives loss of
// power before SyncDir on that directory returned nil, and it may survive
// although SyncDir was never called.
type FS interface {
	// Create makes a new file, open for reading and writing. It fails when the
	// name exists.
	Create(name string) (File, error)
	// Open opens an existing file for reading.
	Open(name string) (File, error)
	// OpenWrite opens an existing file for reading and writing.
	OpenWrite(name string) (File, error)
	// Rename gives a file a new name, replacing a file that has it.
	Rename(oldName, newName string) error
	// Remove takes the name away. Files that are open stay readable.
	Remove(name string) error
	// List returns the sorted names of what is in dir, without the path.
	List(dir string) ([]string, error)
	// Stat returns a file's size in bytes.
	Stat(name string) (size int64, err error)
	// MkdirAll makes dir and what is missing above it. It returns nil only when
	// the directories that it made are durable.
	MkdirAll(dir string) error
	// SyncDir returns nil only when all changes to dir's names are durable.
	SyncDir(dir string) error
	// Free returns how many bytes this process may still write below dir.
	Free(dir string) (int64, error)
	// Lock takes an exclusive lock on the named file, which it makes when it is
	// missing. The lock ends with Close or with the process. When another holder
	// has it, the error matches [ErrLocked].
	Lock(name string) (io.Closer, error)
}

// File is an open file. ReadAt and Size may be called while another goroutine
// writes; writers must take turns.
type File interface {
	io.ReaderAt
	// WriteAt writes p at off. After an error any part of p may have been
	// written. Nothing is durable before Sync.
	io.WriterAt
	// Truncate sets the size. It is durable after Sync.
	Truncate(size int64) error
	// Sync returns nil only when everything written before is durable. After an
	// error the state of what was written is unknown for good: the system may
	// have dropped it, and a later Sync that returns nil says nothing about it.
	Sync() error
	// Size returns the size in bytes.
	Size() (int64, error)
	io.Closer
}

// ReadFile returns the content of a small file.
func ReadFile(fsys FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	data := make([]byte, size)
	n, err := f.ReadAt(data, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("cannot read %s: %w", name, err)
	}
	return data[:n], nil
}

// WriteFileAtomic makes name hold data. It returns nil only when that is
// durable; at every other outcome, loss of power included, name holds what it
// held before or data, whole. Calls for the same name must take turns.
func WriteFileAtomic(fsys FS, name string, data []byte) error {
	temp := name + ".tmp"
	if err := fsys.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot write %s: %w", name, err)
	}
	if err := writeNew(fsys, temp, data); err != nil {
		return fmt.Errorf("cannot write %s: %w", name, errors.Join(err, ignoreMissing(fsys.Remove(temp))))
	}
	if err := fsys.Rename(temp, name); err != nil {
		return fmt.Errorf("cannot write %s: %w", name, errors.Join(err, ignoreMissing(fsys.Remove(temp))))
	}
	if err := fsys.SyncDir(filepath.Dir(name)); err != nil {
		return fmt.Errorf("cannot make %s durable: %w", name, err)
	}
	return nil
}

// writeNew makes a file that holds data and syncs it, but not its directory.
func writeNew(fsys FS, name string, data []byte) error {
	f, err := fsys.Create(name)
	if err != nil {
		return err
	}
	if _, err := f.WriteAt(data, 0); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Sync(); err != nil {
		return errors.Join(err, f.Close())
	}
	return f.Close()
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
