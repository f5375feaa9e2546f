package vfs

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// CrashClone returns the file system as it would be found after a loss of power
// at this moment; rng decides what of the unsynced changes survives. Nobody
// holds a lock on the clone, and it injects no faults. The original goes on.
func (m *Mem) CrashClone(rng *rand.Rand) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	clone := NewMem(rng.Uint64())
	files := map[*memInode]*memInode{}
	for _, path := range slices.Sorted(maps.Keys(m.dirs)) {
		names := m.dirs[path].afterCrash(rng)
		d := &memDir{now: map[string]*memInode{}, device: map[string]*memInode{}}
		for _, name := range slices.Sorted(maps.Keys(names)) {
			n := names[name]
			if files[n] == nil {
				content := m.afterCrash(rng, n)
				files[n] = &memInode{now: content, device: slices.Clone(content)}
			}
			d.now[name], d.device[name] = files[n], files[n]
		}
		clone.dirs[path] = d
	}
	return clone
}

// afterCrash is a directory's names after a loss of power: half the time the
// pending changes were written in order up to some point, as by a file system
// with a journal, else in any selection.
func (d *memDir) afterCrash(rng *rand.Rand) map[string]*memInode {
	names := maps.Clone(d.device)
	upTo := rng.IntN(len(d.pending) + 1)
	anyOrder := rng.IntN(2) == 0
	for i, c := range d.pending {
		if (anyOrder && rng.IntN(2) == 0) || (!anyOrder && i < upTo) {
			applyChange(names, c)
		}
	}
	return names
}

func (m *Mem) afterCrash(rng *rand.Rand, n *memInode) []byte {
	content := slices.Clone(n.device)
	for _, c := range n.pending {
		content = m.applyPart(rng, content, c)
	}
	return content
}

// applyPart does a change wholly, up to a sector, in scattered sectors, with
// only the size changed, or not at all.
func (m *Mem) applyPart(rng *rand.Rand, content []byte, c fileChange) []byte {
	how := rng.IntN(5)
	if c.data == nil {
		if how < 3 {
			return c.applyTo(content)
		}
		return content
	}
	switch how {
	case 0:
		return content
	case 1:
		return c.applyTo(content)
	case 2: // the size is a matter of its own to most file systems
		if end := c.off + int64(len(c.data)); end > int64(len(content)) {
			content = resize(content, end)
		}
		return content
	case 3:
		cut := int64(rng.IntN(len(c.data) + 1))
		if rng.IntN(2) == 0 { // at a sector's boundary; else a device that tears sectors
			cut = max(0, (c.off+cut)/sector*sector-c.off)
		}
		return fileChange{off: c.off, data: c.data[:cut:cut]}.orNothing(content)
	}
	for at := c.off; at < c.off+int64(len(c.data)); {
		next := min((at/sector+1)*sector, c.off+int64(len(c.data)))
		if rng.IntN(2) == 0 {
			content = fileChange{off: at, data: c.data[at-c.off : next-c.off]}.applyTo(content)
		}
		at = next
	}
	return content
}

// orNothing is applyTo for a write that may be empty, which is no truncation.
func (c fileChange) orNothing(content []byte) []byte {
	if len(c.data) == 0 {
		return content
	}
	return c.applyTo(content)
}
