package event

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.opentelemetry.io/collector/pdata/plog"
)

// MaxLineSize is the default limit on a line of JSON, in bytes.
const MaxLineSize = 1 << 20

// Line is one line of a stream of events.
type Line struct {
	Number int64 // counted from 1, blank lines too
	Offset int64 // of the first byte in the stream
	Size   int64 // bytes without the end of the line
	// Text is valid until the next line is read. Of a line above the limit it is
	// the beginning.
	Text []byte
}

// ReadLines calls take for each line of r that is not blank, without its end
// (LF, CRLF). A byte order mark at the start is skipped. The last line needs no
// end, or half of one (CR). A line of more than limit bytes comes with a reason and with its first
// limit bytes only; the lines after it come as usual. limit 0 stands for
// [MaxLineSize].
//
// It stops at the first error of take, which it returns as it is. When r fails,
// what came of the line that it broke off in is not taken.
func ReadLines(r io.Reader, limit int, take func(Line, *Reason) error) error {
	if limit <= 0 {
		limit = MaxLineSize
	}
	in := bufio.NewReaderSize(r, 64<<10)
	if mark, err := in.Peek(3); err == nil && string(mark) == "\xef\xbb\xbf" {
		_, _ = in.Discard(len(mark)) // it has been read
	}
	lr := lineReader{in: in, limit: limit}
	for {
		line, err := lr.next()
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("cannot read line %d of the events: %w; the lines before it were taken", line.Number, err)
		}
		if len(bytes.TrimSpace(line.Text)) > 0 || line.Size > int64(limit) {
			if takeErr := take(line, sizeOf(line, limit)); takeErr != nil {
				return takeErr
			}
		}
		if err != nil {
			return nil
		}
	}
}

func sizeOf(line Line, limit int) *Reason {
	if line.Size <= int64(limit) {
		return nil
	}
	return &Reason{Code: CodeSize, Detail: fmt.Sprintf("line %d has %d bytes, above the limit of %d: send large content apart and its hash here", line.Number, line.Size, limit)}
}

type lineReader struct {
	in     *bufio.Reader
	limit  int
	buf    []byte
	number int64
	offset int64
}

// next reads a line. An error comes with what was read before it.
func (l *lineReader) next() (Line, error) {
	l.number++
	line := Line{Number: l.number, Offset: l.offset}
	l.buf = l.buf[:0]
	var last [2]byte // the bytes that a line can end with
	for {
		part, err := l.in.ReadSlice('\n')
		line.Size += int64(len(part))
		if n := len(part); n >= 2 {
			last = [2]byte(part[n-2:])
		} else if n == 1 {
			last = [2]byte{last[1], part[0]}
		}
		// Two bytes more than the limit leave room for the end of the line.
		l.buf = append(l.buf, part[:min(len(part), l.limit+2-len(l.buf))]...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		l.offset += line.Size
		switch {
		case last == [2]byte{'\r', '\n'}:
			line.Size -= 2
		case last[1] == '\n', errors.Is(err, io.EOF) && last[1] == '\r':
			line.Size--
		}
		line.Text = l.buf[:min(int64(len(l.buf)), line.Size, int64(l.limit))]
		return line, err
	}
}

// FromJSON turns a line of JSON into a log record that [Validator.Admit] takes,
// and returns the service that the event names, for its resource; it is empty
// where the event names none. line is copied. Text that is no JSON object is
// refused.
func FromJSON(line []byte) (lr plog.LogRecord, service string, why *Reason) {
	text := strings.TrimSpace(string(line))
	service, ok := serviceIn(text)
	if !ok {
		view, why := jsonView(text)
		if why != nil {
			return plog.LogRecord{}, "", why
		}
		service, _ = view[rolePaths[roleService]].(string)
	}
	lr = plog.NewLogRecord()
	lr.Body().SetStr(text)
	return lr, service, nil
}

// serviceIn reads the member service of a JSON object. It returns false when
// encoding/json has to be asked.
func serviceIn(text string) (service string, ok bool) {
	c, ok := newScanner(text)
	if !ok || !c.take('{') {
		return "", false
	}
	found := false
	for more := !c.take('}'); more; {
		name, ok := c.name()
		if !ok {
			return "", false
		}
		if name == rolePaths[roleService] && c.peek() == '"' {
			if found {
				return "", false
			}
			found = true
			if service, ok = c.text(); !ok {
				return "", false
			}
		} else if !c.skip(1) {
			return "", false
		}
		switch c.peek() {
		case ',':
		case '}':
			more = false
		default:
			return "", false
		}
		c.i++
	}
	return service, c.peek() == 0 && c.i == len(text)
}

// Batch gathers lines of JSON as OTLP logs, one resource for each service.
type Batch struct {
	logs     plog.Logs
	services map[string]plog.LogRecordSlice
}

// NewBatch returns an empty batch.
func NewBatch() *Batch {
	return &Batch{logs: plog.NewLogs(), services: map[string]plog.LogRecordSlice{}}
}

// Add appends a line, or refuses it.
func (b *Batch) Add(line []byte) *Reason {
	lr, service, why := FromJSON(line)
	if why != nil {
		return why
	}
	records, ok := b.services[service]
	if !ok {
		rl := b.logs.ResourceLogs().AppendEmpty()
		if service != "" {
			rl.Resource().Attributes().PutStr(attributeService, service)
		}
		records = rl.ScopeLogs().AppendEmpty().LogRecords()
		b.services[service] = records
	}
	lr.MoveTo(records.AppendEmpty())
	return nil
}

// Logs returns what was added and empties the batch.
func (b *Batch) Logs() plog.Logs {
	full := b.logs
	*b = *NewBatch()
	return full
}
