package segment

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"inquest/journal"
	"inquest/journal/vfs"
)

var rewriteDoc = flag.Bool("rewrite", false, "write the example in docs/journal-format.md anew")

const formatDoc = "../../docs/journal-format.md"

// exampleSegment is the segment that docs/journal-format.md shows: two entries
// that shared a sync, the second compressed, and the mark of a clean close.
func exampleSegment() (segmentHeader, []byte, []journal.Entry) {
	h := segmentHeader{version: formatVersion, salt: 0x5f3a91c2, id: 12, first: 4711, created: 1_760_000_000_000_000_000}
	entries := []journal.Entry{
		{Seq: 4711, Received: 1_760_000_000_123_456_789, Kind: journal.KindLogs, Payload: []byte("hello")},
		{Seq: 4712, Received: 1_760_000_000_123_999_999, Kind: journal.KindTraces, Payload: bytes.Repeat([]byte("inquest "), 100)},
	}
	// Encoders differ between processors; every decoder takes this block.
	block, _ := hex.DecodeString("a0061c696e717565737420110819000c02")
	b := newBatch(nil)
	for i, e := range entries {
		stored, flags := e.Payload, uint8(0)
		if i == 1 {
			stored, flags = block, flagS2
		}
		b.add(recordHeader{
			stored: uint32(len(stored)), raw: uint32(len(e.Payload)), kind: uint8(e.Kind), flags: flags,
			received: e.Received, payloadCRC: payloadChecksum(stored),
		}, stored)
	}
	b.seal(4711, h.salt)
	file := append(h.encode(), b.buf...)
	mark := make([]byte, recordHeaderSize)
	endMark(4713).put(mark, h.salt)
	return h, append(file, mark...), entries
}

var dumpBlock = regexp.MustCompile("(?s)```hexdump\n(.*?)```")

// The example in the document is what the code writes, and what it reads.
func TestFormatDocument(t *testing.T) {
	h, file, entries := exampleSegment()
	doc, err := os.ReadFile(formatDoc)
	if err != nil {
		t.Fatal(err)
	}
	want := h.fileName() + "\n" + hex.Dump(file)
	if *rewriteDoc {
		doc = dumpBlock.ReplaceAllLiteral(doc, []byte("```hexdump\n"+want+"```"))
		if err := os.WriteFile(formatDoc, doc, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got := dumpBlock.FindSubmatch(doc)
	if got == nil || string(got[1]) != want {
		t.Fatalf("%s does not show what the code writes; if the format did not change by mistake, run: go test ./journal/segment -run FormatDocument -rewrite\n%s", formatDoc, want)
	}
	mem := vfs.NewMem(1)
	path := filepath.Join(testDir, h.fileName())
	if err := errors.Join(mem.MkdirAll(testDir), vfs.WriteFileAtomic(mem, path, file)); err != nil {
		t.Fatal(err)
	}
	l := mustOpen(t, testOptions(mem))
	defer l.Close()
	read, skipped := readAll(t, l, 1)
	if len(read) != len(entries) || skipped != 0 || l.Stats().Healed+l.Stats().SetAside != 0 {
		t.Fatalf("read %d entries of the example, skipped %d, %+v", len(read), skipped, l.Stats())
	}
	for i, e := range read {
		w := entries[i]
		if e.Seq != w.Seq || e.Received != w.Received || e.Kind != w.Kind || !bytes.Equal(e.Payload, w.Payload) {
			t.Errorf("entry %d of the example differs", e.Seq)
		}
	}
}

// The numbers that the document states are the code's.
func TestFormatDocumentNumbers(t *testing.T) {
	doc, err := os.ReadFile(formatDoc)
	if err != nil {
		t.Fatal(err)
	}
	f := func(words string) {
		t.Helper()
		if !strings.Contains(string(doc), words) {
			t.Errorf("the document does not say: %s", words)
		}
	}
	f("| 0 | 8 | magic | the ASCII characters `" + segmentMagic + "` |")
	f("| 8 | 4 | version | 1 |")
	f("| 0 | 4 | magic | the ASCII characters `" + recordMagic + "` |")
	f("at most 268,435,456 (256 MiB)")
	if formatVersion != 1 || maxPayload != 268_435_456 || headerSize != 64 || recordHeaderSize != 40 || alignment != 8 {
		t.Error("a number of the format changed: change the document and the version")
	}
}
