// Package binding_test holds the binding of records against real telemetry whose
// truth is known: log records of which the trace ids are taken away.
package binding_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"inquest/admit/bind"
	"inquest/bench/nezha"
	"inquest/record"
	"inquest/sensor/binding"
	"inquest/sensor/coverage"
	"inquest/store"
	"inquest/store/local"
)

// errEnough ends the reading of the data set.
var errEnough = errors.New("enough")

const (
	truthField = "truth.trace_id"
	batches    = 150
)

// open stores the first part of the data set. Of every tenth log record, or of
// all, the ids are moved to truthField.
func open(t *testing.T, every int) (r *local.Records, from, to time.Time, logs int) {
	t.Helper()
	data := os.Getenv("INQUEST_DATA")
	if data == "" {
		data = filepath.Join("..", "..", "..", "shared", "data")
	}
	dir := filepath.Join(data, "nezha-trainticket")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("no data set: set INQUEST_DATA to the folder that holds nezha-trainticket")
	}
	r, err := local.OpenRecords(local.RecordsOptions{Dir: t.TempDir(), Retention: time.Since(time.Unix(0, 0)) + 48*time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	var conv record.Converter
	seq := uint64(0)
	err = nezha.Requests(t.Context(), dir, func(ctx context.Context, q nezha.Request) error {
		var rows []record.Row
		seq++
		switch {
		case q.Traces != nil:
			rows = conv.Spans(*q.Traces, seq, 0)
		case q.Logs != nil:
			rows = conv.Logs(*q.Logs, seq, 0)
			for i := range rows {
				if logs++; logs%every != 0 {
					continue
				}
				for j := range rows[i].Fields {
					switch f := &rows[i].Fields[j]; f.Name {
					case record.FieldTraceID:
						f.Name = truthField
					case record.FieldSpanID:
						f.Name = "truth.span_id"
					}
				}
			}
		default:
			return nil
		}
		for _, row := range rows {
			if at := time.Unix(0, row.Time); from.IsZero() || at.Before(from) {
				from = at
			}
			if at := time.Unix(0, row.Time+1); at.After(to) {
				to = at
			}
		}
		if err := r.Append(ctx, store.Batch{Seq: seq, Rows: rows}); err != nil {
			return err
		}
		if seq >= batches {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		t.Fatal(err)
	}
	if err := r.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r, from, to, logs
}

// One trace's records are found soon among those of a busy system, and they are
// those that binding of all records gives it.
func TestOfTrace(t *testing.T) {
	if testing.Short() {
		t.Skip("reads real data")
	}
	r, from, to, logs := open(t, 1)
	all := map[string]int{}
	_, err := binding.Bind(t.Context(), r, from, to, binding.Options{}, func(_ []record.Field, b bind.Binding, out bind.Outcome) error {
		if out == bind.Bound {
			all[b.TraceID]++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	ids := slices.Sorted(maps.Keys(all))
	var took []time.Duration
	records := 0
	for i := 0; i < len(ids); i += len(ids)/50 + 1 {
		begin := time.Now()
		n := 0
		if err := binding.OfTrace(t.Context(), r, ids[i], binding.Options{}, func([]record.Field) error { n++; return nil }); err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(begin))
		records += n
		if n != all[ids[i]] {
			t.Errorf("trace %s has %d records, want %d", ids[i], n, all[ids[i]])
		}
	}
	slices.Sort(took)
	t.Logf("%d traces of %d with %d of %d records: median %s, longest %s", len(took), len(ids), records, logs,
		took[len(took)/2].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond))
}

func TestPrecision(t *testing.T) {
	if testing.Short() {
		t.Skip("reads real data")
	}
	for _, every := range []int{10, 1} {
		r, from, to, logs := open(t, every)
		right, wrong, spans, wrongSpans := 0, 0, 0, 0
		begin := time.Now()
		res, err := binding.Bind(t.Context(), r, from, to, binding.Options{}, func(fields []record.Field, b bind.Binding, out bind.Outcome) error {
			truth, span := "", ""
			for _, f := range fields {
				switch f.Name {
				case truthField:
					truth = f.Value
				case "truth.span_id":
					span = f.Value
				}
			}
			switch {
			case out != bind.Bound:
			case truth == b.TraceID:
				right++
				if b.SpanID != "" {
					spans++
					if b.SpanID != span {
						wrongSpans++
					}
				}
			default:
				wrong++
				if wrong < 5 {
					t.Logf("bound to %s, truth %s: %v", b.TraceID, truth, fields)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%d log records over %s, %+v, in %s: right %d, wrong %d; spans %d, wrong %d", logs, to.Sub(from).Round(time.Second), res.Total(), time.Since(begin).Round(time.Millisecond), right, wrong, spans, wrongSpans)
		if wrong > 0 || wrongSpans > 0 || right < logs/every/2 {
			t.Errorf("of every %d: right %d, wrong %d, wrong spans %d", every, right, wrong, wrongSpans)
		}
	}
}

func TestHealthyCoverage(t *testing.T) {
	if testing.Short() {
		t.Skip("reads real data")
	}
	r, from, to, _ := open(t, 1<<62)
	begin := time.Now()
	rep, err := coverage.Measure(t.Context(), r, from, to, coverage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("in %s", time.Since(begin).Round(time.Millisecond))
	for _, v := range rep.Services {
		if v.TraceID.OwnShare != 1 || v.SpanID.OwnShare != 1 {
			t.Errorf("%+v", v)
		}
	}
	for _, tear := range rep.Tears {
		t.Errorf("%s %s>%s %d/%d %s: %s", tear.Kind, tear.From, tear.To, tear.Count, tear.Of, tear.Evidence, tear.Text)
	}
}
