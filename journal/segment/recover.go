package segment

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"inquest/journal/vfs"
)

func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// recover reads what is in the folder, mends the end of the newest segment and
// makes all of it durable.
func (l *Log) recover() error {
	names, err := l.fs.List(l.opts.Dir)
	if err != nil {
		return err
	}
	// What a killed process made and did not sync is not taken back from here on.
	if err := l.fs.SyncDir(l.opts.Dir); err != nil {
		return err
	}
	for _, name := range names {
		h, ok := parseFileName(name)
		if !ok {
			continue
		}
		s, err := l.identify(filepath.Join(l.opts.Dir, name), h)
		if err != nil {
			return err
		}
		l.segs = append(l.segs, s)
	}
	slices.SortStableFunc(l.segs, func(a, b *segmentState) int { return cmp.Compare(a.id, b.id) })
	l.dropEmpty()
	limit := uint64(noLimit)
	for i := len(l.segs) - 1; i >= 0; i-- {
		s := l.segs[i]
		if s.first > limit {
			return fmt.Errorf("%s begins with a larger number than a segment after it: put back the names and files as they were", s.path)
		}
		if err := l.recoverSegment(s, limit); err != nil {
			return fmt.Errorf("cannot recover %s: %w", s.path, err)
		}
		limit = s.first
	}
	l.nextID = 1
	if n := len(l.segs); n > 0 {
		l.nextID = l.segs[n-1].id + 1
		l.last = l.segs[n-1].last
	}
	l.reportHoles()
	return nil
}

// dropEmpty removes files at the journal's beginning that never got an entry: a
// disk that failed kept us from removing them at once. What followed them may
// have been let go of, and then they would look like a loss.
func (l *Log) dropEmpty() {
	for len(l.segs) > 1 && l.segs[0].file <= headerSize {
		if err := l.fs.Remove(l.segs[0].path); err != nil {
			l.opts.Logger.Warn("cannot remove an empty segment", "segment", l.segs[0].path, "error", err)
		}
		l.segs = l.segs[1:]
	}
}

// identify reads a segment's header, which wins over the name.
func (l *Log) identify(path string, byName segmentHeader) (*segmentState, error) {
	s := &segmentState{segmentHeader: byName, path: path, last: byName.first - 1}
	f, err := l.fs.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if s.file, err = f.Size(); err != nil {
		return nil, err
	}
	// What cannot be read is damage, and the name will do.
	win := window{r: f, end: min(headerSize, s.file), lenient: true, pause: l.opts.readPause}
	b, err := win.bytes(0, int(win.end))
	if err != nil {
		return nil, err
	}
	h, ok := decodeSegmentHeader(b)
	switch {
	case !ok && s.file > headerSize:
		l.setAside(s, 0, headerSize, "the segment's header is damaged; its file name serves instead")
	case !ok: // it was never finished: no entry was acknowledged in it
	case h.version != formatVersion:
		return nil, fmt.Errorf("%s has version %d of the format, this inquest reads version %d: use a newer inquest", path, h.version, formatVersion)
	case h.id == 0 || h.first == 0:
		return nil, fmt.Errorf("%s has an impossible header", path)
	default:
		s.segmentHeader, s.last = h, h.first-1
	}
	return s, nil
}

// recoverSegment finds the segment's entries, sets damage aside and, in the
// newest segment, mends the end.
func (l *Log) recoverSegment(s *segmentState, limit uint64) error {
	if s.file <= headerSize {
		s.size = s.file
		if limit == noLimit {
			return l.mend(s, 0, s.file)
		}
		return nil
	}
	f, err := l.fs.Open(s.path)
	if err != nil {
		return err
	}
	defer f.Close()
	sc := newScanner(f, s.file, s.segmentHeader, limit)
	sc.win.lenient, sc.win.pause = true, l.opts.readPause
	group := int64(0) // where the last group of entries begins
	for tail := tailNone; tail == tailNone; {
		rec, what, err := sc.read(0)
		switch {
		case err != nil:
			return err
		case what == foundRecord && rec.flags&flagBatch != 0:
			group = rec.off
		case what == foundRecord:
		case what == foundDamage:
			if tail, err = l.examine(s, sc); err != nil {
				return err
			}
		default:
			tail = tailVoid
		}
		if tail == tailDamaged && limit == noLimit {
			// The file is left as it is, for people to mend; readers do not go there.
			// As many numbers count as used as the lost bytes may have held.
			s.size = sc.off
			s.last = sc.next - 1 + uint64((sc.win.end-sc.off)/recordHeaderSize)
			return l.mend(s, group, s.file)
		}
	}
	s.size, s.last = sc.off, sc.next-1
	if limit == noLimit {
		return l.mend(s, group, s.size)
	}
	return nil
}

// tail says what the rest of a segment is.
type tail uint8

const (
	tailNone    tail = iota // records follow
	tailVoid                // nothing in it was acknowledged, or counts any more
	tailDamaged             // it held entries, and none can be read
)

// examine decides about bytes at the scanner's position that are no record.
// Damage is set aside, and the scanner moved behind it if records follow; an end
// that was never acknowledged is no damage.
func (l *Log) examine(s *segmentState, sc *scanner) (tail, error) {
	if sc.next == sc.limit {
		return tailVoid, nil // nothing is missing
	}
	rec, ok, err := sc.find()
	if err != nil {
		return tailNone, err
	}
	// What the disk cannot read is no unfinished write.
	if sc.limit == noLimit && sc.win.unreadable == 0 {
		if !ok {
			return tailVoid, nil
		}
		durable, records, err := sc.provenDurable(rec)
		if err != nil {
			return tailNone, err
		}
		if !durable {
			l.saveCut(s, sc.off, sc.win.end, records)
			return tailVoid, nil
		}
	}
	if !ok {
		l.setAside(s, sc.off, sc.win.end, "it holds no intact entry")
		return tailDamaged, nil
	}
	l.setAside(s, sc.off, rec.off, "it holds no intact entry")
	sc.off = rec.off
	return tailNone, nil
}

// provenDurable tells whether a record at rec or behind it says that all before
// it was durable, and counts the records. Without one, a loss of power may have
// kept the end of an unfinished write and lost its beginning.
func (s *scanner) provenDurable(rec record) (bool, int, error) {
	ahead := scanner{win: s.win, salt: s.salt, limit: s.limit, off: rec.off, next: s.next}
	ahead.win.buf = nil // the two must not share a buffer
	for n := 0; ; {
		rec, what, err := ahead.read(0)
		if err != nil {
			return false, n, err
		}
		switch what {
		case foundRecord:
			n++
			if rec.flags&flagBatch != 0 {
				return true, n, nil
			}
			continue
		case foundDamage:
			next, ok, err := ahead.find()
			if err != nil {
				return false, n, err
			}
			if ok {
				ahead.off = next.off
				continue
			}
		}
		return false, n, nil
	}
}

// mend cuts off what lies behind the last entry of the newest segment, and
// makes the last group durable: it may have been written and not synced, or a
// sync of it may have failed, after which syncing alone would do nothing.
func (l *Log) mend(s *segmentState, group, end int64) error {
	f, err := l.fs.OpenWrite(s.path)
	if err != nil {
		return err
	}
	defer f.Close()
	if s.file > end {
		l.opts.Logger.Warn("the last write to the journal was unfinished and is cut off; nothing of it was acknowledged", "segment", s.path, "offset", end, "bytes", s.file-end)
		l.stats.Healed++
		// A file that cannot be cut is left: the next segment makes the rest void.
		if err := f.Truncate(end); err != nil {
			l.opts.Logger.Warn("cannot cut off an unfinished write", "segment", s.path, "error", err)
		} else {
			s.file = end
		}
	}
	if err := rewrite(f, group, s.size); err != nil {
		if !vfs.IsNoSpace(err) && !errors.Is(err, errReread) {
			return err
		}
		l.opts.Logger.Warn("cannot write the last entries again to be sure of them", "segment", s.path, "error", err)
	}
	return l.sync(f)
}

// errReread marks a failure to read what was just read.
var errReread = errors.New("cannot read again")

// rewrite writes the bytes of f between from and to once more.
func rewrite(f vfs.File, from, to int64) error {
	buf := make([]byte, min(1<<20, to-from))
	for from < to {
		p := buf[:min(int64(len(buf)), to-from)]
		if n, err := f.ReadAt(p, from); n < len(p) {
			return fmt.Errorf("%w: %w", errReread, err)
		}
		if _, err := f.WriteAt(p, from); err != nil {
			return err
		}
		from += int64(len(p))
	}
	return nil
}

// reportHoles tells of entries that no segment holds.
func (l *Log) reportHoles() {
	for i := 1; i < len(l.segs); i++ {
		if missing := l.segs[i-1].last + 1; missing < l.segs[i].first {
			l.opts.Logger.Error("entries are missing from the journal", "first", missing, "last", l.segs[i].first-1)
		}
	}
}
