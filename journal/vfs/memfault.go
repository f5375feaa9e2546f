package vfs

import (
	"slices"
	"sync/atomic"
)

// OpKind is a kind of call to a [Mem] that can fail.
type OpKind uint8

// Kinds of calls.
const (
	OpCreate OpKind = iota
	OpOpen
	OpRename
	OpRemove
	OpList
	OpStat
	OpMkdir
	OpSyncDir
	OpFree
	OpLock
	OpRead
	OpWrite
	OpTruncate
	OpSync
)

// Op is a call to a [Mem] that is about to be done.
type Op struct {
	Kind OpKind
	Name string // file or directory
	N    int    // 1 for the first call, and so on
	Size int    // bytes to read or write
}

// SetFault has f asked before each call; when it returns an error, the call
// fails with it. A write that fails so leaves a part of its bytes, a sync that
// fails so loses changes for good. nil ends the faults. f must not call m.
func (m *Mem) SetFault(f func(Op) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fault = f
}

// Ops returns how many calls there were.
func (m *Mem) Ops() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ops
}

// step counts a call and asks for a fault. The caller holds mu.
func (m *Mem) step(kind OpKind, name string, size int) error {
	m.ops++
	if m.fault == nil {
		return nil
	}
	return m.fault(Op{Kind: kind, Name: name, N: m.ops, Size: size})
}

// FailNth returns a fault for [Mem.SetFault]: of the calls of the given kinds
// (all when none is given) the n-th and the count-1 after it fail with err.
func FailNth(n, count int, err error, kinds ...OpKind) func(Op) error {
	var seen atomic.Int64
	return func(op Op) error {
		if len(kinds) > 0 && !slices.Contains(kinds, op.Kind) {
			return nil
		}
		i := int(seen.Add(1))
		if i >= n && i < n+count {
			return err
		}
		return nil
	}
}

// SetRoom bounds the bytes that all files may have together. A write beyond it
// is done in part and fails with ENOSPC. A negative bound is none.
func (m *Mem) SetRoom(bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.room = bytes
}

// Used returns the bytes of all files.
func (m *Mem) Used() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used()
}

// FlipBit changes one bit of a file, in memory and on the device, as a failing
// disk does. It does nothing beyond the file's end.
func (m *Mem) FlipBit(name string, off int64, bit uint) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, n, err := m.inode("flip", name)
	if err != nil {
		return err
	}
	for _, content := range [][]byte{n.now, n.device} {
		if off < int64(len(content)) {
			content[off] ^= 1 << (bit % 8)
		}
	}
	return nil
}
