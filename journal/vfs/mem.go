package vfs

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
)

// Mem is a file system in memory for tests. Beside what a running process sees
// it keeps what the device holds, and [Mem.CrashClone] tells what is left after
// a loss of power. Faults are injected with [Mem.SetFault], [Mem.SetRoom] and
// [Mem.FlipBit].
//
// What it assumes of devices and systems, which is less than common ones give:
// a sector of 512 bytes is written whole or not at all; everything else that was
// not synced may be there wholly, partly, in any order, or not at all; a change
// of a directory is atomic, but changes may survive in any selection.
type Mem struct {
	mu    sync.Mutex
	dirs  map[string]*memDir
	locks map[string]bool
	rng   *rand.Rand
	fault func(Op) error
	room  int64 // bytes that all files together may have; negative: no bound
	ops   int
}

var _ FS = (*Mem)(nil)

// memDir is a directory: its names as a process sees them and on the device.
type memDir struct {
	now     map[string]*memInode
	device  map[string]*memInode
	pending []dirChange // from device to now
}

// dirChange sets names to files, atomically. A nil file takes the name away.
type dirChange map[string]*memInode

// NewMem returns an empty file system. The seed decides what short writes and
// failed syncs leave behind.
func NewMem(seed uint64) *Mem {
	return &Mem{
		dirs:  map[string]*memDir{},
		locks: map[string]bool{},
		rng:   rand.New(rand.NewPCG(seed, 1)),
		room:  -1,
	}
}

// dir returns the directory that holds name. The caller holds mu.
func (m *Mem) dir(op, dir string) (*memDir, error) {
	d := m.dirs[filepath.Clean(dir)]
	if d == nil {
		return nil, &fs.PathError{Op: op, Path: dir, Err: fs.ErrNotExist}
	}
	return d, nil
}

func (m *Mem) inode(op, name string) (*memDir, *memInode, error) {
	d, err := m.dir(op, filepath.Dir(name))
	if err != nil {
		return nil, nil, err
	}
	n := d.now[filepath.Base(name)]
	if n == nil {
		return d, nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	}
	return d, n, nil
}

func (d *memDir) change(c dirChange) {
	applyChange(d.now, c)
	d.pending = append(d.pending, c)
}

func applyChange(names map[string]*memInode, c dirChange) {
	for name, n := range c {
		if n == nil {
			delete(names, name)
		} else {
			names[name] = n
		}
	}
}

// Create implements [FS].
func (m *Mem) Create(name string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step(OpCreate, name, 0); err != nil {
		return nil, err
	}
	d, err := m.dir("create", filepath.Dir(name))
	if err != nil {
		return nil, err
	}
	if d.now[filepath.Base(name)] != nil {
		return nil, &fs.PathError{Op: "create", Path: name, Err: fs.ErrExist}
	}
	n := &memInode{}
	d.change(dirChange{filepath.Base(name): n})
	return &memFile{m: m, name: name, n: n, write: true}, nil
}

// Open implements [FS].
func (m *Mem) Open(name string) (File, error) { return m.open(name, false) }

// OpenWrite implements [FS].
func (m *Mem) OpenWrite(name string) (File, error) { return m.open(name, true) }

func (m *Mem) open(name string, write bool) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step(OpOpen, name, 0); err != nil {
		return nil, err
	}
	_, n, err := m.inode("open", name)
	if err != nil {
		return nil, err
	}
	return &memFile{m: m, name: name, n: n, write: write}, nil
}

// Rename implements [FS]. Both names must be in one directory.
func (m *Mem) Rename(oldName, newName string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step(OpRename, newName, 0); err != nil {
		return err
	}
	if filepath.Dir(oldName) != filepath.Dir(newName) {
		return fmt.Errorf("cannot rename %s to %s: not in one folder", oldName, newName)
	}
	d, n, err := m.inode("rename", oldName)
	if err != nil {
		return err
	}
	d.change(dirChange{filepath.Base(oldName): nil, filepath.Base(newName): n})
	return nil
}

// Remove implements [FS].
func (m *Mem) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, _, err := m.inode("remove", name)
	if err != nil {
		return err
	}
	if err := m.step(OpRemove, name, 0); err != nil {
		return err
	}
	d.change(dirChange{filepath.Base(name): nil})
	return nil
}

// List implements [FS].
func (m *Mem) List(dir string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step(OpList, dir, 0); err != nil {
		return nil, err
	}
	d, err := m.dir("list", dir)
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(d.now)), nil
}

// Stat implements [FS].
func (m *Mem) Stat(name string) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step(OpStat, name, 0); err != nil {
		return 0, err
	}
	_, n, err := m.inode("stat", name)
	if err != nil {
		return 0, err
	}
	return int64(len(n.now)), nil
}

// MkdirAll implements [FS].
func (m *Mem) MkdirAll(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step(OpMkdir, dir, 0); err != nil {
		return err
	}
	for dir = filepath.Clean(dir); m.dirs[dir] == nil; dir = filepath.Dir(dir) {
		m.dirs[dir] = &memDir{now: map[string]*memInode{}, device: map[string]*memInode{}}
	}
	return nil
}

// SyncDir implements [FS]. When a fault makes it fail, what was pending may be
// on the device or not, and stays pending.
func (m *Mem) SyncDir(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, err := m.dir("sync", dir)
	if err != nil {
		return err
	}
	if err := m.step(OpSyncDir, dir, 0); err != nil {
		return err
	}
	d.device = maps.Clone(d.now)
	d.pending = nil
	return nil
}

// Free implements [FS]. Without [Mem.SetRoom] there is 1 TiB.
func (m *Mem) Free(dir string) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step(OpFree, dir, 0); err != nil {
		return 0, err
	}
	if m.room < 0 {
		return 1 << 40, nil
	}
	return max(0, m.room-m.used()), nil
}

// used counts the bytes of all files that have a name. The caller holds mu.
func (m *Mem) used() int64 {
	var sum int64
	for _, d := range m.dirs {
		for _, n := range d.now {
			sum += int64(len(n.now))
		}
	}
	return sum
}

// Lock implements [FS].
func (m *Mem) Lock(name string) (io.Closer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step(OpLock, name, 0); err != nil {
		return nil, err
	}
	if _, err := m.dir("lock", filepath.Dir(name)); err != nil {
		return nil, err
	}
	if m.locks[name] {
		return nil, fmt.Errorf("%s: %w", name, ErrLocked)
	}
	m.locks[name] = true
	return &memLock{m: m, name: name}, nil
}

type memLock struct {
	m    *Mem
	name string
	once sync.Once
}

func (l *memLock) Close() error {
	l.once.Do(func() {
		l.m.mu.Lock()
		defer l.m.mu.Unlock()
		delete(l.m.locks, l.name)
	})
	return nil
}

// errNoSpace is what the system answers when the disk is full.
var errNoSpace error = syscall.ENOSPC
