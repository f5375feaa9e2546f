package spool

import (
	"bytes"
	"errors"
	"io"
)

// line is one line of a file without its line feed.
type line struct {
	raw    []byte
	offset int64 // of its first byte
	long   bool  // only the first part of a line that is too long
}

// maxLine is how long a line may be for a reader. A longer one, which no writer
// makes, is taken in pieces.
const maxLine = 16 << 20

// readLines returns whole lines from offset on: at most maxLines of them, of
// about maxBytes together. next is where the following read begins; without a
// whole line it is offset. A line longer than limit comes as one piece of limit
// bytes, marked as long, and goes on at next.
func readLines(r io.ReaderAt, offset int64, maxLines, maxBytes, limit int) (lines []line, next int64, err error) {
	for size := min(maxBytes, limit); ; size = min(2*size, limit) {
		buf := make([]byte, size)
		n, err := r.ReadAt(buf, offset)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, offset, err
		}
		lines, used := splitLines(buf[:n], offset, maxLines)
		switch {
		case used > 0:
			return lines, offset + int64(used), nil
		case n < size:
			return nil, offset, nil // the writer is within its line
		case size >= limit:
			return []line{{buf, offset, true}}, offset + int64(n), nil
		}
	}
}

// splitLines cuts b, which lies at offset in its file, into at most most whole
// lines and returns how many bytes they take.
func splitLines(b []byte, offset int64, most int) (lines []line, used int) {
	for len(lines) < most {
		i := bytes.IndexByte(b[used:], '\n')
		if i < 0 {
			break
		}
		lines = append(lines, line{raw: b[used : used+i], offset: offset + int64(used)})
		used += i + 1
	}
	return lines, used
}
