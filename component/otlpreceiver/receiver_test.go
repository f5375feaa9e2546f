package otlpreceiver

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configauth"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"inquest/admit"
)

// One receiver serves all signals of a configuration, and a new one after it
// was shut down.
func TestFactoryShares(t *testing.T) {
	ctx := context.Background()
	f, cfg, set, s := NewFactory(), defaultConfig(), settings(componenttest.NewNopTelemetrySettings()), &sink{}
	logs := must(f.CreateLogs(ctx, set, cfg, s))
	if traces := must(f.CreateTraces(ctx, set, cfg, s)); component.Component(traces) != logs {
		t.Error("traces have a receiver of their own")
	}
	if other := must(f.CreateLogs(ctx, set, defaultConfig(), s)); other == logs {
		t.Error("two configurations share a receiver")
	}
	if err := logs.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	if again := must(f.CreateLogs(ctx, set, cfg, s)); again == logs {
		t.Error("a receiver is used again after Shutdown")
	}
	if _, err := f.CreateLogs(ctx, set, &struct{}{}, s); err == nil {
		t.Error("a foreign configuration is taken")
	}
}

// Only signals with a consumer are served, and only named protocols.
func TestStart(t *testing.T) {
	ctx := context.Background()
	cfg := defaultConfig()
	cfg.Protocols.GRPC.Get().NetAddr.Endpoint = "localhost:0"
	cfg.Protocols.HTTP = configoptional.None[HTTPConfig]()
	r := must(NewFactory().CreateLogs(ctx, settings(componenttest.NewNopTelemetrySettings()), cfg, &sink{})).(*otlpReceiver)
	if err := r.Start(ctx, componenttest.NewNopHost()); err != nil {
		t.Fatal(err)
	}
	defer r.Shutdown(ctx)
	if r.httpAddr != nil {
		t.Error("HTTP is served although it is not named")
	}
	if _, ok := r.grpc.GetServiceInfo()[tracesSignal.service]; ok {
		t.Error("traces are served without a consumer")
	}
}

// A port in use is said with the setting to change, and nothing stays open.
func TestStartPortInUse(t *testing.T) {
	ctx := context.Background()
	ln, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	f := func(change func(*Config), want string) {
		t.Helper()
		cfg := defaultConfig()
		cfg.Protocols.GRPC.Get().NetAddr.Endpoint = "localhost:0"
		cfg.Protocols.HTTP.Get().NetAddr.Endpoint = "localhost:0"
		change(cfg)
		r := must(NewFactory().CreateLogs(ctx, settings(componenttest.NewNopTelemetrySettings()), cfg, &sink{}))
		if err := r.Start(ctx, componenttest.NewNopHost()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Start returned %v, want %q", err, want)
		}
		if err := r.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	}
	f(func(c *Config) { c.Protocols.GRPC.Get().NetAddr.Endpoint = ln.Addr().String() }, "change protocols::grpc::endpoint")
	f(func(c *Config) { c.Protocols.HTTP.Get().NetAddr.Endpoint = ln.Addr().String() }, "change protocols::http::endpoint")
}

// The Collector's own counters tell accepted from refused records.
func TestOwnMetrics(t *testing.T) {
	tel := componenttest.NewTelemetry()
	defer tel.Shutdown(context.Background())
	r := startWith(t, nil, tel.NewTelemetrySettings())
	f := func(name, transport string, want int64) {
		t.Helper()
		m, err := tel.GetMetric("otelcol_receiver_" + name)
		if err != nil {
			t.Fatal(err)
		}
		var got int64
		for _, dp := range m.Data.(metricdata.Sum[int64]).DataPoints {
			if v, _ := dp.Attributes.Value("transport"); v.AsString() == transport {
				got += dp.Value
			}
		}
		if got != want {
			t.Errorf("%s over %s is %d, want %d", name, transport, got, want)
		}
	}
	bad := msg(2, num(1, 1))
	r.invoke(logsSignal.service, inScope(goodLog, goodLog, bad))
	r.invoke(tracesSignal.service, inScope(goodSpan))
	r.before = func(ctx context.Context) error {
		admit.ReportFrom(ctx).Reject(2, "too old")
		return nil
	}
	r.post(t, "/v1/logs", inScope(goodLog, goodLog, goodLog, bad), "Content-Type", typeProto)
	r.before = func(context.Context) error { return errors.New("disk gone") }
	r.post(t, "/v1/logs", inScope(goodLog, goodLog), "Content-Type", typeProto)

	f("accepted_log_records", "grpc", 2)
	f("refused_log_records", "grpc", 1)
	f("accepted_spans", "grpc", 1)
	f("accepted_log_records", "http", 1)
	f("refused_log_records", "http", 2+1+2)
}

// gate is an authenticator that lets one token in.
type gate struct{ component.Component }

func (gate) Authenticate(ctx context.Context, headers map[string][]string) (context.Context, error) {
	for name, values := range headers {
		if strings.EqualFold(name, "authorization") && len(values) == 1 && values[0] == "yes" {
			return ctx, nil
		}
	}
	return ctx, errors.New("no entry")
}

type hostWith map[component.ID]component.Component

func (h hostWith) GetExtensions() map[component.ID]component.Component { return h }

func TestAuthentication(t *testing.T) {
	ctx := context.Background()
	id := component.MustNewID("gate")
	cfg := defaultConfig()
	cfg.Protocols.GRPC.Get().NetAddr.Endpoint = "localhost:0"
	cfg.Protocols.HTTP.Get().NetAddr.Endpoint = "localhost:0"
	cfg.Protocols.GRPC.Get().Auth = configoptional.Some(configauth.Config{AuthenticatorID: id})
	cfg.Protocols.HTTP.Get().Auth = configoptional.Some(confighttp.AuthConfig{Config: configauth.Config{AuthenticatorID: id}})
	s := &sink{}
	rec := must(NewFactory().CreateLogs(ctx, settings(componenttest.NewNopTelemetrySettings()), cfg, s)).(*otlpReceiver)
	if err := rec.Start(ctx, hostWith{id: gate{}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rec.Shutdown(ctx) })
	r := dial(t, rec, s)
	if got := r.post(t, "/v1/logs", inScope(goodLog), "Content-Type", typeProto); got.code != 401 || !strings.Contains(got.String(), "no entry") {
		t.Errorf("answer without a token %s", got)
	}
	if got := r.post(t, "/v1/logs", inScope(goodLog), "Content-Type", typeProto, "Authorization", "yes"); got.code != 200 {
		t.Errorf("answer with a token %s", got)
	}
	// A request that cannot be read is refused for the missing token: it is not
	// decoded before.
	if _, err := r.invoke(logsSignal.service, []byte("hello")); status.Code(err) != codes.Unauthenticated {
		t.Errorf("gRPC without a token is answered with %v", err)
	}
	if n := r.records(); n != 1 {
		t.Errorf("%d records kept, want 1", n)
	}
}

// A panic in a decoder costs one request.
func TestDecodePanic(t *testing.T) {
	s := *logsSignal
	s.proto = func([]byte) (plog.Logs, error) { panic("boom") }
	_, report := admit.WithReport(context.Background())
	_, err := s.decode(inScope(goodLog), protobuf, report)
	var r *refusal
	if !errors.As(err, &r) || r.code != codes.InvalidArgument || r.text != "request cannot be decoded: boom" {
		t.Errorf("got %v", err)
	}
}
