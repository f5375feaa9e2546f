package spool

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// TornError says that a writer died within a line. Nobody was told that the line
// was written. Its bytes are kept in Aside.
type TornError struct {
	File  string // the spool file
	Aside string // where its tail is now
	Bytes int
}

// Error returns what happened and where the bytes are.
func (e *TornError) Error() string {
	return fmt.Sprintf("the last %d bytes of %s are not a whole line, its writer died within it; they are kept in %s", e.Bytes, e.File, e.Aside)
}

// openFinal opens a file that nobody writes any more, and locks it. It returns
// nil when a writer has it or when it is gone.
func openFinal(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if ok, err := tryLock(f); err != nil || !ok {
		f.Close()
		return nil, err
	}
	return f, nil
}

// repair sets aside the torn tail of one file, unless somebody writes it. A tail
// longer than a line can be is kept in its first part.
func repair(path string) (*TornError, error) {
	f, err := openFinal(path)
	if f == nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	end, err := lastLineEnd(f, info.Size())
	if err != nil || end == info.Size() {
		return nil, err
	}
	tail := make([]byte, min(info.Size()-end, maxLine))
	if _, err := f.ReadAt(tail, end); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	aside, err := setAside(path, []line{{raw: tail, offset: end}}, "torn: the writer died within the line")
	if err != nil {
		return nil, err
	}
	if err := f.Truncate(end); err != nil {
		return nil, err
	}
	return &TornError{path, aside, len(tail)}, f.Sync()
}

// lastLineEnd returns the offset behind the last line feed in the first size
// bytes of r.
func lastLineEnd(r io.ReaderAt, size int64) (int64, error) {
	buf := make([]byte, 64<<10)
	for size > 0 {
		n := min(int64(len(buf)), size)
		if _, err := r.ReadAt(buf[:n], size-n); err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if i := bytes.LastIndexByte(buf[:n], '\n'); i >= 0 {
			return size - n + int64(i) + 1, nil
		}
		size -= n
	}
	return 0, nil
}
