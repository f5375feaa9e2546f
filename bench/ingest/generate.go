package main

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
)

const (
	services        = 20
	podsOfService   = 5 // 100 processes, each a stream of its own
	processesABatch = 5 // as an agent on a node forwards
	recordsPerTrace = 8 // log records and spans that share a trace
	recordStep      = 37 * time.Microsecond
)

// workload is what one measurement sends: encoded OTLP requests.
type workload struct {
	batches [][]byte
	records int
	spans   bool
}

func (w *workload) bytesPerRecord() float64 {
	n := 0
	for _, b := range w.batches {
		n += len(b)
	}
	return float64(n) / float64(max(w.records, 1))
}

// generator makes up the telemetry of services that answer requests with a
// language model. Equal generators make equal data, but for the time.
type generator struct {
	rng   *rand.Rand
	lines []string // real log lines; made up when empty
	size  int      // records of a batch
	now   time.Time

	inTrace int // records left of the current trace
	trace   pcommon.TraceID
	span    pcommon.SpanID
	parent  pcommon.SpanID
}

func newGenerator(lines []string, size int) *generator {
	// In the last hour, so that no server takes it for too old.
	return &generator{rng: rand.New(rand.NewPCG(7, 11)), lines: lines, size: size, now: time.Now().Add(-time.Hour)}
}

func (g *generator) logs(batches int) *workload {
	w := &workload{}
	for range batches {
		ld := plog.NewLogs()
		for p := range processesABatch {
			rl := ld.ResourceLogs().AppendEmpty()
			sl := g.logResource(rl)
			for range g.share(p) {
				g.next()
				g.logRecord(sl.LogRecords().AppendEmpty())
			}
		}
		w.addLogs(ld)
	}
	return w
}

// spans returns spans, and log records with the same content.
func (g *generator) spans(batches int) (spans, asLogs *workload) {
	spans, asLogs = &workload{spans: true}, &workload{}
	for range batches {
		td, ld := ptrace.NewTraces(), plog.NewLogs()
		for p := range processesABatch {
			rl := ld.ResourceLogs().AppendEmpty()
			sl := g.logResource(rl)
			rs := td.ResourceSpans().AppendEmpty()
			rl.Resource().CopyTo(rs.Resource())
			ss := rs.ScopeSpans().AppendEmpty()
			sl.Scope().CopyTo(ss.Scope())
			for range g.share(p) {
				g.next()
				sp := ss.Spans().AppendEmpty()
				g.spanRecord(sp)
				asLog(sp, sl.LogRecords().AppendEmpty())
			}
		}
		spans.addSpans(td)
		asLogs.addLogs(ld)
	}
	return spans, asLogs
}

// share is how many records of a batch its process p has.
func (g *generator) share(p int) int {
	return g.size*(p+1)/processesABatch - g.size*p/processesABatch
}

func (w *workload) addLogs(ld plog.Logs) {
	// Encoding fails for no data that was built by pdata itself.
	body, _ := plogotlp.NewExportRequestFromLogs(ld).MarshalProto()
	w.batches = append(w.batches, body)
	w.records += ld.LogRecordCount()
}

func (w *workload) addSpans(td ptrace.Traces) {
	body, _ := ptraceotlp.NewExportRequestFromTraces(td).MarshalProto()
	w.batches = append(w.batches, body)
	w.records += td.SpanCount()
}

// logResource makes one of the processes the resource.
func (g *generator) logResource(rl plog.ResourceLogs) plog.ScopeLogs {
	service, pod := g.rng.IntN(services), g.rng.IntN(podsOfService)
	attrs := rl.Resource().Attributes()
	attrs.PutStr("service.name", "svc-"+names[service])
	attrs.PutStr("k8s.pod.name", fmt.Sprintf("svc-%s-6d8f9c7b5-x%02d%d", names[service], service, pod))
	attrs.PutStr("k8s.node.name", fmt.Sprintf("node-%02d", (service*podsOfService+pod)%12))
	attrs.PutStr("service.namespace", "shop")
	sl := rl.ScopeLogs().AppendEmpty()
	sl.Scope().SetName("github.com/example/svc/" + names[service])
	return sl
}

// next moves on to the next record: time, trace and span.
func (g *generator) next() {
	g.now = g.now.Add(recordStep + time.Duration(g.rng.IntN(int(recordStep))))
	if g.inTrace == 0 {
		g.inTrace = recordsPerTrace
		binary.BigEndian.PutUint64(g.trace[:8], g.rng.Uint64())
		binary.BigEndian.PutUint64(g.trace[8:], g.rng.Uint64())
		g.span = pcommon.SpanID{}
	}
	g.inTrace--
	g.parent = g.span
	binary.BigEndian.PutUint64(g.span[:], g.rng.Uint64()|1)
}

func (g *generator) logRecord(lr plog.LogRecord) {
	lr.SetTimestamp(pcommon.NewTimestampFromTime(g.now))
	lr.SetObservedTimestamp(pcommon.NewTimestampFromTime(g.now.Add(40 * time.Microsecond)))
	lr.SetTraceID(g.trace)
	lr.SetSpanID(g.span)
	lr.SetFlags(plog.DefaultLogRecordFlags.WithIsSampled(true))
	lr.SetSeverityNumber(plog.SeverityNumberInfo)
	lr.SetSeverityText("INFO")
	failed := g.attributes(lr.Attributes())
	if failed {
		lr.SetSeverityNumber(plog.SeverityNumberError)
		lr.SetSeverityText("ERROR")
	}
	lr.Body().SetStr(g.body())
}

func (g *generator) spanRecord(sp ptrace.Span) {
	sp.SetTraceID(g.trace)
	sp.SetSpanID(g.span)
	sp.SetParentSpanID(g.parent)
	sp.SetFlags(1)
	sp.SetKind(ptrace.SpanKind(2 + g.rng.IntN(2)))
	sp.SetStartTimestamp(pcommon.NewTimestampFromTime(g.now))
	sp.SetEndTimestamp(pcommon.NewTimestampFromTime(g.now.Add(time.Duration(g.rng.ExpFloat64() * 2e7))))
	if g.attributes(sp.Attributes()) {
		sp.Status().SetCode(ptrace.StatusCodeError)
		sp.Status().SetMessage("upstream answered 503")
	}
	route, _ := sp.Attributes().Get("http.route")
	method, _ := sp.Attributes().Get("http.request.method")
	sp.SetName(method.Str() + " " + route.Str())
}

// asLog gives lr the content of sp, as far as a log record has room for it.
func asLog(sp ptrace.Span, lr plog.LogRecord) {
	lr.SetTimestamp(sp.StartTimestamp())
	lr.SetObservedTimestamp(sp.EndTimestamp())
	lr.SetTraceID(sp.TraceID())
	lr.SetSpanID(sp.SpanID())
	lr.SetFlags(plog.LogRecordFlags(sp.Flags()))
	sp.Attributes().CopyTo(lr.Attributes())
	lr.Body().SetStr(sp.Name())
	if !sp.ParentSpanID().IsEmpty() {
		lr.Attributes().PutStr("parent_span_id", sp.ParentSpanID().String())
	}
	lr.Attributes().PutStr("span_kind", strings.ToLower(sp.Kind().String()))
	lr.Attributes().PutInt("duration_ns", int64(sp.EndTimestamp()-sp.StartTimestamp()))
	if sp.Status().Code() == ptrace.StatusCodeError {
		lr.Attributes().PutStr("status", "error")
		lr.Attributes().PutStr("status_message", sp.Status().Message())
	}
}

// attributes adds 15 attributes of a request and tells whether it failed.
func (g *generator) attributes(a pcommon.Map) (failed bool) {
	r := g.rng
	failed = r.IntN(50) == 0
	code := int64(200)
	if failed {
		code = 503
	}
	route := routes[r.IntN(len(routes))]
	user := int(r.ExpFloat64() * 2000) // some users ask often
	a.EnsureCapacity(18)
	a.PutStr("http.request.method", methods[r.IntN(len(methods))])
	a.PutStr("http.route", route)
	a.PutStr("url.path", strings.Replace(route, "{id}", fmt.Sprint(r.IntN(100_000)), 1))
	a.PutInt("http.response.status_code", code)
	a.PutInt("http.response.body.size", int64(r.ExpFloat64()*4000))
	a.PutStr("client.address", fmt.Sprintf("10.%d.%d.%d", r.IntN(4), r.IntN(256), user%256))
	a.PutStr("user.id", fmt.Sprintf("u-%07d", user))
	a.PutStr("request.id", fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", r.Uint32(), r.IntN(1<<16), r.IntN(1<<12), r.IntN(1<<12), r.Int64N(1<<48)))
	a.PutStr("gen_ai.request.model", models[r.IntN(len(models))])
	a.PutInt("gen_ai.usage.input_tokens", int64(r.ExpFloat64()*900))
	a.PutInt("gen_ai.usage.output_tokens", int64(r.ExpFloat64()*250))
	a.PutDouble("latency_ms", float64(int(r.ExpFloat64()*80_000))/1000)
	a.PutStr("thread.name", fmt.Sprintf("worker-%d", r.IntN(16)))
	a.PutStr("code.function.name", functions[r.IntN(len(functions))])
	a.PutBool("cache.hit", r.IntN(3) == 0)
	return failed
}

// body is a log line: a real one with this record's ids, or one made up.
func (g *generator) body() string {
	r := g.rng
	if len(g.lines) > 0 {
		line := g.lines[r.IntN(len(g.lines))]
		return strings.NewReplacer(traceMark, g.trace.String(), spanMark, g.span.String()).Replace(line)
	}
	switch r.IntN(6) {
	case 0:
		return fmt.Sprintf("request for %s finished after %d ms with %d tokens", models[r.IntN(len(models))], int(r.ExpFloat64()*80), r.IntN(1500))
	case 1:
		return fmt.Sprintf("cache lookup of key session:%08x in shard %d: %d entries scanned", r.Uint32(), r.IntN(64), r.IntN(200))
	case 2:
		return fmt.Sprintf("SELECT id, name, price FROM orders WHERE customer = %d AND state IN ('open','paid') ORDER BY created LIMIT 50 -- %d rows in %.3f ms", r.IntN(100_000), r.IntN(50), r.ExpFloat64()*3)
	case 3:
		return fmt.Sprintf("called svc-%s, attempt %d, connection reused=%t, remote=10.42.%d.%d:8080", names[r.IntN(len(names))], 1+r.IntN(3), r.IntN(2) == 0, r.IntN(12), r.IntN(256))
	case 4:
		return fmt.Sprintf("queue depth %d, batch of %d sequences scheduled, kv cache %.1f%% used", r.IntN(300), r.IntN(64), r.Float64()*100)
	default:
		return fmt.Sprintf("user %d authenticated by token ending in %06x; roles: reader, buyer", r.IntN(10_000), r.IntN(1<<24))
	}
}

var (
	names = []string{
		"gateway", "auth", "cart", "catalog", "checkout", "currency", "email", "fraud", "inventory", "llm-router",
		"orders", "payment", "pricing", "profile", "ranking", "reco", "retriever", "search", "shipping", "vector",
	}
	routes = []string{
		"/v1/chat/completions", "/v1/embeddings", "/api/orders/{id}", "/api/cart/{id}/items", "/api/products/{id}",
		"/api/users/{id}/profile", "/api/search", "/api/payments/{id}", "/internal/score", "/healthz",
	}
	methods   = []string{"GET", "GET", "GET", "POST", "POST", "PUT"}
	models    = []string{"llama-3.1-8b", "llama-3.1-70b", "qwen2.5-32b", "bge-m3"}
	functions = []string{
		"handler.ServeChat", "handler.Embed", "orders.(*Repo).Load", "cart.(*Service).Add", "catalog.Lookup",
		"search.(*Index).Query", "payment.Charge", "ranking.Score", "cache.(*Shard).Get", "auth.Verify", "router.Pick", "stream.Flush",
	}
)
