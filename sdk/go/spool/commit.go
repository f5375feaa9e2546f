package spool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// file is what a writer needs of a file. Tests put faults behind it.
type file interface {
	Write([]byte) (int, error)
	Sync() error
	Truncate(size int64) error
	Close() error
}

// create makes a file with its header. It is locked before it has its name, so
// that a shipper never takes it for one whose writer is dead.
func create(dir, stem string, header []byte) (_ file, path string, err error) {
	tmp := filepath.Join(dir, stem+tempSuffix)
	path = filepath.Join(dir, stem+spoolSuffix)
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, "", err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(tmp)
			os.Remove(path)
		}
	}()
	if ok, err := tryLock(f); err != nil || !ok {
		return nil, "", errors.Join(err, errors.New("cannot lock the new file"))
	}
	if _, err := f.Write(header); err != nil {
		return nil, "", err
	}
	if err := f.Sync(); err != nil {
		return nil, "", err
	}
	if err := os.Rename(tmp, path); err != nil {
		return nil, "", err
	}
	return f, path, syncDir(dir)
}

// group is the records that become durable with one sync.
type group struct {
	buf  []byte
	ends []int         // where each record's line ends in buf
	lead chan struct{} // wakes one member to commit the group
	done chan struct{} // closed when durable and err are final

	durable int // so many bytes of buf are durable
	err     error
}

func newGroup() *group {
	return &group{lead: make(chan struct{}, 1), done: make(chan struct{})}
}

// add appends a record's line and returns where it ends.
func (g *group) add(record []byte) int {
	g.buf = appendLine(g.buf, record)
	g.ends = append(g.ends, len(g.buf))
	return len(g.buf)
}

// result returns what has become of the record whose line ends at end.
func (g *group) result(end int) error {
	if end <= g.durable {
		return nil
	}
	return g.err
}

// whole returns how many records lie within the first n bytes, and their bytes.
func (g *group) whole(n int) (records, size int) {
	for _, end := range g.ends {
		if end > n {
			break
		}
		records, size = records+1, end
	}
	return records, size
}

// commit makes g durable, or says for how much of it that failed. Only one caller
// is here at a time.
func (w *Writer) commit(g *group) {
	g.durable, g.err = w.write(g)
	n, _ := g.whole(g.durable)
	w.records.Add(uint64(n))
	w.bytes.Add(uint64(g.durable))
	if g.err != nil {
		lost := uint64(len(g.ends) - n)
		w.failed.Add(lost)
		if errors.Is(g.err, ErrFull) || errors.Is(g.err, syscall.ENOSPC) || errors.Is(g.err, syscall.EDQUOT) {
			w.full.Add(lost)
		}
	}
	close(g.done)
}

// write returns how many bytes of g, always whole lines, are durable.
func (w *Writer) write(g *group) (durable int, err error) {
	if err := w.makeRoom(int64(len(g.buf))); err != nil {
		return 0, err
	}
	if err := w.ready(); err != nil {
		return 0, err
	}
	n, werr := w.file.Write(g.buf)
	_, whole := g.whole(n)
	if whole > 0 {
		if err := w.file.Sync(); err != nil {
			// After a failed sync the kernel may take the pages for clean, so that
			// a second sync would lie. The file is given up as it is.
			w.drop()
			return 0, fmt.Errorf("cannot sync the spool: %w", err)
		}
		w.syncs.Add(1)
		w.size += int64(whole)
		w.total += int64(whole)
	}
	if werr != nil {
		// The torn line has to go, for the next would be glued to it. What is
		// before it stays, a shipper may have read it.
		if err := w.file.Truncate(w.size); err != nil {
			w.drop()
		}
		return whole, fmt.Errorf("cannot write to the spool: %w", werr)
	}
	return whole, nil
}

// drop closes the file; the next record begins another.
func (w *Writer) drop() {
	f := w.file
	w.file = nil
	if err := f.Close(); err != nil {
		w.opts.OnError(fmt.Errorf("cannot close the spool's file %s: %w", w.path, err))
	}
}

// ready sees to an open file that may still grow.
func (w *Writer) ready() error {
	now := w.opts.now()
	if w.file != nil && (w.size >= w.opts.MaxFileBytes || now.Sub(w.begun) >= w.opts.MaxFileAge) {
		w.drop()
		if err := w.survey(false); err != nil {
			w.opts.OnError(err)
		}
	}
	if w.file != nil {
		return nil
	}
	w.number++
	f, path, err := w.opts.open(w.dir, newStem(now, w.number), w.header)
	if err != nil {
		return fmt.Errorf("cannot begin a file in the spool: %w", err)
	}
	w.file, w.path, w.begun, w.size = f, path, now, int64(len(w.header))
	w.total += w.size
	return nil
}

// makeRoom refuses what would pass the folder's limit. The folder is looked at
// anew at most once a second, because a shipper elsewhere makes room too.
func (w *Writer) makeRoom(n int64) error {
	if w.total+n <= w.opts.MaxTotalBytes {
		return nil
	}
	if now := w.opts.now(); now.Sub(w.listed) >= time.Second {
		if err := w.survey(false); err != nil {
			return err
		}
	}
	if w.total+n > w.opts.MaxTotalBytes {
		return fmt.Errorf("%w: %d of %d bytes in %s; see that its shipper reaches the server", ErrFull, w.total, w.opts.MaxTotalBytes, w.dir)
	}
	return nil
}

// survey removes shipped files that are old or in the way, and counts what the
// folder holds. With mend it also sets torn tails aside.
func (w *Writer) survey(mend bool) error {
	w.listed = w.opts.now()
	if mend {
		files, err := list(w.dir)
		if err != nil {
			return err
		}
		for _, f := range events(files) {
			torn, err := repair(f.path)
			if torn != nil {
				w.torn.Add(1)
				w.opts.OnError(torn)
			}
			if err != nil {
				w.opts.OnError(fmt.Errorf("cannot repair the spool: %w", err))
			}
		}
	}
	total, err := sweep(w.dir, w.listed, w.opts.Keep, w.opts.MaxTotalBytes)
	w.total = total
	return err
}
