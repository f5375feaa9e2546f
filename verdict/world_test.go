package verdict

import (
	"fmt"
	"math/rand/v2"
	"time"

	"inquest/sensor"
)

// world is a small AI service in virtual time: a gateway calls an api, which
// asks a retriever (which asks a vector store without telemetry of its own) and
// then a model server.
type world struct {
	rng *rand.Rand
	src *sensor.Memory
	now time.Time
	id  int
	// fault is asked at each place whether it is in force.
	fault string
	on    bool
}

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const (
	quiet    = 40 * time.Minute // before the fault
	incident = 5 * time.Minute
)

// build runs the world through a quiet time and an incident with a fault.
func build(fault string) *sensor.Memory {
	w := &world{rng: rand.New(rand.NewPCG(7, 11)), src: &sensor.Memory{}, now: start, fault: fault}
	metrics := newGauges(w)
	for w.now.Before(start.Add(quiet + incident)) {
		w.on = !w.now.Before(start.Add(quiet))
		rate := 2 * time.Second
		if w.is("surge") {
			rate /= 6
		}
		w.request()
		metrics.scrape()
		w.now = w.now.Add(time.Duration(float64(rate) * (0.5 + w.rng.Float64())))
	}
	return w.src
}

func (w *world) is(fault string) bool { return w.on && w.fault == fault }

// ms returns about v milliseconds.
func (w *world) ms(v float64) time.Duration {
	return time.Duration(v * (0.8 + 0.4*w.rng.Float64()) * float64(time.Millisecond))
}

// span adds a span and returns its identifier.
func (w *world) span(trace, parent, service, name, kind string, at time.Time, d time.Duration, failed bool) string {
	w.id++
	id := fmt.Sprintf("%016x", w.id)
	w.src.AllSpans = append(w.src.AllSpans, sensor.Span{
		TraceID: trace, SpanID: id, Parent: parent, Service: service, Pod: service + "-7d9f4-x2k8p", Node: "n1",
		Name: name, Kind: kind, Start: at.UnixNano(), Duration: int64(d), Error: failed,
	})
	return id
}

func (w *world) log(trace, span, service string, at time.Time, severity int, body string) {
	w.src.AllLogs = append(w.src.AllLogs, sensor.Log{
		Time: at.UnixNano(), Service: service, Pod: service + "-7d9f4-x2k8p", Node: "n1",
		Severity: severity, Body: body, TraceID: trace, SpanID: span,
	})
}

// request adds one request from the outside in, durations from the inside out.
func (w *world) request() {
	w.id++
	trace := fmt.Sprintf("%032x", w.id)
	t := w.now
	search := w.ms(12)
	if w.is("slow vector store") {
		search *= 40
	}
	retrieve := search + w.ms(3)
	infer := w.ms(400)
	if w.is("queue") {
		infer += w.ms(4000)
	}
	if w.is("cpu") {
		retrieve += w.ms(90)
	}
	if w.is("node") {
		retrieve += w.ms(60)
		infer += w.ms(900)
	}
	way := w.ms(2)
	if w.is("network") {
		way += w.ms(300)
	}
	broken := w.is("exception") && w.rng.IntN(10) < 8
	own := w.ms(5)
	if w.is("node") {
		own += w.ms(60)
	}
	api := own + retrieve + way + w.ms(2) + infer
	if broken {
		api = own + retrieve + way
	}
	front := api + w.ms(4)
	gw := w.span(trace, "", "gateway", "POST /chat", "server", t, front+w.ms(3), broken)
	gc := w.span(trace, gw, "gateway", "call api", "client", t.Add(time.Millisecond), front, broken)
	a := w.span(trace, gc, "chat-api", "POST /answer", "server", t.Add(2*time.Millisecond), api, broken)
	w.log(trace, a, "chat-api", t.Add(3*time.Millisecond), 9, fmt.Sprintf("question received length=%d", w.rng.IntN(500)))
	at := t.Add(3*time.Millisecond + own/2)
	rc := w.span(trace, a, "chat-api", "call retriever", "client", at, retrieve+way, false)
	r := w.span(trace, rc, "retriever", "POST /search", "server", at.Add(way/2), retrieve, false)
	w.span(trace, r, "retriever", "vector search", "client", at.Add(way/2+time.Millisecond), search, false)
	w.log(trace, r, "retriever", at.Add(way/2+search+time.Millisecond), 9, fmt.Sprintf("found documents count=%d", w.rng.IntN(20)))
	at = at.Add(retrieve + way)
	if broken {
		w.log(trace, gw, "gateway", at.Add(4*time.Millisecond), 17, "upstream failed with status 500")
		return
	}
	w.log(trace, a, "chat-api", at, 9, "prompt assembled from documents")
	ic := w.span(trace, a, "chat-api", "call model", "client", at.Add(time.Millisecond), infer+w.ms(2), false)
	m := w.span(trace, ic, "model-server", "llm_request", "server", at.Add(2*time.Millisecond), infer, false)
	w.log(trace, m, "model-server", at.Add(3*time.Millisecond), 9, "request finished reason=stop")
	w.log(trace, a, "chat-api", at.Add(infer+3*time.Millisecond), 9, "answer sent")
}

// gauges are the metric series of the world, scraped each 15 s.
type gauges struct {
	w    *world
	next time.Time
	all  map[string]*sensor.Series
}

func newGauges(w *world) *gauges { return &gauges{w: w, next: start, all: map[string]*sensor.Series{}} }

func (g *gauges) set(name, unit, pod string, v float64, labels ...string) {
	key := name + pod
	s := g.all[key]
	if s == nil {
		l := map[string]string{"pod": pod + "-7d9f4-x2k8p", "service": pod, "node": "n1"}
		if pod == "" {
			l = map[string]string{"node": "n1"}
		}
		for i := 0; i+1 < len(labels); i += 2 {
			l[labels[i]] = labels[i+1]
		}
		g.w.src.AllSeries = append(g.w.src.AllSeries, sensor.Series{Name: name, Unit: unit, Labels: l})
		g.all = map[string]*sensor.Series{} // the slice may have moved
		for i := range g.w.src.AllSeries {
			x := &g.w.src.AllSeries[i]
			g.all[x.Name+x.Labels["service"]] = x
		}
		s = g.all[key]
	}
	s.Points = append(s.Points, sensor.Point{Time: g.next.UnixNano(), Value: v})
}

func (g *gauges) scrape() {
	w := g.w
	if w.now.Before(g.next) {
		return
	}
	for _, pod := range []string{"gateway", "chat-api", "retriever", "model-server"} {
		cpu, mem := 0.2+0.1*w.rng.Float64(), 0.5+0.02*w.rng.Float64()
		if pod == "retriever" && w.is("cpu") {
			cpu = 0.99
		}
		if pod == "chat-api" && w.is("memory") {
			mem = 0.97
		}
		g.set("k8s.pod.cpu_limit_utilization", "1", pod, cpu)
		g.set("k8s.pod.memory_limit_utilization", "1", pod, mem)
	}
	node := 0.3 + 0.1*w.rng.Float64()
	if w.is("node") {
		node = 0.99
	}
	g.set("k8s.node.cpu.utilization", "1", "", node)
	waiting, kv, ttft, running := float64(w.rng.IntN(2)), 0.3+0.1*w.rng.Float64(), 0.2+0.05*w.rng.Float64(), 3.0
	if w.is("queue") {
		node := 0.3 + 0.1*w.rng.Float64()
		if w.is("node") {
			node = 0.99
		}
		g.set("k8s.node.cpu.utilization", "1", "", node)
		waiting, kv, ttft, running = 40+float64(w.rng.IntN(20)), 0.97, 4+w.rng.Float64(), 16
	}
	g.set("vllm:num_requests_waiting", "", "model-server", waiting, "model_name", "m1")
	g.set("vllm:num_requests_running", "", "model-server", running, "model_name", "m1")
	g.set("vllm:kv_cache_usage_perc", "", "model-server", kv, "model_name", "m1")
	g.set("time_to_first_token_seconds", "s", "model-server", ttft, "model_name", "m1")
	confidence := 0.9 + 0.02*w.rng.Float64()
	if w.is("bad model") {
		confidence = 0.55 + 0.05*w.rng.Float64()
	}
	g.set("answer_confidence", "1", "model-server", confidence)
	rate := 0.5 + 0.05*w.rng.Float64()
	if w.is("surge") {
		rate *= 6
	}
	for _, pod := range []string{"gateway", "chat-api", "retriever", "model-server"} {
		g.set("http.server.requests", "{request}/s", pod, rate)
	}
	if w.is("bad model") && g.next.Sub(start) < quiet+30*time.Second {
		w.log("", "", "model-server", g.next, 9, "loading weights from revision cafe")
	}
	if w.is("memory") {
		w.log("", "", "chat-api", g.next, 17, "java.lang.OutOfMemoryError: heap space")
	}
	g.next = g.next.Add(15 * time.Second)
}
