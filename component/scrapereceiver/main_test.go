package scrapereceiver

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sink is a consumer that remembers what it took.
type sink struct {
	mu      sync.Mutex
	batches []pmetric.Metrics
	refuse  error // the answer, when set
	tries   int
}

func (*sink) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (s *sink) ConsumeMetrics(_ context.Context, md pmetric.Metrics) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tries++
	if s.refuse != nil {
		return s.refuse
	}
	s.batches = append(s.batches, md)
	return nil
}

func (s *sink) setRefuse(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = err
}

// series returns what PromQL would have, "name{labels}" to value, of the batches
// from the nth on; the newest counts.
func (s *sink) series(t *testing.T, n int) map[string]string {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]string{}
	for _, md := range s.batches[min(n, len(s.batches)):] {
		got, err := store(md)
		if err != nil {
			t.Fatal(err)
		}
		for key, values := range got.values {
			// The key is labels and time.
			key = key[:strings.LastIndex(key, "}")+1]
			if len(values) > 1 {
				t.Errorf("%s comes %d times in one batch", key, len(values))
			}
			out[key] = values[0]
		}
	}
	return out
}

func (s *sink) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.batches)
}

// newest returns the newest metric of a name.
func (s *sink) newest(name string) (pmetric.Metric, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.batches) - 1; i >= 0; i-- {
		for _, rm := range s.batches[i].ResourceMetrics().All() {
			for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
				if m.Name() == name {
					return m, true
				}
			}
		}
	}
	return pmetric.Metric{}, false
}

// running is a receiver that scrapes.
type running struct {
	*sink
	r   *scrapeReceiver
	tel *componenttest.Telemetry
	log *observer.ObservedLogs
}

// begin starts a receiver that scrapes every 100 ms; change sets the rest.
func begin(t *testing.T, change func(*Config)) *running {
	t.Helper()
	cfg := defaultConfig()
	cfg.Interval = 100 * time.Millisecond
	change(cfg)
	tel := componenttest.NewTelemetry()
	core, log := observer.New(zap.InfoLevel)
	set := receiver.Settings{ID: component.NewIDWithName(Type, "svc"), TelemetrySettings: tel.NewTelemetrySettings()}
	set.Logger = zap.New(core)
	out := &running{sink: &sink{}, tel: tel, log: log}
	rec, err := NewFactory().CreateMetrics(context.Background(), set, cfg, out.sink)
	if err != nil {
		t.Fatal(err)
	}
	if err := rec.Start(context.Background(), componenttest.NewNopHost()); err != nil {
		t.Fatal(err)
	}
	out.r = rec.(*scrapeReceiver)
	t.Cleanup(func() {
		if err := rec.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if err := tel.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return out
}

// page is a target whose answer can be changed.
type page struct {
	*httptest.Server
	mu   sync.Mutex
	kind string
	body string
}

const (
	textKind = "text/plain; version=0.0.4"
	openKind = "application/openmetrics-text; version=1.0.0; charset=utf-8"
)

func serve(t *testing.T, kind, body string) *page {
	t.Helper()
	p := &page{kind: kind, body: body}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		w.Header().Set("Content-Type", p.kind)
		fmt.Fprint(w, p.body)
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *page) set(body string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.body = body
}

func (p *page) address() string { return strings.TrimPrefix(p.URL, "http://") }

// until waits for a condition.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for: %s", what)
		}
	}
}
