package traces

import (
	"testing"

	"inquest/sensor"
)

func TestPhaseOfName(t *testing.T) {
	f := func(name, kind, subject string) {
		t.Helper()
		if got := phaseOf(name); got != (phase{kind, subject}) {
			t.Errorf("%s: %v, want %s %s", name, got, kind, subject)
		}
	}
	f("dns.lookup", KindConnectTime, "dns")
	f("tcp.connect", KindConnectTime, "connect")
	f("tls.handshake", KindConnectTime, "tls")
	f("TLSHandshake", KindSpanTime, "TLSHandshake") // humps begin after a small letter only
	f("tlsHandshake", KindConnectTime, "tls")
	f("queue.wait", KindQueueTime, "queue.wait")
	f("pool acquire", KindQueueTime, "pool acquire")
	f("wait for connect", KindQueueTime, "wait for connect")
	f("model.load", KindLoadTime, "model.load")
	f("load_weights", KindLoadTime, "load_weights")
	f("capture cuda graphs", KindLoadTime, "capture cuda graphs")
	f("warm_up", KindLoadTime, "warm_up")
	f("load user", KindSpanTime, "load user")
	f("render", KindSpanTime, "render")
	f("GET /queue/17", KindSpanTime, "GET /queue/*")
}

// inside is a request with one internal span.
func inside(name string) []sensor.Span {
	return []sensor.Span{
		sp("a", "", "front", "GET /", "server", 0, 100, false),
		sp("b", "a", "front", name, "internal", 10, 30, false),
		sp("c", "b", "front", "part", "internal", 15, 5, false),
	}
}

func TestPhases(t *testing.T) {
	f := func(name, kind string, want float64) {
		t.Helper()
		for k, s := range measure(t, Phases{}, inside(name)...).Values {
			if k.Kind == kind && k.Subject != "part" {
				if len(s.Values) != 1 || s.Values[0] != want {
					t.Errorf("%s: %v ms, want %v", name, s.Values, want)
				}
				return
			}
		}
		t.Errorf("%s: no %s", name, kind)
	}
	f("tls.handshake", KindConnectTime, 30)
	f("queue.wait", KindQueueTime, 30)
	f("model.load", KindLoadTime, 30)
	f("render", KindSpanTime, 25) // without its child
}

func TestSpanTimeIsOfInternalSpansOnly(t *testing.T) {
	if p := measure(t, Phases{}, call(false)...); len(p.Values) != 0 {
		t.Errorf("a call has phases: %v", p.Values)
	}
}

func TestQueueTimeOfTheEngine(t *testing.T) {
	s := sp("a", "", "vllm", "llm_request", "server", 0, 100, false)
	s.Attributes = map[string]string{"llm.request.queue_time": "0.25"}
	if v := one(t, measure(t, Phases{}, s), KindQueueTime, "vllm"); v != 250 {
		t.Errorf("%v ms, want 250", v)
	}
}

func TestConnectTimeOfTheWay(t *testing.T) {
	p := measure(t, Phases{},
		sp("a", "", "front", "call", "client", 0, 100, false),
		sp("b", "a", "front", "tls.handshake", "internal", 0, 40, false),
		sp("c", "a", "back", "GET /b", "server", 50, 40, false))
	ends := map[sensor.Key]bool{}
	for k, s := range p.Values {
		if k.Kind != KindConnectTime || k.Subject != "tls" || s.Values[0] != 40 {
			t.Errorf("%+v %v", k, s.Values)
		}
		ends[sensor.Key{Entity: k.Entity, Peer: k.Peer}] = true
	}
	if !ends[sensor.Key{Entity: sensor.Service("front")}] || !ends[sensor.Key{Entity: sensor.Service("back"), Peer: sensor.Service("front")}] {
		t.Errorf("%v", ends)
	}
}
