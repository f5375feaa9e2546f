package otlpreceiver

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sink is a consumer of all signals that remembers what it took.
type sink struct {
	mu      sync.Mutex
	logs    []plog.Logs
	traces  []ptrace.Traces
	metrics []pmetric.Metrics
	before  func(context.Context) error // called first, when set
}

func (s *sink) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (s *sink) take(ctx context.Context, keep func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.before != nil {
		if err := s.before(ctx); err != nil {
			return err
		}
	}
	keep()
	return nil
}

func (s *sink) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	return s.take(ctx, func() { s.logs = append(s.logs, ld) })
}

func (s *sink) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	return s.take(ctx, func() { s.traces = append(s.traces, td) })
}

func (s *sink) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	return s.take(ctx, func() { s.metrics = append(s.metrics, md) })
}

// records counts what the sink holds and forgets it.
func (s *sink) records() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, ld := range s.logs {
		n += ld.LogRecordCount()
	}
	for _, td := range s.traces {
		n += td.SpanCount()
	}
	for _, md := range s.metrics {
		n += md.DataPointCount()
	}
	s.logs, s.traces, s.metrics = nil, nil, nil
	return n
}

// settings are a receiver's settings with the given telemetry.
func settings(tel component.TelemetrySettings) receiver.Settings {
	return receiver.Settings{ID: component.NewID(Type), TelemetrySettings: tel, BuildInfo: component.NewDefaultBuildInfo()}
}

// running is a receiver that serves both protocols on ports of their own.
type running struct {
	*otlpReceiver
	*sink
	client *http.Client
	conn   *grpc.ClientConn
}

func start(t testing.TB, change func(*Config)) *running {
	t.Helper()
	return startWith(t, change, componenttest.NewNopTelemetrySettings())
}

func startWith(t testing.TB, change func(*Config), tel component.TelemetrySettings) *running {
	t.Helper()
	cfg := defaultConfig()
	cfg.Protocols.GRPC.Get().NetAddr.Endpoint = "localhost:0"
	cfg.Protocols.HTTP.Get().NetAddr.Endpoint = "localhost:0"
	if change != nil {
		change(cfg)
	}
	ctx := context.Background()
	f, s, set := NewFactory(), &sink{}, settings(tel)
	logs, err := f.CreateLogs(ctx, set, cfg, s)
	if err != nil {
		t.Fatal(err)
	}
	traces, err := f.CreateTraces(ctx, set, cfg, s)
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := f.CreateMetrics(ctx, set, cfg, s)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []component.Component{logs, traces, metrics} {
		if err := r.Start(ctx, componenttest.NewNopHost()); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for _, c := range []component.Component{logs, traces, metrics} {
			if err := c.Shutdown(ctx); err != nil {
				t.Errorf("cannot shut down: %v", err)
			}
		}
	})
	return dial(t, logs.(*otlpReceiver), s)
}

// dial connects clients to a receiver that was started. They are closed first
// when the test ends.
func dial(t testing.TB, rec *otlpReceiver, s *sink) *running {
	t.Helper()
	r := &running{otlpReceiver: rec, sink: s, client: &http.Client{Transport: &http.Transport{}}}
	conn, err := grpc.NewClient(rec.grpcAddr.String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	r.conn = conn
	t.Cleanup(func() {
		r.client.CloseIdleConnections()
		r.conn.Close()
	})
	return r
}

// reply is an HTTP answer with its body read.
type reply struct {
	code   int
	header http.Header
	body   []byte
}

func (r reply) String() string { return fmt.Sprintf("%d %q", r.code, r.body) }

// post sends body to path over HTTP; headers come in pairs.
func (r *running) post(t testing.TB, path string, body []byte, headers ...string) reply {
	t.Helper()
	return r.send(t, http.MethodPost, path, bytes.NewReader(body), headers...)
}

func (r *running) send(t testing.TB, method, path string, body io.Reader, headers ...string) reply {
	t.Helper()
	req, err := http.NewRequest(method, "http://"+r.httpAddr.String()+path, body)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := r.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Header, b}
}

// wire is a message as it goes over gRPC, so that tests send what no client would.
type wire []byte

type wireCodec struct{}

func (wireCodec) Name() string { return "proto" }
func (wireCodec) Marshal(v any) ([]byte, error) {
	return *v.(*wire), nil
}

func (wireCodec) Unmarshal(data []byte, v any) error {
	*v.(*wire) = bytes.Clone(data)
	return nil
}

// invoke sends body to a service over gRPC and returns the answer's bytes.
func (r *running) invoke(service string, body []byte, opts ...grpc.CallOption) ([]byte, error) {
	in, out := wire(body), wire(nil)
	opts = append(opts, grpc.ForceCodec(wireCodec{}))
	err := r.conn.Invoke(context.Background(), "/"+service+"/Export", &in, &out, opts...)
	return out, err
}
