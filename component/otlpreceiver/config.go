package otlpreceiver

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"time"

	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"

	"inquest/record"
)

// Where the receiver listens when nothing else is configured.
const (
	defaultGRPCEndpoint = "localhost:4317"
	defaultHTTPEndpoint = "localhost:4318"
	defaultLogsPath     = "/v1/logs"
	defaultTracesPath   = "/v1/traces"
	defaultMetricsPath  = "/v1/metrics"
	defaultEventsPath   = "/v1/events"
)

// requestTimeout bounds the time of one HTTP request: reading it, and storing
// it together with writing the answer.
const requestTimeout = 5 * time.Minute

// Config are the receiver's settings. They are those of the Collector's own
// OTLP receiver, with other defaults: a request may be as large as
// [record.MaxBatchSize], and an HTTP request may take five minutes.
type Config struct {
	// Protocols says which protocols are served. Without it both are; with it,
	// those that it names.
	Protocols Protocols `mapstructure:"protocols"`
}

// Protocols are the settings of each protocol; one without a value is not served.
type Protocols struct {
	// GRPC serves OTLP over gRPC. Default: localhost:4317.
	GRPC configoptional.Optional[configgrpc.ServerConfig] `mapstructure:"grpc"`
	// HTTP serves OTLP over HTTP, protobuf and JSON. Default: localhost:4318.
	HTTP configoptional.Optional[HTTPConfig] `mapstructure:"http"`
}

// HTTPConfig are the settings of OTLP over HTTP.
type HTTPConfig struct {
	confighttp.ServerConfig `mapstructure:",squash"`

	// TracesURLPath is where spans are sent to. Default: /v1/traces.
	TracesURLPath URLPath `mapstructure:"traces_url_path,omitempty"`
	// MetricsURLPath is where metrics are sent to. Default: /v1/metrics.
	MetricsURLPath URLPath `mapstructure:"metrics_url_path,omitempty"`
	// LogsURLPath is where log records are sent to. Default: /v1/logs.
	LogsURLPath URLPath `mapstructure:"logs_url_path,omitempty"`
	// EventsURLPath is where AI events are sent to as JSON lines. Default: /v1/events.
	EventsURLPath URLPath `mapstructure:"events_url_path,omitempty"`
}

// URLPath is the path of a URL, with a leading slash.
type URLPath string

var _ confmap.Unmarshaler = (*Config)(nil)

// UnmarshalText takes the path out of a URL or a path and makes it absolute.
func (p *URLPath) UnmarshalText(text []byte) error {
	u, err := url.Parse(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a URL path: %w", text, err)
	}
	if u.Path == "" {
		return errors.New("the URL path is empty: write it like /v1/logs or leave it out")
	}
	if !path.IsAbs(u.Path) {
		u.Path = "/" + u.Path
	}
	*p = URLPath(u.Path)
	return nil
}

func defaultConfig() *Config {
	return &Config{Protocols: Protocols{
		GRPC: configoptional.Some(defaultGRPC()),
		HTTP: configoptional.Some(defaultHTTP()),
	}}
}

func defaultGRPC() configgrpc.ServerConfig {
	c := configgrpc.NewDefaultServerConfig()
	c.NetAddr.Endpoint = defaultGRPCEndpoint
	c.ReadBufferSize = 512 << 10
	c.MaxRecvMsgSizeMiB = record.MaxBatchSize >> 20
	return c
}

func defaultHTTP() HTTPConfig {
	c := HTTPConfig{
		ServerConfig:   confighttp.NewDefaultServerConfig(),
		TracesURLPath:  defaultTracesPath,
		MetricsURLPath: defaultMetricsPath,
		LogsURLPath:    defaultLogsPath,
		EventsURLPath:  defaultEventsPath,
	}
	c.NetAddr.Endpoint = defaultHTTPEndpoint
	c.MaxRequestBodySize = record.MaxBatchSize
	c.ReadTimeout = requestTimeout
	c.WriteTimeout = 2 * requestTimeout // it counts from the request's header on
	return c
}

// Unmarshal reads the settings. Once protocols are named, only those are on.
func (c *Config) Unmarshal(conf *confmap.Conf) error {
	if conf.IsSet("protocols") {
		c.Protocols = Protocols{
			GRPC: configoptional.Default(defaultGRPC()),
			HTTP: configoptional.Default(defaultHTTP()),
		}
	}
	return conf.Unmarshal(c)
}

// Validate says what is wrong with the settings.
func (p *Protocols) Validate() error {
	if !p.GRPC.HasValue() && !p.HTTP.HasValue() {
		return errors.New("no protocol is named: add grpc, http or both, or leave protocols out to have both")
	}
	return nil
}
