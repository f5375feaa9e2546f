package traces

import (
	"testing"

	"inquest/sensor"
)

func TestOrphanSpans(t *testing.T) {
	p := measure(t, Context{}, append(call(false), in("u", sp("x", "gone", "back", "GET /b", "server", 500, 5, false))...)...)
	if k, n := share(t, p, KindOrphanSpans, "back"); k != 1 || n != 2 {
		t.Errorf("%v of %v, want 1 of 2", k, n)
	}
	if k, n := share(t, p, KindOrphanSpans, "front"); k != 0 || n != 1 {
		t.Errorf("%v of %v, want 0 of 1", k, n)
	}
}

func TestBrokenContext(t *testing.T) {
	p := measure(t, Context{}, append(call(false), in("u", sp("x", "", "back", "GET /b", "server", 500, 5, false))...)...)
	if k, n := share(t, p, KindBrokenContext, "back"); k != 1 || n != 2 {
		t.Errorf("%v of %v, want 1 of 2", k, n)
	}
	if k, n := share(t, p, KindBrokenContext, "front"); k != 1 || n != 1 {
		t.Errorf("the way in: %v of %v, want 1 of 1", k, n)
	}
}

func TestLostSpans(t *testing.T) {
	again := in("u", call(false)[:2]...) // the callee's span is missing
	bad := in("v", sp("b", "", "front", "call", "client", 900, 5, true))
	p := measure(t, Context{}, append(append(call(false), again...), bad...)...)
	for k, h := range p.Shares {
		if k.Kind != KindLostSpans {
			continue
		}
		if k.Entity != sensor.Service("back") || k.Peer != sensor.Service("front") || h.K != 1 || h.N != 2 {
			t.Errorf("%+v: %v of %v, want 1 of 2 at back", k, h.K, h.N)
		}
	}
	if k, n := share(t, p, KindLostSpans, "back"); k != 1 || n != 2 {
		t.Errorf("%v of %v, want 1 of 2", k, n)
	}
}

func TestLostSpansWhereNoneArrives(t *testing.T) {
	f := func(want int, attrs map[string]string) {
		t.Helper()
		s := sp("b", "", "front", "call", "client", 0, 60, false)
		s.Attributes = attrs
		n := 0
		for k, h := range measure(t, Context{}, s).Shares {
			if k.Kind == KindLostSpans && k.Entity == sensor.Service("back") && h.K == 1 {
				n++
			}
		}
		if n != want {
			t.Errorf("%v: %d, want %d", attrs, n, want)
		}
	}
	f(1, map[string]string{"server.address": "back", "http.response.status_code": "200"})
	f(1, map[string]string{"server.address": "back.ai.svc.cluster.local:80", "rpc.system": "grpc"})
	f(0, map[string]string{"server.address": "back", "db.system": "redis"})
	f(0, map[string]string{"server.address": "back"})
	f(0, map[string]string{"server.address": "back.example.com", "http.response.status_code": "200"})
	f(0, map[string]string{"server.address": "10.0.0.1", "http.response.status_code": "200"})
}
