package scrapereceiver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/util/logging"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.uber.org/zap/exp/zapslog"
)

// syncInterval is how soon a change of the targets is followed.
const syncInterval = time.Second

// scrapeReceiver runs Prometheus' scraper and discovery.
type scrapeReceiver struct {
	cfg      *config.Config
	next     consumer.Metrics
	log      *slog.Logger
	obs      *receiverhelper.ObsReport
	metrics  ownMetrics
	targets  targets
	failures failures

	scraper  *scrape.Manager
	stopping chan struct{} // closed when batches are not tried again
	cancel   context.CancelFunc
	running  sync.WaitGroup
	stop     sync.Once
}

func newReceiver(c *Config, set receiver.Settings, next consumer.Metrics) (*scrapeReceiver, error) {
	name := set.ID.Name()
	if name == "" {
		name = set.ID.Type().String()
	}
	cfg, err := c.load(name)
	if err != nil {
		return nil, err
	}
	r := &scrapeReceiver{cfg: cfg, next: next, stopping: make(chan struct{})}
	r.log = slog.New(zapslog.NewHandler(set.Logger.Core()))
	r.failures.log = r.log
	r.obs, err = receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{
		ReceiverID: set.ID, Transport: "http", LongLivedCtx: true, ReceiverCreateSettings: set,
	})
	if err != nil {
		return nil, err
	}
	r.metrics, err = newOwnMetrics(set.MeterProvider.Meter("inquest/component/scrapereceiver"))
	return r, err
}

// Start begins to scrape. The first scrape of each target comes within one
// interval: they are spread over it.
func (r *scrapeReceiver) Start(context.Context, component.Host) error {
	jobs, err := r.cfg.GetScrapeConfigs()
	if err != nil {
		return fmt.Errorf("cannot read scrape_configs: %w", err)
	}
	log := slog.New(scraperLog{Handler: r.log.Handler(), failures: &r.failures})
	registry := prometheus.NewRegistry()
	r.scraper, err = scrape.NewManager(&scrape.Options{
		PassMetadataInContext:    true, // it brings the target
		AppendMetadata:           true,
		ParseST:                  true,
		DiscoveryReloadInterval:  model.Duration(syncInterval),
		DiscoveryReloadOnStartup: true,
	}, log, logging.NewJSONFileLogger, nil, r, registry)
	if err != nil {
		return fmt.Errorf("cannot set up scraping: %w", err)
	}
	if err := r.scraper.ApplyConfig(r.cfg); err != nil {
		return fmt.Errorf("cannot set up scraping: %w", err)
	}
	sd, err := discovery.CreateAndRegisterSDMetrics(registry)
	if err != nil {
		return fmt.Errorf("cannot set up discovery: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	discoverer := discovery.NewManager(ctx, log, registry, sd, discovery.Updatert(syncInterval))
	if discoverer == nil {
		return errors.New("cannot set up discovery: the log says why")
	}
	configs := map[string]discovery.Configs{}
	for _, job := range jobs {
		configs[job.JobName] = job.ServiceDiscoveryConfigs
	}
	if err := discoverer.ApplyConfig(configs); err != nil {
		return fmt.Errorf("cannot set up discovery: %w", err)
	}
	r.running.Go(func() { _ = discoverer.Run() })                   // returns when ctx is done
	r.running.Go(func() { _ = r.scraper.Run(discoverer.SyncCh()) }) // returns nil when stopped
	return nil
}

// Shutdown ends scraping. A batch that the pipeline has not taken is tried once
// more; no series is marked as ended, since the targets go on.
func (r *scrapeReceiver) Shutdown(context.Context) error {
	r.stop.Do(func() {
		close(r.stopping)
		if r.cancel == nil {
			return
		}
		r.scraper.Stop()
		r.cancel()
		r.running.Wait()
	})
	return nil
}
