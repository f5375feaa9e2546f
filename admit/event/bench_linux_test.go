package event

import (
	"runtime"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"golang.org/x/sys/unix"

	"inquest/admit/event/eventtest"
)

// benchEvents are as many good events as a small batch has.
const benchEvents = 128

// benchmark measures check on copies of records; copying is not counted. The
// metric cpu-ns/op is the CPU time of this thread alone, which other work on the
// machine disturbs least, B/event the size of an event as JSON.
func benchmark(b *testing.B, make func(e eventtest.Event) plog.LogRecord, check func(v *Validator, resource pcommon.Resource, lr plog.LogRecord) *Reason) {
	v, rng, size := newValidator(b), source(), 0
	resource := pcommon.NewResource()
	resource.Attributes().PutStr("service.name", "chat-api")
	records := plog.NewLogRecordSlice()
	for i := range benchEvents {
		e := eventtest.Good(rng, i)
		size += len(e.JSON())
		make(e).MoveTo(records.AppendEmpty())
	}
	work := plog.NewLogRecordSlice()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	used, start := int64(0), threadTime(b)
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; b.Loop(); i++ {
		if i%benchEvents == 0 {
			b.StopTimer()
			used += threadTime(b) - start
			work = plog.NewLogRecordSlice()
			records.CopyTo(work)
			start = threadTime(b)
			b.StartTimer()
		}
		if why := check(v, resource, work.At(i%benchEvents)); why != nil {
			b.Fatal(*why)
		}
	}
	used += threadTime(b) - start
	b.ReportMetric(float64(used)/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(size)/benchEvents, "B/event")
}

func threadTime(b *testing.B) int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		b.Fatal(err)
	}
	return t.Nano()
}

func fast(v *Validator, resource pcommon.Resource, lr plog.LogRecord) *Reason {
	return v.Check(resource, lr, received)
}

func BenchmarkBody(b *testing.B)       { benchmark(b, eventtest.Event.BodyRecord, fast) }
func BenchmarkMap(b *testing.B)        { benchmark(b, eventtest.Event.MapRecord, fast) }
func BenchmarkAttributes(b *testing.B) { benchmark(b, eventtest.Event.AttributeRecord, fast) }

// BenchmarkAttributesOfRecord has what the log record holds by itself there, as
// an OpenTelemetry SDK sends it.
func BenchmarkAttributesOfRecord(b *testing.B) {
	v := newValidator(b)
	benchmark(b, func(e eventtest.Event) plog.LogRecord {
		lr := e.AttributeRecord()
		_ = v.Check(pcommon.NewResource(), lr, received)
		lr.Attributes().Remove(AttributeRequestID)
		return lr
	}, fast)
}

func BenchmarkLibraryBody(b *testing.B) { benchmark(b, eventtest.Event.BodyRecord, byLibrary) }

func BenchmarkLibraryAttributes(b *testing.B) {
	benchmark(b, eventtest.Event.AttributeRecord, byLibrary)
}

func BenchmarkBroken(b *testing.B) {
	v, rng := newValidator(b), source()
	var records []plog.LogRecord
	for kind := range eventtest.Kinds {
		e, _ := eventtest.Broken(rng, kind, kind)
		records = append(records, e.BodyRecord())
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if v.Check(pcommon.NewResource(), records[i%len(records)], received) == nil {
			b.Fatal("accepted")
		}
	}
}

func BenchmarkRecognise(b *testing.B) {
	records := ordinary()
	for _, lr := range records {
		name := "text"
		if isObject(lr.Body()) {
			name = "json"
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if Recognise(lr) {
					b.Fatal("recognised")
				}
			}
		})
	}
}
