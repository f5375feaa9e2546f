package spool

import (
	"bytes"
	"testing"
)

// FuzzReadLines reads any bytes as a spool file: nothing is passed over, nothing
// comes twice, and what decodes encodes to the same line.
func FuzzReadLines(f *testing.F) {
	whole := appendLine(appendLine(nil, []byte(`{"inquest.spool":1}`)), []byte(`{"a":1}`))
	f.Add(whole, uint16(2), uint16(16), uint16(64))
	f.Add(whole[:len(whole)-3], uint16(100), uint16(1000), uint16(2000))
	f.Add([]byte("\n\n00000000 \n"), uint16(1), uint16(1), uint16(1))
	f.Fuzz(func(t *testing.T, file []byte, maxLines, maxBytes, limit uint16) {
		if maxLines == 0 || maxBytes == 0 || limit == 0 {
			return
		}
		var again []byte
		at := int64(0)
		for {
			lines, next, err := readLines(bytes.NewReader(file), at, int(maxLines), int(maxBytes), int(limit))
			if err != nil {
				t.Fatal(err)
			}
			if len(lines) > int(maxLines) {
				t.Fatalf("%d lines, want at most %d", len(lines), maxLines)
			}
			for _, l := range lines {
				if l.offset != int64(len(again)) {
					t.Fatalf("a line at %d, want %d", l.offset, len(again))
				}
				again = append(again, l.raw...)
				if l.long {
					continue
				}
				again = append(again, '\n')
				checkLine(t, l)
			}
			if next == at {
				break
			}
			at = next
		}
		rest := file[len(again):]
		if !bytes.Equal(again, file[:len(again)]) || int64(len(again)) != at {
			t.Fatalf("read %q of %q", again, file)
		}
		if bytes.IndexByte(rest, '\n') >= 0 {
			t.Fatalf("a whole line was left in %q", rest)
		}
	})
}

func checkLine(t *testing.T, l line) {
	t.Helper()
	payload, err := decodeLine(l.raw)
	if err == nil && !bytes.EqualFold(appendLine(nil, payload), append(bytes.Clone(l.raw), '\n')) {
		t.Fatalf("%q decodes to %q", l.raw, payload)
	}
	if i, err := decodeRecord(l, "s"); err == nil && bytes.IndexByte(i.record, '\n') >= 0 {
		t.Fatalf("a record with a line feed: %q", i.record)
	}
	_, _ = decodeHeader(l.raw) // must not panic
}
