package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"go.uber.org/goleak"

	"inquest/api"
	"inquest/api/apitype"
	"inquest/record"
	"inquest/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type records func(q store.RecordQuery, fn func([]record.Field) error) error

func (r records) QueryRecords(_ context.Context, q store.RecordQuery, fn func([]record.Field) error) error {
	return r(q, fn)
}

type samples struct{ store.SampleReader }

func (samples) QueryInstant(_ context.Context, _ string, at time.Time) (store.Result, error) {
	return store.Result{Value: promql.Vector{{Metric: labels.FromStrings("a", "b"), T: at.UnixMilli(), F: 1}}, Warnings: []string{"careful"}}, nil
}

func (samples) QueryRange(_ context.Context, _ string, from, _ time.Time, step time.Duration) (store.Result, error) {
	return store.Result{Value: promql.Matrix{{Floats: []promql.FPoint{{T: from.UnixMilli(), F: step.Seconds()}}}}}, nil
}

type investigator struct{}

func (investigator) Investigate(_ context.Context, req api.InvestigationRequest) (api.Investigation, error) {
	return api.Investigation{ID: "inq-1", State: "suspected", From: req.From, To: req.To, Symptom: req.Symptom, Verdict: json.RawMessage(`{"a":1}`)}, nil
}

func (investigator) Render(w io.Writer, inv api.Investigation, format string) error {
	_, err := fmt.Fprintf(w, "%s of %s", format, inv.ID)
	return err
}

// answer answers every record query with the row of a span, or a verdict.
func answer(q store.RecordQuery, fn func([]record.Field) error) error {
	switch {
	case strings.Contains(q.LogsQL, "verdict"):
		return fn(append(api.VerdictFields(api.Investigation{ID: "inq-1", State: "suspected", Verdict: json.RawMessage(`{"a":1}`)}),
			record.Field{Name: "_time", Value: "2026-01-02T15:00:00Z"}))
	case strings.Contains(q.LogsQL, "nothing"), strings.Contains(q.LogsQL, "exemplar"):
		return nil
	case strings.Contains(q.LogsQL, "bad"):
		return fmt.Errorf("syntax: %w", store.ErrQuery)
	}
	for i := range 3 {
		err := fn([]record.Field{
			{Name: "_time", Value: "2026-01-02T15:00:00Z"},
			{Name: "trace_id", Value: "00000000000000000000000000000001"},
			{Name: "span_id", Value: fmt.Sprint(i)},
			{Name: "service.name", Value: "web"},
		})
		if err != nil {
			return err
		}
	}
	if strings.Contains(q.LogsQL, "breaks") {
		return errors.New("disk gone")
	}
	return nil
}

func newClient(t *testing.T) *Client {
	t.Helper()
	h, err := api.New(api.Config{Records: records(answer), Samples: samples{}, Investigator: investigator{}, Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	c, err := New(srv.URL+"/", srv.Client())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRecords(t *testing.T) {
	c := newClient(t)
	f := func(q RecordQuery, wantRows int, wantCut bool, wantErr string) {
		t.Helper()
		n := 0
		info, err := c.Records(t.Context(), q, func(row json.RawMessage) error {
			if !json.Valid(row) || !strings.Contains(string(row), "service.name") {
				t.Errorf("%s gives the row %s", q.LogsQL, row)
			}
			n++
			return nil
		})
		if n != wantRows || info.Rows != wantRows || info.Cut != wantCut || (err == nil) != (wantErr == "") || err != nil && !strings.Contains(err.Error(), wantErr) {
			t.Errorf("%s: %d rows, %+v, %v", q.LogsQL, n, info, err)
		}
	}
	f(RecordQuery{LogsQL: "x"}, 3, false, "")
	f(RecordQuery{LogsQL: "x", Limit: 2, Order: "newest", From: time.Unix(1, 0), To: time.Unix(2, 0)}, 2, true, "")
	f(RecordQuery{LogsQL: "nothing"}, 0, false, "")
	f(RecordQuery{LogsQL: "breaks"}, 3, false, "the query failed after 3 rows: disk gone")
	f(RecordQuery{LogsQL: "bad"}, 0, false, "syntax: bad query: mend the query")

	stop := errors.New("enough")
	if _, err := c.Records(t.Context(), RecordQuery{LogsQL: "x"}, func(json.RawMessage) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
}

func TestQueries(t *testing.T) {
	c, ctx := newClient(t), t.Context()
	res, a, err := c.QueryInstant(ctx, "up", time.Unix(5, 0))
	if err != nil || string(res.Result) != `[{"metric":{"a":"b"},"value":[5,"1"]}]` || fmt.Sprint(a.Warnings) != "[careful]" {
		t.Errorf("got %s, %v, %v", res.Result, a, err)
	}
	res, _, err = c.QueryRange(ctx, "up", time.Unix(5, 0), time.Unix(6, 0), 1500*time.Millisecond)
	if err != nil || string(res.Result) != `[{"metric":{},"values":[[5,"1.5"]]}]` {
		t.Errorf("got %s, %v", res.Result, err)
	}
	tr, _, err := c.Trace(ctx, "1")
	if err != nil || len(tr.Spans) != 3 {
		t.Errorf("got %+v, %v", tr, err)
	}
	d, _, err := c.Drilldown(ctx, `up{job="web"}`, time.Unix(5, 0), time.Minute)
	if err != nil || d.How != apitype.HowSlowestSpan || d.To.Unix() != 65 || len(d.Logs) != 3 {
		t.Errorf("got %+v, %v", d, err)
	}
	st, err := c.Status(ctx)
	if err != nil || st.Version != "1" {
		t.Errorf("got %+v, %v", st, err)
	}
}

func TestInvestigations(t *testing.T) {
	c, ctx := newClient(t), t.Context()
	inv, _, err := c.Investigate(ctx, apitype.InvestigationRequest{From: "1000", To: "2000", Symptom: "slow"})
	if err != nil || inv.ID != "inq-1" || inv.From.Unix() != 1000 || inv.Symptom != "slow" || string(inv.Verdict) != `{"a":1}` {
		t.Errorf("got %+v, %v", inv, err)
	}
	list, err := c.Investigations(ctx, time.Unix(1, 0), time.Unix(2, 0), 5)
	if err != nil || len(list) != 1 || list[0].ID != "inq-1" {
		t.Errorf("got %+v, %v", list, err)
	}
	if inv, err = c.Investigation(ctx, "inq-1"); err != nil || inv.State != "suspected" {
		t.Errorf("got %+v, %v", inv, err)
	}
	var b strings.Builder
	if err := c.Report(ctx, &b, "inq-1", "markdown"); err != nil || b.String() != "markdown of inq-1" {
		t.Errorf("got %q, %v", b.String(), err)
	}
	_, _, err = c.Investigate(ctx, apitype.InvestigationRequest{From: "x"})
	var answered *AnswerError
	if !errors.As(err, &answered) || answered.Code != 400 || answered.Body.ErrorType != "bad_data" {
		t.Errorf("got %v", err)
	}
}

func TestErrors(t *testing.T) {
	f := func(base string) {
		t.Helper()
		if _, err := New(base, nil); err == nil {
			t.Errorf("%q is taken for an address", base)
		}
	}
	f("ftp://x")
	f("http://")
	f("http://a b")

	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/api/v1/traces") {
			w.WriteHeader(502)
			io.WriteString(w, "<html>bad gateway")
			return
		}
		io.WriteString(w, "not JSON")
	}))
	client := srv.Client()
	c, err := New(strings.TrimPrefix(srv.URL, "http://"), client)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Status(t.Context()); err == nil || !strings.Contains(err.Error(), "another version") {
		t.Errorf("got %v", err)
	}
	if _, _, err := c.Trace(t.Context(), "1"); err == nil || !strings.Contains(err.Error(), "answered 502 Bad Gateway: is it an inquest server?") {
		t.Errorf("got %v", err)
	}
	srv.Close()
	var unreachable *UnreachableError
	if _, err := c.Status(t.Context()); !errors.As(err, &unreachable) || !strings.Contains(err.Error(), "no recorder answers at http://127.0.0.1:") || !strings.Contains(err.Error(), "`inquest serve`") {
		t.Errorf("got %v", err)
	}
}
