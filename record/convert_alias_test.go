package record

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"inquest/record/alias"
)

func spanOf(resource, attributes []any) ptrace.Traces {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	putAll(rs.Resource().Attributes(), resource...)
	putAll(rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty().Attributes(), attributes...)
	return td
}

func TestDerivedFields(t *testing.T) {
	c := NewConverter(alias.Default())
	// want are the derived fields alone.
	f := func(resource, attributes []any, want map[string]string) {
		t.Helper()
		rows := c.Spans(spanOf(resource, attributes), 1, received)
		got := fieldMap(t, rows[0])
		names := strings.Split(got[FieldDerived], ",")
		if got[FieldDerived] == "" {
			names = nil
		}
		derived := map[string]string{}
		for _, n := range names {
			derived[n] = got[n]
		}
		if !reflect.DeepEqual(derived, want) {
			t.Errorf("%v %v: derived %q, want %q", resource, attributes, derived, want)
		}
		plain := fieldMap(t, new(Converter).Spans(spanOf(resource, attributes), 1, received)[0])
		sent := Row{Fields: Sent(slices.Clone(rows[0].Fields)), Stream: rows[0].Stream}
		if got := fieldMap(t, sent); !reflect.DeepEqual(got, plain) {
			t.Errorf("without what was derived: %q, want %q", got, plain)
		}
	}
	type l = []any
	type m = map[string]string
	f(nil, l{"request_id", "r-1"}, m{"request.id": "r-1"})
	f(nil, l{"request_id", "r-1", "request.id", "r-2"}, m{})
	f(nil, l{"request_id", "r-1", "request.id", ""}, m{"request.id": "r-1"})
	f(l{"request.id", "r-2"}, l{"request_id", "r-1"}, m{})
	f(l{"request_id", "r-2"}, l{"req_id", "r-1"}, m{"request.id": "r-2"}) // the table's order goes first
	f(l{"request_id", "r-2"}, l{"request_id", "r-1"}, m{"request.id": "r-1"})
	f(l{"request_id", "r-2"}, nil, m{"request.id": "r-2"})
	f(nil, l{"record.derived", "x", "req_id", "r"}, m{"request.id": "r"})
	f(nil, l{"record.derived", "request.id", "request.id", "r"}, m{})
	f(nil, l{"gen_ai.usage.prompt_tokens", 7, "gen_ai.usage.input_tokens", 9}, m{})
	f(nil, l{"http.request.method", "GET"}, m{})
}

// TestDerivedRoom fills rows up: what was sent goes first, and limits hold.
func TestDerivedRoom(t *testing.T) {
	f := func(attributes, size int, want bool) {
		t.Helper()
		ld := plog.NewLogs()
		lr := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
		for i := range attributes {
			lr.Attributes().PutInt(fmt.Sprint("k", i), 1)
		}
		lr.Attributes().PutStr("request_id", "r-1")
		lr.Body().SetStr(strings.Repeat("b", size))
		row := NewConverter(alias.Default()).Logs(ld, 1, received)[0]
		checkRow(t, row)
		if row.Size() > MaxRowSize {
			t.Errorf("%d bytes", row.Size())
		}
		if got := fieldMap(t, row)["request.id"] == "r-1"; got != want {
			t.Errorf("%d attributes, body of %d bytes: derived is %v, want %v", attributes, size, got, want)
		}
	}
	f(0, 0, true)
	f(MaxAttributes-1, 0, true)
	f(MaxAttributes, 0, true) // request_id is in the overflow
	f(5000, 0, true)
	f(0, MaxRowSize-200, true)
	f(0, MaxRowSize-70, false)
}

// TestCanonicalNamesAreFree holds the table's idea of names that are taken
// against that of this package.
func TestCanonicalNamesAreFree(t *testing.T) {
	for _, name := range slices.Concat(StreamFields, []string{
		FieldTime, FieldBody, FieldStream, FieldStreamID, FieldType, FieldSeq, FieldTraceID, FieldSpanID, FieldParentSpanID,
		FieldTraceState, FieldFlags, FieldSeverity, FieldSeverityNumber, FieldEventName, FieldObservedTime, FieldName, FieldSpanKind,
		FieldStatus, FieldStatusMessage, FieldDuration, FieldEvents, FieldLinks, FieldScopeName, FieldScopeVersion, FieldValue,
		FieldLabels, FieldOverflow, FieldDerived, FieldLetterID, FieldDroppedAttributes, FieldDroppedEvents, FieldDroppedLinks,
	}) {
		if alias.CheckCanonical(name) == nil {
			t.Errorf("%s can be a canonical name", name)
		}
	}
}

func TestDerivedIsReadBack(t *testing.T) {
	td := spanOf(nil, []any{"request_id", "r-1", "gen_ai.system", "az.ai.openai"})
	s, err := ParseSpan(stored(NewConverter(alias.Default()).Spans(td, 1, received)[0]))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"request_id": "r-1", "request.id": "r-1", "gen_ai.system": "az.ai.openai", "gen_ai.provider.name": "azure.ai.openai"}
	if !reflect.DeepEqual(s.Attributes, want) || !slices.Equal(s.Derived, []string{"request.id", "gen_ai.provider.name"}) {
		t.Errorf("got %v, derived %v", s.Attributes, s.Derived)
	}
}

// engineSpans are spans as vLLM writes them.
func engineSpans(n int) ptrace.Traces {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	putAll(rs.Resource().Attributes(), "service.name", "vllm", "vllm.process_id", "7")
	spans := rs.ScopeSpans().AppendEmpty().Spans()
	for i := range n {
		sp := spans.AppendEmpty()
		sp.SetName("llm_request")
		sp.SetTraceID([16]byte{1, byte(i)})
		sp.SetSpanID([8]byte{2, byte(i)})
		putAll(sp.Attributes(), "gen_ai.latency.time_to_first_token", 0.21, "gen_ai.latency.e2e", 2.5, "gen_ai.latency.time_in_queue", 0.01,
			"gen_ai.latency.time_in_model_prefill", 0.2, "gen_ai.latency.time_in_model_decode", 2.2, "gen_ai.latency.time_in_model_inference", 2.4,
			"gen_ai.usage.prompt_tokens", 120+i, "gen_ai.usage.completion_tokens", 40, "gen_ai.request.id", "chatcmpl-0123456789abcdef",
			"gen_ai.request.max_tokens", 256, "gen_ai.request.temperature", 0.7, "gen_ai.request.top_p", 0.9, "gen_ai.request.n", 1)
	}
	return td
}

// BenchmarkAliases compares Converters with and without a table in one run, on
// records of which no name has an alias and on spans full of them.
func BenchmarkAliases(b *testing.B) {
	ld, plain, engine := decoded(b, sampleLogs(500)), plainSpans(500), engineSpans(500)
	table := alias.Default()
	f := func(name string, convert func(*Converter)) {
		for _, t := range []*alias.Table{nil, table} {
			c := NewConverter(t)
			b.Run(fmt.Sprintf("%s/table=%v", name, t != nil), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					convert(c)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/500, "ns/record")
			})
		}
	}
	f("logs", func(c *Converter) { c.Logs(ld, 1, received) })
	f("spans", func(c *Converter) { c.Spans(plain, 1, received) })
	f("engine", func(c *Converter) { c.Spans(engine, 1, received) })
}

// plainSpans are spans of HTTP calls.
func plainSpans(n int) ptrace.Traces {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	putAll(rs.Resource().Attributes(), "service.name", "cart", "k8s.pod.name", "cart-1", "service.version", "1.2.3", "telemetry.sdk.language", "python")
	spans := rs.ScopeSpans().AppendEmpty().Spans()
	for i := range n {
		sp := spans.AppendEmpty()
		sp.SetName("GET /cart/{id}")
		sp.SetTraceID([16]byte{1, byte(i)})
		sp.SetSpanID([8]byte{2, byte(i)})
		sp.SetParentSpanID([8]byte{3, byte(i)})
		putAll(sp.Attributes(), "http.request.method", "GET", "url.scheme", "http", "url.path", fmt.Sprint("/cart/", i), "http.route", "/cart/{id}",
			"network.protocol.version", "1.1", "server.address", "cart", "server.port", 8080, "client.address", "10.0.0.7", "network.peer.address", "10.0.0.7",
			"network.peer.port", 40000+i, "user_agent.original", "python-requests/2.32", "http.response.status_code", 200)
	}
	return td
}
