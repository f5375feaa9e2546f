package local

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strconv"
	"syscall"
	"testing"
	"time"

	"inquest/record"
	"inquest/store"
)

// The library does not sync files in tests. To measure with it:
//
//	DISABLE_FSYNC_FOR_TESTING=false go test ./store/local -run '^$' -bench Records

// realistic makes batches of n rows with 15 fields each, as a service that
// answers requests logs them: 3 services with 3 pods, ids at random.
func realistic(seq uint64, n int, rng *rand.Rand, at time.Time) store.Batch {
	b := store.Batch{Seq: seq, Rows: make([]record.Row, n)}
	routes := []string{"/v1/chat/completions", "/v1/embeddings", "/v1/models", "/health"}
	models := []string{"llama-3-70b", "llama-3-8b", "bge-large"}
	pod := rng.IntN(9) // a batch comes from one process
	stream := []record.Field{
		{Name: "k8s.pod.name", Value: fmt.Sprintf("service-%d-7d9f8-%d", pod/3, pod)},
		{Name: record.FieldType, Value: string(record.TypeLog)},
		{Name: "service.name", Value: fmt.Sprintf("service-%d", pod/3)},
	}
	seqText := strconv.FormatUint(seq, 10)
	for i := range b.Rows {
		ms := int(5 + rng.ExpFloat64()*80)
		route := routes[rng.IntN(len(routes))]
		b.Rows[i] = record.Row{
			Time:   at.Add(time.Duration(i) * 100 * time.Microsecond).UnixNano(),
			Stream: stream,
			Fields: []record.Field{
				{Name: record.FieldSeq, Value: seqText},
				{Name: record.FieldBody, Value: fmt.Sprintf("request %s finished in %d ms", route, ms)},
				{Name: record.FieldSeverity, Value: "INFO"},
				{Name: record.FieldSeverityNumber, Value: "9"},
				{Name: record.FieldTraceID, Value: randomHex(rng, 16)},
				{Name: record.FieldSpanID, Value: randomHex(rng, 8)},
				{Name: "http.route", Value: route},
				{Name: "http.response.status_code", Value: "200"},
				{Name: "gen_ai.request.model", Value: models[rng.IntN(len(models))]},
				{Name: "gen_ai.usage.input_tokens", Value: strconv.Itoa(rng.IntN(2000))},
				{Name: "gen_ai.usage.output_tokens", Value: strconv.Itoa(rng.IntN(500))},
				{Name: "duration_ms", Value: strconv.Itoa(ms)},
			},
		}
	}
	return b
}

func randomHex(rng *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return hex.EncodeToString(b)
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func benchBatches(rows int) []store.Batch {
	rng := rand.New(rand.NewPCG(1, 2))
	start := time.Now().Add(-12 * time.Hour)
	batches := make([]store.Batch, 400)
	for i := range batches {
		batches[i] = realistic(uint64(i+1), rows, rng, start.Add(time.Duration(i)*50*time.Millisecond))
	}
	return batches
}

// BenchmarkRecordsAppend appends from one goroutine, with a Sync each second of
// work, as the applier does.
func BenchmarkRecordsAppend(b *testing.B) {
	const rows = 500
	batches := benchBatches(rows)
	r := openRecords(b, RecordsOptions{Dir: b.TempDir()})
	last, cpu := time.Now(), cpuTime()
	b.ResetTimer()
	for i := range b.N {
		if err := r.Append(b.Context(), batches[i%len(batches)]); err != nil {
			b.Fatal(err)
		}
		if time.Since(last) > time.Second {
			if err := r.Sync(b.Context()); err != nil {
				b.Fatal(err)
			}
			last = time.Now()
		}
	}
	if err := r.Sync(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	total := float64(b.N) * rows
	b.ReportMetric(total/b.Elapsed().Seconds(), "rows/s")
	// Of all threads, merging included; it does not depend on what else runs.
	b.ReportMetric(float64((cpuTime()-cpu).Nanoseconds())/total, "cpu-ns/row")
	if b.N > len(batches) {
		r.storage.MustForceMerge("")
	}
	b.ReportMetric(float64(r.Stats().DiskBytes)/total, "B/row")
	if err := r.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkRecordsSync measures a Sync after each batch.
func BenchmarkRecordsSync(b *testing.B) {
	for _, rows := range []int{1, 500} {
		b.Run(fmt.Sprint(rows), func(b *testing.B) {
			batches := benchBatches(rows)
			r := openRecords(b, RecordsOptions{Dir: b.TempDir()})
			var spent time.Duration
			for i := range b.N {
				if err := r.Append(b.Context(), batches[i%len(batches)]); err != nil {
					b.Fatal(err)
				}
				start := time.Now()
				if err := r.Sync(b.Context()); err != nil {
					b.Fatal(err)
				}
				spent += time.Since(start)
			}
			b.ReportMetric(float64(spent.Microseconds())/1000/float64(b.N), "ms/sync")
			if err := r.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

func BenchmarkRecordsMissing(b *testing.B) {
	batches := benchBatches(500)
	r := openRecords(b, RecordsOptions{Dir: b.TempDir()})
	for _, batch := range batches {
		if err := r.Append(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
	if err := r.Sync(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.Run("Missing", func(b *testing.B) {
		for i := range b.N {
			if missing, err := r.Missing(b.Context(), batches[i%len(batches)]); err != nil || len(missing) > 0 {
				b.Fatal(len(missing), err)
			}
		}
	})
	b.Run("HeldSeqs", func(b *testing.B) {
		for range b.N {
			if held, err := r.HeldSeqs(b.Context(), 1); err != nil || len(held) != len(batches) || held[1] != 500 {
				b.Fatal(len(held), err)
			}
		}
	})
	if err := r.Close(); err != nil {
		b.Fatal(err)
	}
}
