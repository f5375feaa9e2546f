package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
)

func TestGenerate(t *testing.T) {
	streams := map[string]bool{}
	w := newGenerator(nil, 501).logs(40)
	if w.records != 40*501 || len(w.batches) != 40 {
		t.Fatalf("%d records in %d batches", w.records, len(w.batches))
	}
	for _, body := range w.batches {
		req := plogotlp.NewExportRequest()
		if err := req.UnmarshalProto(body); err != nil {
			t.Fatal(err)
		}
		for _, rl := range req.Logs().ResourceLogs().All() {
			pod, _ := rl.Resource().Attributes().Get("k8s.pod.name")
			streams[pod.Str()] = true
			for _, lr := range rl.ScopeLogs().At(0).LogRecords().All() {
				if lr.Attributes().Len() != 15 || lr.Body().Str() == "" || lr.TraceID().IsEmpty() {
					t.Fatalf("%d attributes, body %q", lr.Attributes().Len(), lr.Body().Str())
				}
			}
		}
	}
	if len(streams) < 80 || len(streams) > services*podsOfService {
		t.Errorf("%d streams", len(streams))
	}
}

func TestGenerateSpans(t *testing.T) {
	spans, logs := newGenerator(nil, 100).spans(3)
	if spans.records != 300 || logs.records != 300 || !spans.spans || logs.spans {
		t.Fatalf("%d spans, %d logs", spans.records, logs.records)
	}
	if r := logs.bytesPerRecord() / spans.bytesPerRecord(); r < 0.9 || r > 1.3 {
		t.Errorf("log records are %.2f of the spans' size", r)
	}
	for _, body := range spans.batches {
		req := ptraceotlp.NewExportRequest()
		if err := req.UnmarshalProto(body); err != nil {
			t.Fatal(err)
		}
		for _, sp := range req.Traces().ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
			if sp.Name() == "" || sp.SpanID().IsEmpty() || sp.EndTimestamp() < sp.StartTimestamp() {
				t.Fatalf("span %q is not complete", sp.Name())
			}
		}
	}
}

func TestParseSample(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		got, err := parseSample(strings.NewReader(in), 10)
		if err != nil {
			got = []string{err.Error()}
		}
		if s := strings.Join(got, "|"); s != want {
			t.Errorf("%q gives %q, want %q", in, s, want)
		}
	}
	f("Time,Log\n", "")
	f("Time\n1\n", "there is no column Log")
	f("Time,Log\n1,\"{\"\"log\"\":\"\"hello\\n\"\"}\"\n2,no json\n3\n", "hello")
	f("Log\n\"{\"\"log\"\":\"\"TraceID: 0123456789abcdef0123456789abcdef SpanID: 0123456789abcdef x\"\"}\"\n",
		"TraceID: "+traceMark+" SpanID: "+spanMark+" x")
}

func TestSendAll(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]int{}
	send := func(_ context.Context, body []byte) error {
		mu.Lock()
		defer mu.Unlock()
		seen[string(body)]++
		if seen[string(body)] == 1 && string(body) == "2" {
			return fmt.Errorf("busy: %w", errRetry)
		}
		return nil
	}
	s, err := sendAll(t.Context(), [][]byte{[]byte("1"), []byte("2"), []byte("3")}, []sender{send, send})
	if err != nil || s.retries != 1 || seen["1"] != 1 || seen["2"] != 2 || seen["3"] != 1 {
		t.Errorf("sent %v, retries %+v, error %v", seen, s, err)
	}
	bad := errors.New("refused")
	_, err = sendAll(t.Context(), [][]byte{nil, nil}, []sender{func(context.Context, []byte) error { return bad }})
	if !errors.Is(err, bad) {
		t.Errorf("error is %v, want %v", err, bad)
	}
}

func TestComplete(t *testing.T) {
	f := func(answer string, ok bool) {
		t.Helper()
		if err := complete([]byte(answer)); (err == nil) != ok {
			t.Errorf("%q gives %v", answer, err)
		}
	}
	f("", true)
	f("\x0a\x00", true)
	f("\x0a\x02\x08\x01", false)
}

func TestSummarize(t *testing.T) {
	run := func(seconds int) measurement {
		return measurement{records: 100, acked: time.Duration(seconds) * time.Second, visible: 2 * time.Duration(seconds) * time.Second, recordBytes: 1000}
	}
	s := signalResult{Rows: []row{
		summarize(peerName, []measurement{run(1), run(1), run(4)}),
		summarize("inquest http", []measurement{run(2), run(2)}),
	}}
	s.compare()
	if r := s.Rows[1]; r.AckedRate.Median != 50 || r.RatioAcked != 0.5 || r.RatioVisible != 0.5 || r.RecordBytes != 10 || r.RatioDisk != 1 {
		t.Errorf("row is %+v", r)
	}
	if a := s.Rows[0].AckedRate; a.Median != 100 || a.Min != 25 || a.Max != 100 {
		t.Errorf("spread is %+v", a)
	}
}
