package coverage

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// none is the parent of a root.
var none = pcommon.SpanID{}

// expect compares the tears, written as "kind from>to count/of".
func expect(t *testing.T, r *Report, want ...string) {
	t.Helper()
	var got []string
	for _, tear := range r.Tears {
		got = append(got, fmt.Sprintf("%s %s>%s %d/%d", tear.Kind, tear.From, tear.To, tear.Count, tear.Of))
		if tear.Text == "" || tear.Share <= 0 || tear.Share > 1 {
			t.Errorf("tear %+v", tear)
		}
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("tears\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		for _, tear := range r.Tears {
			t.Log(tear.Text, tear.Evidence)
		}
	}
}

// requests adds n requests that chat-api serves and hands to a task; it returns
// the ids of the producer spans.
func requests(w *world, n int) (producers []pcommon.SpanID) {
	for i := range n {
		trace, ms := uint64(i+1), 1000*i
		id := fmt.Sprintf("req-%08d", i)
		server := w.span("chat-api", "server", "POST /chat", trace, none, ms, 400, "request.id", id)
		producers = append(producers, w.span("chat-api", "producer", "apply_async/tasks.infer", trace, server, ms+10, 5,
			"messaging.destination.name", "celery", "celery.task_name", "tasks.infer", "messaging.message.id", fmt.Sprintf("m-%d", i)))
		w.log("chat-api", "accepted", trace, ms+5, "request.id", id)
	}
	return producers
}

func TestHealthy(t *testing.T) {
	w := newWorld(t)
	for i, p := range requests(w, 20) {
		id := fmt.Sprintf("req-%08d", i)
		w.span("worker", "consumer", "run/tasks.infer", uint64(i+1), p, 1000*i+30, 200, "request.id", id)
		w.log("worker", "answered", uint64(i+1), 1000*i+100, "request.id", id)
		w.span("worker", "client", "SELECT", uint64(i+1), none, 1000*i+120, 2, "server.address", "db", "request.id", id)
	}
	r := w.measure(Options{})
	expect(t, r)
	if text, err := json.Marshal(r); err != nil || !strings.Contains(string(text), `"tears":[]`) {
		t.Errorf("%s, %v", text, err)
	}
	for _, s := range r.Services {
		if s.TraceID.OwnShare != 1 || s.SpanID.OwnShare != 1 || s.Records == 0 || s.RequestID.WithShare != 1 {
			t.Errorf("%+v", s)
		}
	}
	if len(r.Services) != 2 || r.Services[0].Records != 60 || r.Services[1].Logs != 20 || r.Services[1].Spans != 40 {
		t.Errorf("services %+v", r.Services)
	}
}

// TestWorkerRoots: the worker sends spans, but takes no context from messages.
func TestWorkerRoots(t *testing.T) {
	w := newWorld(t)
	for i, p := range requests(w, 20) {
		trace, parent := uint64(1000+i), none
		if i < 5 {
			trace, parent = uint64(i+1), p
		}
		w.span("worker", "consumer", "run/tasks.infer", trace, parent, 1000*i+30, 200, "messaging.message.id", fmt.Sprintf("m-%d", i))
		w.log("worker", "answered", trace, 1000*i+100)
	}
	r := w.measure(Options{Examples: 2})
	expect(t, r, "broken_context chat-api>worker 15/20", "request_id_lost chat-api>worker 5/5")
	if e := r.Tears[0].Examples; len(e) != 2 || e[0].Time.Sub(w.at) != 5010e6 {
		t.Errorf("examples %+v", e)
	}
}

// TestWorkerUninstrumented: the library is taken out of the worker.
func TestWorkerUninstrumented(t *testing.T) {
	f := func(worker string, ids bool, want ...string) {
		t.Helper()
		w := newWorld(t)
		requests(w, 20)
		for i := range 20 {
			body := "answered"
			if ids {
				body = fmt.Sprintf("answered request_id=req-%08d", i)
			}
			w.log(worker, body, 0, 1000*i+100)
		}
		r := w.measure(Options{})
		expect(t, r, want...)
		if s := r.service(worker); s == nil || s.TraceID.Own != 0 || (s.TraceID.WithShare == 1) != ids || (s.RequestID.WithShare == 1) != ids || s.Binding.ByRequestID != map[bool]int{true: 20}[ids] {
			t.Errorf("%+v", s)
		}
	}
	f("celery-worker", false, "no_ids chat-api>celery-worker 20/20") // named by the queue
	f("embedder", false, "no_ids chat-api>embedder 20/20")           // the only one without spans
	f("tasks", true, "no_ids chat-api>tasks 20/20")
}

func TestCallsByName(t *testing.T) {
	f := func(peer, want string) {
		t.Helper()
		w := newWorld(t)
		for i := range 10 {
			w.span("gateway", "client", "POST", uint64(i+1), none, 1000*i, 300, "server.address", peer)
			w.span("ranker", "server", "POST /rank", uint64(100+i), none, 1000*i+20, 200)
			w.span("other", "server", "GET /", uint64(200+i), none, 1000*i+50, 100)
		}
		if want == "" {
			expect(t, w.measure(Options{}))
			return
		}
		expect(t, w.measure(Options{}), want)
	}
	f("ranker", "broken_context gateway>ranker 10/10")
	f("ranker.prod.svc.cluster.local", "broken_context gateway>ranker 10/10")
	f("ranker-1", "broken_context gateway>ranker 10/10") // an instance of it
	f("db.example.com", "")                              // times fit two services
}

func TestCallsByTime(t *testing.T) {
	w := newWorld(t)
	for i := range 10 {
		w.span("gateway", "client", "POST", uint64(i+1), none, 10000*i, 300, "server.address", "10.0.0.9")
		w.span("ranker", "server", "POST /rank", uint64(100+i), none, 10000*i+20, 200)
		w.span("gateway", "client", "SELECT", uint64(i+1), none, 10000*i+500, 3, "server.address", "db")
		w.span("other", "server", "GET /", uint64(200+i), none, 10000*i+5000, 100)
	}
	expect(t, w.measure(Options{}), "broken_context gateway>ranker 10/10")
}

func TestUnknownParents(t *testing.T) {
	w := newWorld(t)
	for i := range 10 {
		trace := uint64(i + 1)
		w.span("gateway", "client", "POST", trace, none, 1000*i, 300)
		parent := pcommon.SpanID{9, 9, byte(i)} // of a proxy that sends no spans
		w.span("ranker", "server", "POST /rank", trace, parent, 1000*i+20, 200)
		w.span("edge", "server", "GET /", 100+trace, parent, 1000*i+50, 100)
	}
	r := w.measure(Options{})
	expect(t, r, "unknown_parent >edge 10/10", "unknown_parent gateway>ranker 10/10")
}

func TestRequestIDs(t *testing.T) {
	w := newWorld(t)
	for i := range 10 {
		trace := uint64(i + 1)
		id := fmt.Sprintf("req-%08d", i)
		server := w.span("gateway", "server", "POST /chat", trace, none, 1000*i, 400, "http.request.header.x-request-id", id)
		call := w.span("gateway", "client", "POST", trace, server, 1000*i+5, 300)
		below := id
		if i < 4 {
			below = "own-" + id
		}
		in := w.span("ranker", "server", "POST /rank", trace, call, 1000*i+20, 200, "request_id", below)
		out := w.span("ranker", "client", "POST", trace, in, 1000*i+30, 100)
		w.span("silent", "server", "POST /s", trace, out, 1000*i+40, 50)
	}
	r := w.measure(Options{})
	expect(t, r, "request_id_lost ranker>silent 10/10", "request_id_rewritten gateway>ranker 4/10")
	if text := r.Tears[1].Examples[0].Text; text != "gateway has req-00000000, ranker has own-req-00000000" {
		t.Error(text)
	}
	// The spans without an id of their own get that of their trace, where it has one.
	if s := r.service("silent"); s.RequestID.Own != 0 || s.RequestID.With != 6 {
		t.Errorf("%+v", s)
	}
}

func TestLogsWithoutIDsBesideSpans(t *testing.T) {
	w := newWorld(t)
	for i := range 10 {
		trace := uint64(i + 1)
		call := w.span("gateway", "client", "POST", trace, none, 1000*i, 300)
		w.span("ranker", "server", "POST /rank", trace, call, 1000*i+20, 200)
		w.log("ranker", "ranked", 0, 1000*i+50)
		w.log("ranker", "idle", 0, 1000*i+700)
	}
	r := w.measure(Options{})
	expect(t, r, "no_ids gateway>ranker 20/20")
	if s := r.service("ranker"); s.Binding.ByProcess != 10 || s.Binding.NoEvidence != 10 || s.TraceID.With != 20 || s.SpanID.With != 20 {
		t.Errorf("%+v", s)
	}
}

func TestFits(t *testing.T) {
	w := newWorld(t)
	for i := range 40 {
		w.span("gateway", "server", "GET /", uint64(i+1), none, 6000*i, 10)
	}
	r := w.measure(Options{MaxSpans: 25})
	if got := r.SearchedFrom.Sub(w.at).Minutes(); got != 2 {
		t.Errorf("searched from minute %v", got)
	}
	if _, err := Measure(t.Context(), nil, w.at, w.at, Options{}); err == nil {
		t.Error("an empty range is no error")
	}
}
