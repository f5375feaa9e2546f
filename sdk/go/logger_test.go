package inquest

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace/noop"
)

// TestNodes writes each node with its own fields only, and asks the schema.
func TestNodes(t *testing.T) {
	m := newMemory(t)
	l, dir := testLogger(t, m, func(c *Config) {
		c.CaptureInput = true
		c.System = func() System { return System{61440.5, 87.5, "qwen@3", "cuda:0"} }
	})
	ctx := m.serving(t, Request{ID: "r-1", UserID: "u-7", BizType: "qa"})
	nan := math.NaN()
	f := func(n Node, want string) {
		t.Helper()
		if err := l.Log(ctx, n); err != nil {
			t.Fatal(err)
		}
		all := spooled(t, dir)
		got := all[len(all)-1]
		if err := validate(t, got); err != nil {
			t.Errorf("%s\n%v", got, err)
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s\nlacks %s", got, want)
		}
		for _, each := range []string{`"req_id":"r-1"`, `"user_id":"u-7"`, `"biz_type":"qa"`, `"service":"chat-api"`, `"model_version":"qwen@3"`, HashInput("hello")} {
			if !strings.Contains(got, each) {
				t.Errorf("%s\nlacks %s", got, each)
			}
		}
	}
	f(&Ingress{Raw: "hello"}, `"input":"hello"`)
	f(&Preprocess{}, `"event":"preprocess"`)
	f(&Preprocess{Tokenization: &Tokenization{Length: 512, Truncated: true, TruncationSide: "right", MaxLength: 512}},
		`"tokenization":{"length":512,"truncated":true,"truncation_side":"right","max_length":512}`)
	f(&Feature{Deviations: map[string]float64{"age": 3.5, "inf": math.Inf(1), "nan": nan}, Unseen: []string{"city"}},
		`"unseen":["city"],"out_of_range":["nan"]`)
	f(&ModelLoad{ConfiguredVersion: "3", ConfiguredPath: "/m", FileSHA256: HashInput(""), Fallback: true}, `"level":"WARN"`)
	f(&Inference{Stages: map[string]time.Duration{"prefill": 31 * time.Millisecond}}, `"inference":{"stages":{"prefill":0.031}}`)
	f(&Inference{Common: Common{Op: "generate", Output: StatsOf([]float32{1, float32(nan), -2})}},
		`"output_stats":{"shape":[3],"dtype":"float32","has_nan":true,"min_val":-2,"max_val":1}`)
	f(&Postprocess{Common{Message: "<b> & \u2028"}}, `"message":"<b> & \u2028"`)
	f(&Egress{Common{Extra: map[string]any{"tenant": "a", "raw": json.RawMessage("[1,\n2]")}}}, `,"raw":[1,2],"tenant":"a"}`)
	f(&Egress{Common{Input: &Stats{Shape: []int{-1}, Min: &nan}}}, `{"shape":[0],"dtype":"unknown","has_nan":true,"min_val":null`)
	f(&Decision{Type: DecisionFallback, Reason: "timeout", From: "a", To: "b"}, `"decision":{"type":"fallback","reason":"timeout","from":"a","to":"b"}`)
	f(&Decision{Type: DecisionCache, Common: Common{Level: LevelDebug}}, `"level":"DEBUG"`)
	if c := l.Counters(); c != (Counters{Durable: 12}) {
		t.Errorf("%+v", c)
	}
}

// TestIncomplete writes what it has, says what is missing, and never loses it.
func TestIncomplete(t *testing.T) {
	m := newMemory(t)
	f := func(name string, n Node, tracing bool, in func(context.Context) context.Context, want string) {
		t.Run(name, func(t *testing.T) {
			l, dir := testLogger(t, m, func(c *Config) {
				if !tracing {
					c.Tracer = noop.NewTracerProvider()
				}
			})
			err := l.Log(in(t.Context()), n)
			if want == "" && err != nil || want != "" && (!errors.Is(err, ErrIncomplete) || !strings.Contains(err.Error(), want)) {
				t.Errorf("got %v, want %q", err, want)
			}
			if c := l.Counters(); c.Durable != 1 || (c.Incomplete == 1) != (want != "") || len(spooled(t, dir)) != 1 {
				t.Fatalf("%+v", c)
			}
			if bad := validate(t, spooled(t, dir)[0]); want == "" && bad != nil {
				t.Error(bad)
			}
		})
	}
	bare := func(ctx context.Context) context.Context { return ctx }
	request := func(ctx context.Context) context.Context { return WithRequest(ctx, Request{}) }
	f("no span", &Ingress{Raw: "x"}, true, request, "") // a span of its own
	f("no tracer", &Ingress{Raw: "x"}, false, request, "no span")
	f("no request", &Ingress{Raw: "x"}, true, bare, "no request id")
	f("no input", &Egress{}, true, request, "no hash of the input")
	f("model load at start", &ModelLoad{ConfiguredPath: "/m"}, true, bare, "")
	f("odd decision", &Decision{Type: "whim", Common: Common{}}, true, request, `decision type "whim"`)
	f("odd side", &Preprocess{Tokenization: &Tokenization{TruncationSide: "top"}}, true, request, `truncation side "top"`)
	f("odd level", &Ingress{Common: Common{Level: "LOUD"}}, true, request, `level "LOUD"`)
	f("odd hash", &ModelLoad{FileSHA256: "x"}, true, request, "is no hash")
	f("odd time", &Ingress{Common: Common{Time: time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC)}}, true, request, "the time")
	f("extra", &Ingress{Common: Common{Extra: map[string]any{"f": func() {}}}}, true, request, `extra member "f"`)
	f("taken name", &Ingress{Common: Common{Extra: map[string]any{"level": 1}}}, true, request, `extra member "level"`)
}

// TestNotText keeps an input that JSON cannot hold out of the event, and its hash in.
func TestNotText(t *testing.T) {
	m := newMemory(t)
	l, dir := testLogger(t, m, func(c *Config) { c.CaptureInput = true })
	if err := l.Ingress(m.serving(t, Request{}), Ingress{Raw: "\xff\xfe"}); err != nil {
		t.Fatal(err)
	}
	e := spooled(t, dir)[0]
	if strings.Contains(e, `"input":`) || !strings.Contains(e, HashInput("\xff\xfe")) {
		t.Error(e)
	}
}

// TestOverOTel sends events without a spool, or when the spool fails.
func TestOverOTel(t *testing.T) {
	m := newMemory(t)
	l, _ := testLogger(t, m, func(c *Config) { c.Logs = m.logs })
	ctx := m.serving(t, Request{ID: "r-9"})
	l.cfg.Spool.Close()
	if err := l.Ingress(ctx, Ingress{Raw: "x"}); err == nil || errors.Is(err, ErrIncomplete) {
		t.Errorf("the spool is closed: %v", err)
	}
	l.cfg.Spool = nil
	if err := l.Egress(ctx, Egress{}); err != nil {
		t.Error(err)
	}
	if c := l.Counters(); c != (Counters{Emitted: 2, Failed: 1}) || len(m.records) != 2 {
		t.Fatalf("%+v, %d records", c, len(m.records))
	}
	r := m.records[1]
	if err := validate(t, r.Body().AsString()); err != nil || r.EventName() != "ai.egress" || !r.TraceID().IsValid() {
		t.Errorf("%v %s", err, r.EventName())
	}
}

func TestConfig(t *testing.T) {
	f := func(c Config) {
		t.Helper()
		if _, err := NewLogger(c); err == nil {
			t.Error("taken")
		}
	}
	f(Config{})
	f(Config{Service: "x"})
}

// TestOnEvent lets the application redact.
func TestOnEvent(t *testing.T) {
	m := newMemory(t)
	l, dir := testLogger(t, m, func(c *Config) {
		c.CaptureInput = true
		c.OnEvent = func(_ context.Context, e *Event) { e.Business.Input, e.Business.UserID = nil, "?" }
	})
	if err := l.Ingress(m.serving(t, Request{UserID: "ann"}), Ingress{Raw: "secret"}); err != nil {
		t.Fatal(err)
	}
	if e := spooled(t, dir)[0]; strings.Contains(e, "secret") || strings.Contains(e, "ann") {
		t.Error(e)
	}
}

// TestConcurrent logs from many goroutines of one request.
func TestConcurrent(t *testing.T) {
	m := newMemory(t)
	l, dir := testLogger(t, m, nil)
	ctx := m.serving(t, Request{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 10 {
				if err := l.Ingress(ctx, Ingress{Raw: "x"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := len(spooled(t, dir)); n != 80 {
		t.Errorf("%d events", n)
	}
}

func TestLoadModel(t *testing.T) {
	m := newMemory(t)
	l, dir := testLogger(t, m, nil)
	folder := t.TempDir()
	real, link := filepath.Join(folder, "v2.bin"), filepath.Join(folder, "current")
	if err := os.WriteFile(real, []byte("weights"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("out of memory")
	f := func(fail error, want ...string) {
		t.Helper()
		_, err := LoadModel(t.Context(), l, ModelLoad{ConfiguredVersion: "v1", ConfiguredPath: link},
			func(_ context.Context, s *Stages, n *ModelLoad) (int, error) {
				defer s.Stage("read")()
				n.Device = "cuda:1"
				return 7, fail
			})
		if !errors.Is(err, fail) {
			t.Errorf("%v, want %v", err, fail)
		}
		all := spooled(t, dir)
		got := all[len(all)-1]
		if err := validate(t, got); err != nil {
			t.Error(err)
		}
		real, _ := filepath.EvalSymlinks(real)
		for _, w := range append(want, `"real_path":"`+real+`"`, HashInput("weights"), `"read":`, `"hash":`, `"device":"cuda:1"`) {
			if !strings.Contains(got, w) {
				t.Errorf("%s\nlacks %s", got, w)
			}
		}
	}
	f(nil, `"level":"INFO"`)
	f(broken, `"level":"ERROR"`, "out of memory")
	if spans := m.spans.Ended(); len(spans) != 2 || attributesOf(spans[0].Attributes())[KeyRequestID] == "" {
		t.Errorf("spans %v", spans)
	}
	if _, err := HashFile(folder + "/none"); err == nil {
		t.Error("hashed what is not there")
	}
}

func TestStatsOf(t *testing.T) {
	f := func(s *Stats, want string) {
		t.Helper()
		b, err := json.Marshal(s)
		if err != nil || string(b) != want {
			t.Errorf("got %s %v, want %s", b, err, want)
		}
	}
	f(StatsOf([]int{3, -1}), `{"shape":[2],"dtype":"int","has_nan":false,"min_val":-1,"max_val":3}`)
	f(StatsOf([]float64{}), `{"shape":[0],"dtype":"float64","has_nan":false,"min_val":null,"max_val":null}`)
	f(StatsOf([]float64{math.Inf(1), math.NaN()}, 1, 2), `{"shape":[1,2],"dtype":"float64","has_nan":true,"min_val":null,"max_val":null}`)
	f(StatsOfText("héllo"), `{"shape":[5],"dtype":"str","has_nan":false,"min_val":null,"max_val":null}`)
}
