package segment

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"inquest/journal/vfs"
)

// asideKey names a damaged range by segment and offset.
type asideKey struct {
	id  uint64
	off int64
}

// setAside copies a damaged range to a file of its own, for people to look at,
// and reports it. It is done once a range, also over several runs.
func (l *Log) setAside(s *segmentState, from, to int64, why string) {
	key := asideKey{s.id, from}
	l.mu.Lock()
	known := l.aside[key]
	l.aside[key] = true
	l.mu.Unlock()
	name := fmt.Sprintf("%s.damaged-%d", s.path, from)
	if known || l.exists(name) {
		return
	}
	l.mu.Lock()
	l.stats.SetAside++
	l.mu.Unlock()
	err := l.copyRange(s.path, name, from, to)
	l.opts.Logger.Error("a part of the journal is damaged and set aside; the rest is kept",
		"segment", s.path, "offset", from, "bytes", to-from, "reason", why, "copy", name, "copy_error", err)
}

// saveCut keeps what is cut off although intact records are in it: they are of
// a write that was not acknowledged, unless the disk damaged just the last one.
func (l *Log) saveCut(s *segmentState, from, to int64, records int) {
	name := fmt.Sprintf("%s.cut-%d", s.path, from)
	err := l.copyRange(s.path, name, from, to)
	l.opts.Logger.Warn("the unfinished write at the journal's end has intact entries behind broken ones; it is kept beside",
		"segment", s.path, "offset", from, "bytes", to-from, "entries", records, "copy", name, "copy_error", err)
}

func (l *Log) exists(name string) bool {
	_, err := l.fs.Stat(name)
	return err == nil
}

// copyRange makes a durable file of a part of another. What cannot be read is
// zeros in it.
func (l *Log) copyRange(from, name string, start, end int64) (err error) {
	src, err := l.fs.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	if err := l.fs.Remove(name); err != nil && !isMissing(err) {
		return err
	}
	dst, err := l.fs.Create(name)
	if err != nil {
		return err
	}
	if err := copyBytes(dst, src, start, end); err != nil {
		// Half a copy would pass for the whole at the next start.
		return errors.Join(err, dst.Close(), l.fs.Remove(name))
	}
	return errors.Join(dst.Close(), l.fs.SyncDir(filepath.Dir(name)))
}

func copyBytes(dst vfs.File, src io.ReaderAt, start, end int64) error {
	win := window{r: src, end: end, lenient: true}
	for at := start; at < end; {
		b, err := win.bytes(at, int(min(windowBytes, end-at)))
		if err != nil {
			return err
		}
		if _, err := dst.WriteAt(b, at-start); err != nil {
			return err
		}
		at += int64(len(b))
	}
	return dst.Sync()
}
