package vfs

import (
	"fmt"
	"io"
	"io/fs"
	"slices"
)

// sector is the size of what a device writes atomically.
const sector = 512

// memInode is a file: its content as processes see it (the page cache), the
// content on the device, and the changes on the way there.
type memInode struct {
	now     []byte
	device  []byte
	pending []fileChange
}

// fileChange is a write of data at off, or, when data is nil, a truncation to
// off bytes.
type fileChange struct {
	off  int64
	data []byte
}

// applyTo does the change on content.
func (c fileChange) applyTo(content []byte) []byte {
	if c.data == nil {
		return resize(content, c.off)
	}
	if end := c.off + int64(len(c.data)); end > int64(len(content)) {
		content = resize(content, end)
	}
	copy(content[c.off:], c.data)
	return content
}

func resize(content []byte, size int64) []byte {
	if size <= int64(len(content)) {
		return content[:size]
	}
	old := len(content)
	content = slices.Grow(content, int(size)-old)[:size]
	clear(content[old:])
	return content
}

// memFile is an open file of a [Mem].
type memFile struct {
	m      *Mem
	name   string
	n      *memInode
	write  bool
	closed bool
}

func (f *memFile) usable(op string, write bool) error {
	if f.closed {
		return &fs.PathError{Op: op, Path: f.name, Err: fs.ErrClosed}
	}
	if write && !f.write {
		return &fs.PathError{Op: op, Path: f.name, Err: fs.ErrPermission}
	}
	return nil
}

// ReadAt implements [File].
func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.usable("read", false); err != nil {
		return 0, err
	}
	if err := f.m.step(OpRead, f.name, len(p)); err != nil {
		return 0, err
	}
	if off >= int64(len(f.n.now)) {
		return 0, io.EOF
	}
	n := copy(p, f.n.now[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt implements [File]. A fault or a full disk may leave a part of p.
func (f *memFile) WriteAt(p []byte, off int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.usable("write", true); err != nil {
		return 0, err
	}
	err := f.m.step(OpWrite, f.name, len(p))
	n := len(p)
	if err != nil {
		n = f.m.rng.IntN(len(p) + 1)
	} else if f.m.room >= 0 {
		grow := off + int64(len(p)) - int64(len(f.n.now))
		if over := grow - (f.m.room - f.m.used()); grow > 0 && over > 0 {
			n = int(max(0, int64(len(p))-over))
			err = fmt.Errorf("write %s: %w", f.name, errNoSpace)
		}
	}
	if n > 0 {
		f.n.change(fileChange{off: off, data: slices.Clone(p[:n])})
	}
	return n, err
}

// Truncate implements [File].
func (f *memFile) Truncate(size int64) error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.usable("truncate", true); err != nil {
		return err
	}
	if err := f.m.step(OpTruncate, f.name, 0); err != nil {
		return err
	}
	f.n.change(fileChange{off: size})
	return nil
}

func (n *memInode) change(c fileChange) {
	n.now = c.applyTo(n.now)
	n.pending = append(n.pending, c)
}

// Sync implements [File]. When a fault makes it fail, each pending change is on
// the device wholly, in part, or not at all, and the system believes that it
// has written them: a later Sync does not try again.
func (f *memFile) Sync() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.usable("sync", false); err != nil {
		return err
	}
	err := f.m.step(OpSync, f.name, 0)
	for _, c := range f.n.pending {
		if err != nil {
			f.n.device = f.m.applyPart(f.m.rng, f.n.device, c)
		} else {
			f.n.device = c.applyTo(f.n.device)
		}
	}
	f.n.pending = nil
	return err
}

// Size implements [File].
func (f *memFile) Size() (int64, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.usable("stat", false); err != nil {
		return 0, err
	}
	return int64(len(f.n.now)), nil
}

// Close implements [File]. It syncs nothing.
func (f *memFile) Close() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.usable("close", false); err != nil {
		return err
	}
	f.closed = true
	return nil
}
