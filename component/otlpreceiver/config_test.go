package otlpreceiver

import (
	"reflect"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/confmap"

	"inquest/record"
)

// load reads settings as the Collector does.
func load(conf map[string]any) (*Config, error) {
	cfg := defaultConfig()
	if err := confmap.NewFromStringMap(conf).Unmarshal(cfg); err != nil {
		return cfg, err
	}
	return cfg, confmap.Validate(cfg)
}

func TestConfigProtocols(t *testing.T) {
	type m = map[string]any
	f := func(conf m, wantGRPC, wantHTTP string) {
		t.Helper()
		cfg, err := load(conf)
		if err != nil {
			t.Fatal(err)
		}
		grpc, http := "", ""
		if cfg.Protocols.GRPC.HasValue() {
			grpc = cfg.Protocols.GRPC.Get().NetAddr.Endpoint
		}
		if cfg.Protocols.HTTP.HasValue() {
			http = cfg.Protocols.HTTP.Get().NetAddr.Endpoint
		}
		if grpc != wantGRPC || http != wantHTTP {
			t.Errorf("%v: grpc %q, http %q, want %q, %q", conf, grpc, http, wantGRPC, wantHTTP)
		}
	}
	f(nil, "localhost:4317", "localhost:4318")
	f(m{}, "localhost:4317", "localhost:4318")
	f(m{"protocols": m{"grpc": nil}}, "localhost:4317", "")
	f(m{"protocols": m{"http": nil}}, "", "localhost:4318")
	f(m{"protocols": m{"grpc": nil, "http": m{"endpoint": "0.0.0.0:1"}}}, "localhost:4317", "0.0.0.0:1")
	f(m{"protocols": m{"grpc": m{"enabled": false}, "http": m{}}}, "", "localhost:4318")
}

func TestConfigInvalid(t *testing.T) {
	type m = map[string]any
	f := func(conf m, want string) {
		t.Helper()
		if _, err := load(conf); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want %q", conf, err, want)
		}
	}
	f(m{"protocols": m{}}, "no protocol is named")
	f(m{"protocols": nil}, "no protocol is named")
	f(m{"protocol": m{"grpc": nil}}, "protocol")
	f(m{"protocols": m{"http": m{"logs_url_path": ""}}}, "empty")
	f(m{"protocols": m{"http": m{"logs_url_path": "%zz"}}}, "not a URL path")
	f(m{"protocols": m{"http": m{"logs_path": "/x"}}}, "logs_path")
	f(m{"protocols": m{"grpc": m{"max_recv_msg_size_mib": -1}}}, "max_recv_msg_size_mib")
}

func TestConfigDefaults(t *testing.T) {
	cfg, err := load(map[string]any{"protocols": map[string]any{
		"grpc": map[string]any{"keepalive": map[string]any{"server_parameters": map[string]any{"max_connection_age": "5s"}}},
		"http": map[string]any{"traces_url_path": "t"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	grpc, http := cfg.Protocols.GRPC.Get(), cfg.Protocols.HTTP.Get()
	got := []any{
		grpc.MaxRecvMsgSizeMiB << 20, http.MaxRequestBodySize, http.ReadTimeout > 0, http.ReadHeaderTimeout > 0,
		http.TracesURLPath, http.LogsURLPath, http.MetricsURLPath, grpc.Keepalive.Get().ServerParameters.Get().MaxConnectionAge.String(),
	}
	want := []any{
		record.MaxBatchSize, int64(record.MaxBatchSize), true, true,
		URLPath("/t"), URLPath("/v1/logs"), URLPath("/v1/metrics"), "5s",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("settings are %v, want %v", got, want)
	}
}
