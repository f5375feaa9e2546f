package otlpreceiver

import (
	"context"
	"testing"

	"inquest/admit"
)

// The lenient decoder against pdata alone, on a batch of 500 log records, and
// with one bad record in it.
func BenchmarkDecodeLogs(b *testing.B) {
	record := sampleLogs().ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
	ld := sampleLogs()
	records := ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords()
	for range 500 {
		record.CopyTo(records.AppendEmpty())
	}
	good := protoOf(logsSignal, ld)
	bad := append(inScope(msg(2, num(1, 1))), good...)
	text := must(logsRequest(ld).MarshalJSON())

	run := func(name string, body []byte, decode func([]byte) error) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if err := decode(body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	strict := func(body []byte) error { _, err := logsSignal.proto(body); return err }
	strictJSON := func(body []byte) error { _, err := logsSignal.json(body); return err }
	lenient := func(enc encoding) func([]byte) error {
		return func(body []byte) error {
			_, report := admit.WithReport(context.Background())
			_, err := logsSignal.decode(body, enc, report)
			return err
		}
	}
	run("proto/pdata", good, strict)
	run("proto/lenient", good, lenient(protobuf))
	run("proto/lenient-one-bad", bad, lenient(protobuf))
	run("json/pdata", text, strictJSON)
	run("json/lenient", text, lenient(jsonText))
}

// What it costs to measure a large request before it is decoded.
func BenchmarkCheckMemory(b *testing.B) {
	body := protoOf(logsSignal, sampleLogs())
	for len(body) < 16<<20 {
		body = append(body, body...)
	}
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if err := checkMemory(logsSchema, body); err != nil {
			b.Fatal(err)
		}
	}
}
