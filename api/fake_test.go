package api

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/VictoriaMetrics/VictoriaLogs/lib/logstorage"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"

	"inquest/record"
	"inquest/store"
	"inquest/store/storetest"
)

// fakeRecords answers queries that contain a text with the rows that belong to
// it. It stands for a store where a test needs what a real one cannot be made
// to do: fail, wait, break off. Queries must be LogsQL all the same.
type fakeRecords struct {
	mu      sync.Mutex
	asked   []store.RecordQuery
	answers []fakeAnswer // the first that fits
}

type fakeAnswer struct {
	contains string
	rows     []map[string]string
	err      error // after the rows
	wait     bool  // until the context ends
}

func (f *fakeRecords) QueryRecords(ctx context.Context, q store.RecordQuery, fn func([]record.Field) error) error {
	if _, err := logstorage.ParseQuery(q.LogsQL); err != nil {
		return fmt.Errorf("%q: %w: %w", q.LogsQL, store.ErrQuery, err)
	}
	f.mu.Lock()
	f.asked = append(f.asked, q)
	f.mu.Unlock()
	for _, a := range f.answers {
		if !strings.Contains(q.LogsQL, a.contains) {
			continue
		}
		for i, row := range a.rows {
			if q.Limit > 0 && i == q.Limit {
				return nil
			}
			var fields []record.Field
			for _, k := range sortedKeys(row) {
				fields = append(fields, record.Field{Name: k, Value: row[k]})
			}
			if err := fn(fields); err != nil {
				return err
			}
		}
		if a.wait {
			<-ctx.Done()
			return ctx.Err()
		}
		return a.err
	}
	return nil
}

// fakeSamples gives the same answer to every question.
type fakeSamples struct {
	result store.Result
	err    error
	series []labels.Labels
	names  []string
	meta   map[string]store.Metadata

	mu   sync.Mutex
	last string // how it was asked last
}

func (f *fakeSamples) note(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = fmt.Sprintf(format, args...)
}

func (f *fakeSamples) QueryInstant(_ context.Context, expr string, at time.Time) (store.Result, error) {
	f.note("%s @%d", expr, at.UnixMilli())
	return f.result, f.err
}

func (f *fakeSamples) QueryRange(_ context.Context, expr string, from, to time.Time, step time.Duration) (store.Result, error) {
	f.note("%s @%d..%d/%s", expr, from.UnixMilli(), to.UnixMilli(), step)
	return f.result, f.err
}

func (f *fakeSamples) Series(_ context.Context, sel []string, _, _ time.Time, limit int) ([]labels.Labels, error) {
	f.note("%v limit %d", sel, limit)
	return f.series, f.err
}

func (f *fakeSamples) LabelNames(_ context.Context, sel []string, _, _ time.Time, limit int) ([]string, error) {
	f.note("%v limit %d", sel, limit)
	return f.names, f.err
}

func (f *fakeSamples) LabelValues(_ context.Context, name string, sel []string, _, _ time.Time, limit int) ([]string, error) {
	f.note("%s %v limit %d", name, sel, limit)
	return f.names, f.err
}

func (f *fakeSamples) Metadata(_ context.Context, names ...string) (map[string]store.Metadata, error) {
	f.note("%v", names)
	return f.meta, f.err
}

// fakeInvestigator returns what it is given.
type fakeInvestigator struct {
	inv  Investigation
	err  error
	last InvestigationRequest
}

func (f *fakeInvestigator) Investigate(_ context.Context, req InvestigationRequest) (Investigation, error) {
	f.last = req
	return f.inv, f.err
}

func (f *fakeInvestigator) Render(w io.Writer, inv Investigation, format string) error {
	_, err := fmt.Fprintf(w, "%s of %s", format, inv.ID)
	return err
}

var testNow = time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)

// newTestHandler returns the API on cfg, with fakes for what cfg leaves out.
func newTestHandler(t testing.TB, cfg Config) http.Handler {
	t.Helper()
	if cfg.Records == nil {
		cfg.Records = &fakeRecords{}
	}
	if cfg.Samples == nil {
		cfg.Samples = &fakeSamples{result: store.Result{Value: promql.Vector{}}}
	}
	cfg.Records = storetest.Volatile(cfg.Records)
	h, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// ask sends a request as a client on this machine does. A body makes it a POST.
func ask(t testing.TB, h http.Handler, method, target string, header map[string]string, body string) *httptest.ResponseRecorder {
	t.Helper()
	req := httptest.NewRequest(method, target, strings.NewReader(body))
	req.Host = "localhost:4319"
	for k, v := range header {
		req.Header.Set(k, v)
	}
	if host := header["Host"]; host != "" {
		req.Host = host
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	return w
}

var (
	formHeader = map[string]string{"Content-Type": "application/x-www-form-urlencoded"}
	jsonHeader = map[string]string{"Content-Type": "application/json"}
)

// testTrace are the spans of one trace: a server span, a client call in it, the
// callee, and an orphan.
func testTrace() []map[string]string {
	const id = "4bf92f3577b34da6a3ce929d0e0e4736"
	return []map[string]string{
		{
			"_time": "2026-01-02T15:00:00.02Z", "record.type": "span", "trace_id": id, "span_id": "00000000000000b1",
			"parent_span_id": "00000000000000a2", "service.name": "cart", "name": "GetCart", "span_kind": "server", "duration_ns": "50000000",
			"status": "error", "status_message": "no stock", "rpc.method": "GetCart",
			"events": `[{"time_ns":1767366000030000000,"name":"exception","attributes":{"exception.type":"E"}}]`,
		},
		{
			"_time": "2026-01-02T15:00:00Z", "record.type": "span", "trace_id": id, "span_id": "00000000000000a1",
			"service.name": "web", "name": "GET /cart", "span_kind": "server", "duration_ns": "100000000", "http.route": "/cart",
			"service.version": "1.2", "journal.seq": "7", "scope.name": "otelhttp", "flags": "1",
		},
		{
			"_time": "2026-01-02T15:00:00.01Z", "record.type": "span", "trace_id": id, "span_id": "00000000000000a2",
			"parent_span_id": "00000000000000a1", "service.name": "web", "name": "cart/GetCart", "span_kind": "client", "duration_ns": "70000000",
			"links": `[{"trace_id":"00000000000000000000000000000001","span_id":"0000000000000002"}]`,
		},
		{
			"_time": "2026-01-02T15:00:00.05Z", "record.type": "span", "trace_id": id, "span_id": "00000000000000c1",
			"parent_span_id": "00000000000000ff", "service.name": "mail", "name": "send", "duration_ns": "10000000",
		},
	}
}
