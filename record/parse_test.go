package record

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// stored returns a row's fields as a store gives them back.
func stored(r Row) []Field {
	fields := slices.Concat(r.Fields, r.Stream)
	return append(fields,
		Field{FieldTime, time.Unix(0, r.Time).UTC().Format(time.RFC3339Nano)},
		Field{FieldStream, "{}"}, Field{FieldStreamID, "0000"})
}

func TestSpanComesBack(t *testing.T) {
	row := new(Converter).Spans(sampleSpans(), 42, received)[0]
	fieldMap(t, row)
	got, err := ParseSpan(stored(row))
	if err != nil {
		t.Fatal(err)
	}
	want := Span{
		Head: Head{
			Source: Source{Service: "cart", Host: "h1"},
			Time:   time.Unix(0, received+5).UTC(), Seq: 42,
			TraceID: "01" + strings.Repeat("0", 30), SpanID: "02" + strings.Repeat("0", 14),
			ScopeName: "lib", ScopeVersion: "2",
			Attributes: map[string]string{"name": "mine", "host.name": "other", "n": "5", "service.version": "1", FieldDroppedEvents: "3"},
		},
		ParentSpanID: "03" + strings.Repeat("0", 14),
		Name:         "GET /", Kind: "server", Status: "error", StatusMessage: "boom",
		Duration: 100, Ended: true, TraceState: "a=b", Flags: 257,
		Events: []Event{
			{TimeNS: received + 7, Name: `exception "x"`, Attributes: map[string]any{"big": json.Number(fmt.Sprint(1 << 62)), "s": "t"}},
			{},
		},
		Links: []Link{{TraceID: "09" + strings.Repeat("0", 30), SpanID: "08" + strings.Repeat("0", 14), TraceState: "c=d", Attributes: map[string]any{"l": true}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("\n got %+v\nwant %+v", got, want)
	}
	if !got.End().Equal(time.Unix(0, received+105)) {
		t.Errorf("end %v", got.End())
	}
}

func TestSpanTimes(t *testing.T) {
	f := func(start, end uint64, wantTime int64, wantDuration time.Duration, wantEnded bool) {
		t.Helper()
		td := sampleSpans()
		sp := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
		sp.SetStartTimestamp(pcommon.Timestamp(start))
		sp.SetEndTimestamp(pcommon.Timestamp(end))
		row := new(Converter).Spans(td, 1, received)[0]
		s, err := ParseSpan(stored(row))
		if err != nil {
			t.Fatal(err)
		}
		if row.Time != wantTime || s.Duration != wantDuration || s.Ended != wantEnded {
			t.Errorf("%d..%d: time %d, duration %d, ended %t", start, end, row.Time, s.Duration, s.Ended)
		}
	}
	f(10, 30, 10, 20, true)
	f(10, 10, 10, 0, true)
	f(30, 10, 30, -20, true)
	f(10, 0, 10, 0, false)
	f(0, 10, 10, 0, false)
	f(0, 0, received, 0, false)
	f(1, math.MaxUint64, 1, math.MaxInt64-1, true)
}

func TestLogComesBack(t *testing.T) {
	ld := sampleLogs(1)
	lr := ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
	lr.SetObservedTimestamp(pcommon.Timestamp(received + 5e9))
	lr.SetEventName("placed")
	lr.SetFlags(1)
	_ = lr.Body().SetEmptyMap().FromRaw(map[string]any{"b": "x", "a": []any{1}})
	l, err := ParseLog(stored(new(Converter).Logs(ld, 1, received)[0]))
	if err != nil {
		t.Fatal(err)
	}
	if l.Body != `{"a":[1],"b":"x"}` || l.Severity != "INFO" || l.SeverityNumber != 9 || l.EventName != "placed" || l.Flags != 1 ||
		l.Observed.UnixNano() != received+5e9 || l.Time.UnixNano() != received || l.Pod != "cart-1" || l.Node != "n1" ||
		l.Attributes["code.lineno"] != "120" || l.Attributes["service.version"] != "1.2.3" || len(l.Attributes) != 17 {
		t.Errorf("%+v", l)
	}
}

func sampleExemplars() pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", "cart")
	ms := rm.ScopeMetrics().AppendEmpty().Metrics()
	add := func(p interface {
		SetTimestamp(pcommon.Timestamp)
		Attributes() pcommon.Map
		Exemplars() pmetric.ExemplarSlice
	},
	) {
		p.SetTimestamp(pcommon.Timestamp(received))
		putAll(p.Attributes(), "path", "/", "n", 1, "f", 1.5, "l", []any{"x"})
		ex := p.Exemplars().AppendEmpty()
		ex.SetDoubleValue(0.5)
		ex.SetTraceID(pcommon.TraceID{1})
		ex.SetSpanID(pcommon.SpanID{2})
		putAll(ex.FilteredAttributes(), "user", "u", "value", "clash")
		ex = p.Exemplars().AppendEmpty()
		ex.SetTimestamp(pcommon.Timestamp(received - 1))
		ex.SetIntValue(0)
	}
	for _, name := range []string{"g", "s", "h", "e"} {
		m := ms.AppendEmpty()
		m.SetName(name)
		switch name {
		case "g":
			add(m.SetEmptyGauge().DataPoints().AppendEmpty())
		case "s":
			add(m.SetEmptySum().DataPoints().AppendEmpty())
		case "h":
			add(m.SetEmptyHistogram().DataPoints().AppendEmpty())
		case "e":
			add(m.SetEmptyExponentialHistogram().DataPoints().AppendEmpty())
		}
	}
	ms.AppendEmpty().SetEmptySummary().DataPoints().AppendEmpty()
	ms.AppendEmpty()
	return md
}

func TestExemplarsComeBack(t *testing.T) {
	rows := new(Converter).Exemplars(sampleExemplars(), 3, received)
	if len(rows) != 8 {
		t.Fatalf("%d rows", len(rows))
	}
	for i, row := range rows {
		fieldMap(t, row)
		got, err := ParseExemplar(stored(row))
		if err != nil {
			t.Fatal(err)
		}
		want := Exemplar{
			Head:   Head{Source: Source{Service: "cart"}, Time: time.Unix(0, received).UTC(), Seq: 3},
			Name:   "gshe"[i/2 : i/2+1],
			Labels: map[string]string{"path": "/", "n": "1", "f": "1.5", "l": `["x"]`}, HasValue: true,
		}
		if i%2 == 0 {
			want.TraceID, want.SpanID, want.Value = "01"+strings.Repeat("0", 30), "02"+strings.Repeat("0", 14), 0.5
			want.Attributes = map[string]string{"user": "u", "value": "clash"}
		} else {
			want.Time = want.Time.Add(-1)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("row %d:\n got %+v\nwant %+v", i, got, want)
		}
	}
}

func TestParseErrors(t *testing.T) {
	const now = "2026-01-01T00:00:00Z"
	f := func(parse func([]Field) error, want string, pairs ...string) {
		t.Helper()
		var fields []Field
		for i := 0; i < len(pairs); i += 2 {
			fields = append(fields, Field{pairs[i], pairs[i+1]})
		}
		err := parse(fields)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: error %v, want %q", pairs, err, want)
		}
	}
	log := func(fields []Field) error { _, err := ParseLog(fields); return err }
	span := func(fields []Field) error { _, err := ParseSpan(fields); return err }
	exemplar := func(fields []Field) error { _, err := ParseExemplar(fields); return err }
	f(log, "", "_time", now, "record.type", "log")
	f(log, "no field _time", "record.type", "log")
	f(log, "no field record.type", "_time", now)
	f(log, "not log", "_time", now, "record.type", "span")
	f(log, "not a time", "_time", "noon", "record.type", "log")
	f(log, "severity_number", "_time", now, "record.type", "log", "severity_number", "x")
	f(log, "32 lower-case", "_time", now, "record.type", "log", "trace_id", "ABC")
	f(log, "attributes_overflow", "_time", now, "record.type", "log", "attributes_overflow", "{")
	f(span, "duration_ns", "_time", now, "record.type", "span", "duration_ns", "1.5")
	f(span, "events", "_time", now, "record.type", "span", "events", "[]]")
	f(span, "links", "_time", now, "record.type", "span", "links", `{"a":1}`)
	f(span, "parent_span_id", "_time", now, "record.type", "span", "parent_span_id", strings.Repeat("z", 16))
	f(exemplar, "value", "_time", now, "record.type", "exemplar", "value", "x")
	f(exemplar, "", "_time", now, "record.type", "exemplar", "value", "NaN")
}

func FuzzParse(f *testing.F) {
	f.Add("_time", "2026-01-01T00:00:00Z", "events", `[{"time_ns":1,"name":"x","attributes":{"a":1}}]`, "attribute.name", "x")
	f.Add("value", "-Infinity", "labels", `{"a":"b"}`, "attributes_overflow", `{"a":"b"}`)
	f.Add("trace_id", strings.Repeat("a", 32), "links", "[]", "duration_ns", "-5")
	f.Fuzz(func(t *testing.T, n1, v1, n2, v2, n3, v3 string) {
		for _, typ := range []Type{TypeLog, TypeSpan, TypeExemplar} {
			fields := []Field{{FieldTime, "2026-01-01T00:00:00Z"}, {FieldType, string(typ)}, {n1, v1}, {n2, v2}, {n3, v3}}
			l, errLog := ParseLog(fields)
			_, errSpan := ParseSpan(fields)
			_, errExemplar := ParseExemplar(fields)
			if errLog == nil && l.TraceID != "" && len(l.TraceID) != 32 {
				t.Errorf("trace id %q", l.TraceID)
			}
			if n1 != FieldType && n2 != FieldType && n3 != FieldType {
				if typ != TypeLog && errLog == nil || typ != TypeSpan && errSpan == nil || typ != TypeExemplar && errExemplar == nil {
					t.Errorf("a %s was read as another type", typ)
				}
			}
		}
	})
}
