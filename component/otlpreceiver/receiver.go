package otlpreceiver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

// otlpReceiver serves both protocols for all signals that have a consumer.
type otlpReceiver struct {
	cfg        *Config
	set        receiver.Settings
	onShutdown func()

	logs    consumer.Logs
	traces  consumer.Traces
	metrics consumer.Metrics

	start    sync.Once // Start and Shutdown are called once for each signal
	startErr error
	stop     sync.Once
	stopErr  error

	grpc     *grpc.Server
	http     *http.Server
	grpcAddr net.Addr
	httpAddr net.Addr
	serving  sync.WaitGroup
}

func newReceiver(cfg *Config, set receiver.Settings) (*otlpReceiver, error) {
	if err := cfg.Protocols.Validate(); err != nil {
		return nil, err
	}
	return &otlpReceiver{cfg: cfg, set: set}, nil
}

// Start opens the ports.
func (r *otlpReceiver) Start(ctx context.Context, host component.Host) error {
	r.start.Do(func() {
		r.startErr = r.startGRPC(ctx, host)
		if r.startErr == nil {
			r.startErr = r.startHTTP(ctx, host)
		}
		if r.startErr != nil {
			r.startErr = errors.Join(r.startErr, r.Shutdown(ctx))
		}
	})
	return r.startErr
}

// Shutdown stops taking requests and waits for those under way until ctx ends.
func (r *otlpReceiver) Shutdown(ctx context.Context) error {
	r.stop.Do(func() {
		if r.onShutdown != nil {
			r.onShutdown()
		}
		var stopping sync.WaitGroup
		if r.grpc != nil {
			stopping.Go(func() { stopGRPC(ctx, r.grpc) })
		}
		if r.http != nil {
			if err := r.http.Shutdown(ctx); err != nil {
				r.stopErr = fmt.Errorf("cannot end all HTTP requests: %w", errors.Join(err, r.http.Close()))
			}
		}
		stopping.Wait()
		r.serving.Wait()
	})
	return r.stopErr
}

// stopGRPC ends the server gracefully, and at once when ctx ends before that.
func stopGRPC(ctx context.Context, s *grpc.Server) {
	stopNow := context.AfterFunc(ctx, s.Stop)
	defer stopNow()
	s.GracefulStop()
}

func (r *otlpReceiver) startGRPC(ctx context.Context, host component.Host) error {
	if !r.cfg.Protocols.GRPC.HasValue() {
		return nil
	}
	cfg := r.cfg.Protocols.GRPC.Get()
	endpoints, err := r.endpoints("grpc")
	if err != nil {
		return err
	}
	r.grpc, err = cfg.ToServer(ctx, host.GetExtensions(), r.set.TelemetrySettings,
		configgrpc.WithGrpcServerOption(grpc.ForceServerCodecV2(codec{})))
	if err != nil {
		return fmt.Errorf("cannot set up the gRPC server: %w", err)
	}
	for _, e := range endpoints {
		e.registerGRPC(r.grpc)
	}
	ln, err := cfg.NetAddr.Listen(ctx)
	if err != nil {
		return fmt.Errorf("cannot listen for OTLP over gRPC, change protocols::grpc::endpoint: %w", err)
	}
	r.grpcAddr = ln.Addr()
	r.set.Logger.Info("OTLP over gRPC is served", zap.Stringer("address", ln.Addr()))
	r.serve(host, func() error { return r.grpc.Serve(ln) }, grpc.ErrServerStopped)
	return nil
}

func (r *otlpReceiver) startHTTP(ctx context.Context, host component.Host) error {
	if !r.cfg.Protocols.HTTP.HasValue() {
		return nil
	}
	cfg := r.cfg.Protocols.HTTP.Get()
	endpoints, err := r.endpoints("http")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	for _, e := range endpoints {
		mux.HandleFunc(e.path(cfg), serveHTTP(e))
		if logs, ok := e.(*signalEndpoint[plog.Logs]); ok && cfg.EventsURLPath != "" {
			mux.HandleFunc(string(cfg.EventsURLPath), serveEvents(logs))
		}
	}
	r.http, err = cfg.ToServer(ctx, host.GetExtensions(), r.set.TelemetrySettings, mux, confighttp.WithErrorHandler(serveError))
	if err != nil {
		return fmt.Errorf("cannot set up the HTTP server: %w", err)
	}
	ln, err := cfg.ToListener(ctx)
	if err != nil {
		return fmt.Errorf("cannot listen for OTLP over HTTP, change protocols::http::endpoint: %w", err)
	}
	r.httpAddr = ln.Addr()
	r.set.Logger.Info("OTLP over HTTP is served", zap.Stringer("address", ln.Addr()))
	r.serve(host, func() error { return r.http.Serve(ln) }, http.ErrServerClosed)
	return nil
}

// serve runs a server until it is stopped. One that ends by itself is fatal:
// nothing would be received any more.
func (r *otlpReceiver) serve(host component.Host, run func() error, stopped error) {
	r.serving.Go(func() {
		if err := run(); err != nil && !errors.Is(err, stopped) {
			componentstatus.ReportStatus(host, componentstatus.NewFatalErrorEvent(err))
		}
	})
}

// endpoints are the signals that have a consumer, for one transport.
func (r *otlpReceiver) endpoints(transport string) ([]endpoint, error) {
	obs, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{
		ReceiverID:             r.set.ID,
		Transport:              transport,
		ReceiverCreateSettings: r.set,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot set up the receiver's own metrics: %w", err)
	}
	var list []endpoint
	if r.logs != nil {
		list = append(list, newEndpoint(logsSignal, r.logs.ConsumeLogs, obs, r.set.Logger))
	}
	if r.traces != nil {
		list = append(list, newEndpoint(tracesSignal, r.traces.ConsumeTraces, obs, r.set.Logger))
	}
	if r.metrics != nil {
		list = append(list, newEndpoint(metricsSignal, r.metrics.ConsumeMetrics, obs, r.set.Logger))
	}
	return list, nil
}
