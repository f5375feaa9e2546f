package inquest

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.opentelemetry.io/otel/attribute"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	"inquest.dev/sdk/go/spool"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("INQUEST_TEST_CHILD"); dir != "" {
		logForever(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

// memory keeps log records and spans.
type memory struct {
	mu      sync.Mutex
	records []sdklog.Record
	logs    *sdklog.LoggerProvider
	spans   *tracetest.SpanRecorder
	traces  *sdktrace.TracerProvider
}

func newMemory(t *testing.T) *memory {
	m := &memory{spans: tracetest.NewSpanRecorder()}
	m.logs = sdklog.NewLoggerProvider(sdklog.WithProcessor(NewLogProcessor()), sdklog.WithProcessor(sdklog.NewSimpleProcessor(m)))
	m.traces = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(NewSpanProcessor()), sdktrace.WithSpanProcessor(m.spans))
	t.Cleanup(func() {
		m.logs.Shutdown(context.Background())
		m.traces.Shutdown(context.Background())
	})
	return m
}

func (m *memory) Export(_ context.Context, records []sdklog.Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range records {
		m.records = append(m.records, r.Clone())
	}
	return nil
}

func (m *memory) Shutdown(context.Context) error   { return nil }
func (m *memory) ForceFlush(context.Context) error { return nil }

// serving returns a context with a span and a request.
func (m *memory) serving(t *testing.T, r Request) context.Context {
	ctx, span := m.traces.Tracer("test").Start(WithRequest(t.Context(), r), "serve")
	t.Cleanup(func() { span.End() })
	return ctx
}

// eventSchema is the recorder's schema, or nil where the module is used without
// the repository.
var eventSchema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	path := filepath.Join("..", "..", "schema", "ai-event.schema.json")
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	return c.Compile(path)
})

// validate returns what the schema says of an event.
func validate(t *testing.T, event string) error {
	t.Helper()
	s, err := eventSchema()
	if os.IsNotExist(err) {
		t.Skip("needs schema/ai-event.schema.json of the repository")
	}
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(event))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(v)
}

// testLogger writes into a spool of its own.
func testLogger(t *testing.T, m *memory, change func(*Config)) (*Logger, string) {
	t.Helper()
	dir := t.TempDir()
	w, err := spool.Open(dir, spool.Options{Resource: Resource("chat-api", nil)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	c := Config{Service: "chat-api", Spool: w, Tracer: m.traces}
	if change != nil {
		change(&c)
	}
	l, err := NewLogger(c)
	if err != nil {
		t.Fatal(err)
	}
	return l, dir
}

// spooled returns the events in a spool, oldest first.
func spooled(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.spool"))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		first := true
		for l := range strings.Lines(string(b)) {
			if first || !strings.HasSuffix(l, "\n") {
				first = false
				continue
			}
			var r otlpRecord
			if err := json.Unmarshal([]byte(l[9:]), &r); err != nil {
				t.Fatalf("%s: %v", l, err)
			}
			out = append(out, r.Body.Value)
		}
	}
	return out
}

func attributesOf(kvs []attribute.KeyValue) map[string]string {
	out := map[string]string{}
	for _, kv := range kvs {
		out[string(kv.Key)] = kv.Value.Emit()
	}
	return out
}
