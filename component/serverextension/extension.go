// Package serverextension is the Collector extension that owns inquest's
// recorder, its data folder and the query API.
package serverextension

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/extension"
	"go.uber.org/zap/exp/zapslog"

	"inquest/api"
	"inquest/catalog"
	"inquest/recorder"
)

// Type is the extension's name in a Collector configuration.
var Type = component.MustNewType("inquest")

const defaultEndpoint = "localhost:4319"

// NewFactory returns the factory of the extension.
func NewFactory() extension.Factory {
	return extension.NewFactory(Type,
		func() component.Config { return defaultConfig() },
		func(_ context.Context, set extension.Settings, c component.Config) (extension.Extension, error) {
			cfg, ok := c.(*Config)
			if !ok {
				return nil, fmt.Errorf("configuration is a %T, want *serverextension.Config", c)
			}
			return &server{cfg: cfg, set: set}, nil
		},
		component.StabilityLevelBeta)
}

// server is the running extension.
type server struct {
	cfg  *Config
	set  extension.Settings
	log  *slog.Logger
	rec  *recorder.Recorder
	http *http.Server
	// faults are the built-in and the users'.
	faults *catalog.Catalog
	done   chan struct{} // closed when the HTTP server ended

	metrics   *metrics
	admission *admission
}

// Recorder returns the recorder; nil before Start.
func (s *server) Recorder() *recorder.Recorder { return s.rec }

func (s *server) Start(ctx context.Context, host component.Host) error {
	s.log = slog.New(zapslog.NewHandler(s.set.Logger.Core()))
	cfg := s.cfg.recorderConfig()
	cfg.Logger = s.log
	var err error
	if s.faults, err = s.cfg.faults(); err != nil {
		return err
	}
	if s.admission, err = s.cfg.newAdmission(ctx, s.log); err != nil {
		return err
	}
	cfg.Decisions = s.admission.decisions
	cfg.Policy, cfg.Payloads, cfg.OnLetters = s.admission.policy, s.admission.payloads, s.admission.letters
	rec, err := recorder.Open(cfg)
	if err != nil {
		return errors.Join(err, s.admission.abandon(ctx))
	}
	s.rec = rec
	if err = s.admission.watch(s.cfg, rec); err == nil {
		s.metrics, err = newMetrics(s.set.MeterProvider, rec, s.admission.alerts)
	}
	if err == nil && s.cfg.API.HasValue() {
		err = s.serve(ctx, host)
	}
	if err != nil {
		return errors.Join(err, s.Shutdown(ctx))
	}
	s.log.Info("recording", "data", s.cfg.Path, "retention", s.cfg.Retention.String())
	return nil
}

func (s *server) serve(ctx context.Context, host component.Host) error {
	cfg := s.cfg.API.Get()
	handler, err := api.New(api.Config{
		Records:      s.rec.Records(),
		Samples:      s.rec.Samples(),
		CatchUp:      s.rec.CatchUp,
		Status:       func() any { return s.rec.Stats() },
		Investigator: newInvestigator(s.rec, s.faults),
		Letters:      s.rec,
		Payloads:     s.admission.payloadStore(),
		Eraser:       eraser{s.rec},
		Version:      s.set.BuildInfo.Version,
		Logger:       s.log,
	})
	if err != nil {
		return err
	}
	listener, err := cfg.ToListener(ctx)
	if err != nil {
		return fmt.Errorf("cannot listen for the API on %s: %w: free the port, or set api::endpoint of the inquest extension", cfg.NetAddr.Endpoint, err)
	}
	s.http, err = cfg.ToServer(ctx, host.GetExtensions(), s.set.TelemetrySettings, handler)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	s.log.Info("the API listens", "url", "http://"+listener.Addr().String())
	s.done = make(chan struct{})
	go func() {
		defer close(s.done)
		if err := s.http.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			componentstatus.ReportStatus(host, componentstatus.NewFatalErrorEvent(err))
		}
	}()
	return nil
}

// closeTimeout is how long a stopping recorder lets the stores catch up.
const closeTimeout = 20 * time.Second

func (s *server) Shutdown(ctx context.Context) error {
	var errs []error
	if s.http != nil {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		if err := s.http.Shutdown(ctx); err != nil {
			errs = append(errs, s.http.Close())
		}
		cancel()
		<-s.done
		s.http = nil
	}
	if s.metrics != nil {
		errs = append(errs, s.metrics.close())
	}
	if s.admission != nil {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		errs = append(errs, s.admission.close(ctx))
		cancel()
	}
	if s.rec != nil {
		ctx, cancel := context.WithTimeout(ctx, closeTimeout)
		errs = append(errs, s.rec.Close(ctx))
		cancel()
	}
	return errors.Join(errs...)
}
