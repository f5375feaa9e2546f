package segment

import (
	"errors"
	"io"
	"time"
)

const (
	windowBytes = 256 << 10
	// readBlock is what a disk loses at once when it cannot read.
	readBlock = 4096

	maxReadRetries = 10
)

// window reads a file in large pieces. It never reads beyond end, because what
// lies there may still change.
type window struct {
	r    io.ReaderAt
	end  int64
	buf  []byte
	base int64
	// lenient has blocks that cannot be read taken for zeros, which are never a
	// valid record. unreadable counts their bytes.
	lenient    bool
	unreadable int64
	retries    int
	pause      time.Duration // between tries
}

// bytes returns n bytes at off, valid until the next call. It returns
// [io.ErrUnexpectedEOF] when they do not lie before end.
func (w *window) bytes(off int64, n int) ([]byte, error) {
	if off < 0 || off+int64(n) > w.end {
		return nil, io.ErrUnexpectedEOF
	}
	if off < w.base || off+int64(n) > w.base+int64(len(w.buf)) {
		if err := w.fill(off, max(n, int(min(windowBytes, w.end-off)))); err != nil {
			return nil, err
		}
	}
	at := off - w.base
	return w.buf[at : at+int64(n)], nil
}

// from returns at least n bytes at off and what else is at hand behind them.
func (w *window) from(off int64, n int) ([]byte, error) {
	if _, err := w.bytes(off, n); err != nil {
		return nil, err
	}
	return w.buf[off-w.base:], nil
}

// forget makes the next call read from the file again.
func (w *window) forget() { w.buf = w.buf[:0] }

func (w *window) fill(off int64, n int) error {
	if cap(w.buf) < n || cap(w.buf) > 16*windowBytes && n <= windowBytes {
		w.buf = make([]byte, n)
	}
	w.base, w.buf = off, w.buf[:n]
	got, err := w.r.ReadAt(w.buf, off)
	if got == n {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if !w.lenient {
		w.forget()
		return err
	}
	for at := 0; at < n; at += readBlock {
		block := w.buf[at:min(at+readBlock, n)]
		if got := w.insist(block, off+int64(at)); got < len(block) {
			clear(block[got:])
			w.unreadable += int64(len(block) - got)
		}
	}
	return nil
}

// insist reads a block and tries again a few times in the window's life: an
// error that passes must not cost entries.
func (w *window) insist(block []byte, off int64) int {
	for {
		got, _ := w.r.ReadAt(block, off)
		if got == len(block) || w.retries >= maxReadRetries {
			return got
		}
		w.retries++
		time.Sleep(w.pause)
	}
}
