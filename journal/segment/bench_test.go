package segment

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"inquest/journal"
)

// otlpLogs is a batch as applications send it: 500 records of a web service with
// trace ids and a dozen attributes.
func otlpLogs(seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, 1))
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	rl.Resource().Attributes().PutStr("service.name", "checkout")
	rl.Resource().Attributes().PutStr("k8s.pod.name", "checkout-7d9c6b5f4-x2x9k")
	records := rl.ScopeLogs().AppendEmpty().LogRecords()
	for i := range 500 {
		r := records.AppendEmpty()
		r.SetTimestamp(pcommon.Timestamp(1_760_000_000_000_000_000 + int64(i)*1_000_003))
		r.SetSeverityText("INFO")
		r.Body().SetStr(fmt.Sprintf("request %d finished in %d ms with status 200", rng.Uint32(), rng.IntN(900)))
		var id [16]byte
		for j := range id {
			id[j] = byte(rng.Uint32())
		}
		r.SetTraceID(id)
		r.SetSpanID([8]byte(id[:8]))
		for j := range 8 {
			r.Attributes().PutInt(fmt.Sprintf("gen_ai.usage.part_%d", j), int64(rng.IntN(4000)))
		}
		r.Attributes().PutStr("http.route", "/api/v1/orders/{id}")
		r.Attributes().PutStr("user.id", fmt.Sprintf("%08x", rng.Uint32()))
		r.Attributes().PutStr("gen_ai.request.model", "llama-3.1-8b-instruct")
	}
	p, err := (&plog.ProtoMarshaler{}).MarshalLogs(ld)
	if err != nil {
		panic(err)
	}
	return p
}

// BenchmarkAppend measures durable appends on the file system of the temporary
// folder.
func BenchmarkAppend(b *testing.B) {
	batch := otlpLogs(1)
	f := func(name string, senders int, c Compression, payload []byte) {
		b.Run(name, func(b *testing.B) {
			l, err := Open(Options{Dir: filepath.Join(b.TempDir(), "journal"), Compression: c})
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(payload)))
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			for i := range senders {
				wg.Go(func() {
					for n := i; n < b.N; n += senders {
						if _, err := l.Append(context.Background(), journal.KindLogs, 1, payload); err != nil {
							b.Error(err)
							return
						}
						if n%512 == 0 {
							if err := l.Truncate(l.Stats().Last); err != nil {
								b.Error(err)
							}
						}
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			st := l.Stats()
			b.ReportMetric(float64(st.Appends)/float64(max(1, st.Syncs)), "appends/sync")
			if err := l.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
	for _, senders := range []int{1, 8} {
		f(fmt.Sprintf("senders=%d/1KiB", senders), senders, CompressNone, batch[:1024])
		f(fmt.Sprintf("senders=%d/otlp500", senders), senders, CompressNone, batch)
		f(fmt.Sprintf("senders=%d/otlp500/s2", senders), senders, CompressS2, batch)
	}
}

func BenchmarkRead(b *testing.B) {
	l, err := Open(Options{Dir: filepath.Join(b.TempDir(), "journal")})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	batch := otlpLogs(1)
	const entries = 400
	for range entries {
		if _, err := l.Append(context.Background(), journal.KindLogs, 1, batch); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(len(batch)))
	r, _ := l.Read(1)
	for n := 0; b.Loop(); n++ {
		if n%entries == 0 {
			r.Close()
			r, _ = l.Read(1)
		}
		if _, err := r.Next(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
	r.Close()
}

func BenchmarkPack(b *testing.B) {
	batch := otlpLogs(1)
	var buf, packed []byte
	b.SetBytes(int64(len(batch)))
	for b.Loop() {
		packed, _ = CompressS2.pack(batch, &buf)
	}
	b.ReportMetric(float64(len(batch))/float64(len(packed)), "ratio")
}
