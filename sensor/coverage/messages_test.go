package coverage

import (
	"fmt"
	"strings"
	"testing"
)

// taskID is an id as Celery makes them.
func taskID(i int) string { return fmt.Sprintf("0b8fe2c4-51c7-4a3f-9d53-%012d", i) }

// publish adds n messages that chat-api sends, at times that no clock has, and
// returns those times in ms.
func publish(w *world, n int) (times []int) {
	for i := range n {
		ms := 1000*i + i*i*7%600
		times = append(times, ms)
		server := w.span("chat-api", "server", "POST /chat", uint64(i+1), none, ms-10, 40)
		w.span("chat-api", "producer", "publish shop.infer", uint64(i+1), server, ms, 5,
			"messaging.destination.name", "celery", "celery.task_name", "shop.infer", "messaging.message.id", taskID(i))
	}
	return times
}

// TestMessagesInLogs: the worker takes no context, but its task queue logs the
// ids of the messages.
func TestMessagesInLogs(t *testing.T) {
	f := func(ids, spans bool, want ...string) {
		t.Helper()
		w := newWorld(t)
		for i, ms := range publish(w, 40) {
			id, trace := "", uint64(0)
			if ids {
				id = taskID(i)
			}
			if spans {
				trace = uint64(1000 + i)
				w.span("gpu", "internal", "generate", trace, none, ms+50+i*37%500, 100)
			}
			w.log("gpu", fmt.Sprintf("Task shop.infer[%s] succeeded in 0.1s", id), trace, ms+150)
			w.log("proxy", "GET / 200", 0, ms+20) // another one without ids
		}
		expect(t, w.measure(Options{}), want...)
	}
	f(true, true, "broken_context chat-api>gpu 40/40", "no_ids >proxy 40/40")
	f(true, false, "no_ids chat-api>gpu 40/40", "no_ids >proxy 40/40")
	f(false, false, "untaken chat-api>celery 40/40", "no_ids >gpu 40/40", "no_ids >proxy 40/40")
	f(false, true, "untaken chat-api>celery 40/40", "no_ids >proxy 40/40")
}

// TestMessageIDInField: the id is an attribute, and two services that log it
// decide nothing.
func TestMessageIDInField(t *testing.T) {
	f := func(second string, want ...string) {
		t.Helper()
		w := newWorld(t)
		for i, ms := range publish(w, 20) {
			for _, service := range []string{"gpu", second} {
				w.span(service, "server", "GET /metrics", uint64(5000+i*2+len(service)%2), none, ms+300+i*53%400, 2)
				w.log(service, "ran", uint64(5000+i*2+len(service)%2), ms+301, "celery.task_id", taskID(i))
			}
		}
		expect(t, w.measure(Options{}), want...)
	}
	f("gpu", "broken_context chat-api>gpu 20/20")
	f("audit", "untaken chat-api>celery 20/20")
}

// TestTracesBegunByTheWorker: the worker makes spans of its own, whose names or
// times tell whose messages it takes.
func TestTracesBegunByTheWorker(t *testing.T) {
	f := func(kind, name string, delay func(i int) int, want ...string) {
		t.Helper()
		w := newWorld(t)
		for i, ms := range publish(w, 60) {
			trace := uint64(1000 + i)
			w.span("worker", kind, name, trace, none, ms+delay(i), 100)
			w.log("worker", "answered", trace, ms+delay(i)+50)
			w.span("cron", "internal", "tick", uint64(2000+i), none, 1000*i, 3) // at times of its own
			w.span("poller", "client", "GET", uint64(3000+2*i), none, 500*i, 3)
			w.span("poller", "client", "GET", uint64(3001+2*i), none, 500*i+250, 3)
		}
		expect(t, w.measure(Options{}), want...)
	}
	soon := func(i int) int { return 2 + i%7*5 }
	late := func(i int) int { return i * 379 % 900 }
	torn, unknown := "broken_context chat-api>worker 60/60", "untaken chat-api>celery 60/60"
	f("internal", "infer", late, torn)
	f("internal", "shop.infer", late, torn)
	f("internal", "run/shop.infer", late, torn)
	f("internal", "generate answer", soon, torn)
	f("client", "POST", soon, torn)
	f("internal", "generate answer", late, unknown)
}

// TestOnlyBeginner: where times do not tell, the only service that begins as many
// traces is told to be the likely one.
func TestOnlyBeginner(t *testing.T) {
	f := func(each int, others []string, want ...string) {
		t.Helper()
		w := newWorld(t)
		for i, ms := range publish(w, 40) {
			for n := range each {
				trace := uint64(1000 + 100*i + n)
				w.span("gpu", "internal", "answer", trace, none, ms+200+i*379%5000+n*300, 10)
				w.log("gpu", "answered", trace, ms+100+i*379%5000+n*300)
			}
			for n, other := range others {
				w.span(other, "internal", "tick", uint64(9000+10*i+n), none, 1000*i+n, 3)
			}
		}
		expect(t, w.measure(Options{}), want...)
	}
	f(1, nil, "untaken chat-api>gpu 40/40")
	f(3, nil, "untaken chat-api>gpu 40/40")
	f(12, nil, "untaken chat-api>celery 40/40")
	f(1, []string{"cron"}, "untaken chat-api>celery 40/40")
	f(0, nil, "untaken chat-api>celery 40/40")
}

// TestNobodyTakes: whoever takes the messages sends nothing at all.
func TestNobodyTakes(t *testing.T) {
	f := func(n int, want ...string) {
		t.Helper()
		w := newWorld(t)
		publish(w, n)
		r := w.measure(Options{})
		expect(t, r, want...)
		if len(want) > 0 && !strings.Contains(r.Tears[0].Text, "sends to celery") {
			t.Error(r.Tears[0].Text)
		}
	}
	f(20, "untaken chat-api>celery 20/20")
	f(5, "untaken chat-api>celery 5/5")
	f(4)
}

// TestMessagesOnTheirWay: what is sent shortly before the end of the range is no
// tear where others arrive.
func TestMessagesOnTheirWay(t *testing.T) {
	w := newWorld(t)
	for i, p := range requests(w, 40) {
		if i < 30 {
			w.span("worker", "consumer", "run", uint64(i+1), p, 1000*i+30, 20, "request.id", "r")
		}
	}
	for _, tear := range w.measure(Options{}).Tears {
		if tear.Kind == Untaken {
			t.Errorf("%+v", tear)
		}
	}
}

func TestNamesTask(t *testing.T) {
	f := func(span, task string, want bool) {
		t.Helper()
		if got := namesTask(span, task); got != want {
			t.Errorf("namesTask(%q, %q) = %v", span, task, got)
		}
	}
	f("shop.infer", "shop.infer", true)
	f("infer", "shop.infer", true)
	f("run shop.infer", "shop.infer", true)
	f("run/shop.infer", "shop.infer", true)
	f("infer", "infer", true)
	f("inferring", "shop.infer", false)
	f("shop", "shop.infer", false)
	f("do", "shop.do", false)
	f("", "", false)
	f("run ", "shop.", false)
	f("GET", "", false)
}
