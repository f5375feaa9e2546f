// Package api is inquest's HTTP API: LogsQL search over records, PromQL over
// samples as Prometheus answers it, traces as Jaeger answers them, the step
// from a metric point to its trace and logs, and investigations. It is
// described in openapi.yaml, which it serves.
//
// The API reads. What writes: POST /api/v1/investigations, whose verdict the
// [Investigator] stores, POST /api/v1/deadletters/… and
// POST /api/v1/payloads/erase.
package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/prometheus/promql/parser"

	"inquest/store"
	"inquest/store/payload"
)

// Config are the parts that the API works with and its limits.
type Config struct {
	Records store.RecordReader
	Samples store.SampleReader
	// CatchUp waits until what was acknowledged before the call is visible to
	// queries. It may be nil: then the stores are taken as they are.
	CatchUp func(context.Context) error
	// Status returns the recorder's state, to be encoded as JSON. It may be nil.
	Status func() any
	// Investigator holds inquests. It may be nil: then there are none.
	Investigator Investigator
	// Letters re-drives and discards dead letters. It may be nil.
	Letters Letters
	// Payloads keeps raw inputs. It may be nil: then there are none.
	Payloads payload.Store
	// Eraser removes what is kept of a user. It may be nil.
	Eraser Eraser
	Limits Limits
	// AllowedHosts are names under which a server that listens on a loopback
	// address may be asked, in addition to localhost and loopback addresses.
	AllowedHosts []string
	// AllowedOrigins are web origins (https://grafana.example) whose pages may
	// send requests. The headers by which a browser lets them read the answer
	// are the server's to set.
	AllowedOrigins []string
	// Version is inquest's version.
	Version string
	Logger  *slog.Logger
}

// Limits bound what one request and all of them together may use. Zero means
// the default.
type Limits struct {
	// QueryTimeout ends a query. Default: 30 s. A request may ask for less.
	QueryTimeout time.Duration
	// InvestigateTimeout ends an investigation. Default: 5 min.
	InvestigateTimeout time.Duration
	// Concurrency is how many queries run at once. Default: 16.
	Concurrency int
	// QueueWait is how long a query waits for its turn. Default: 2 s.
	QueueWait time.Duration
	// Investigations is how many investigations run at once. Default: 2.
	Investigations int
	// CatchUpWait is how long a query waits for what was acknowledged before
	// it. Default: 1 s.
	CatchUpWait time.Duration
	// BodyBytes bounds a request's body. Default: 1 MiB.
	BodyBytes int64
	// Rows bounds the rows of one record query. Default: 100,000.
	Rows int
	// Spans bounds the spans of one trace. Default: 20,000.
	Spans int
	// Exemplars bounds the exemplars of one answer. Default: 10,000.
	Exemplars int
	// Window bounds the window of an investigation. Default: 7 days.
	Window time.Duration
}

func setDefault[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

func (l *Limits) setDefaults() {
	setDefault(&l.QueryTimeout, 30*time.Second)
	setDefault(&l.InvestigateTimeout, 5*time.Minute)
	setDefault(&l.Concurrency, 16)
	setDefault(&l.QueueWait, 2*time.Second)
	setDefault(&l.Investigations, 2)
	setDefault(&l.CatchUpWait, time.Second)
	setDefault(&l.BodyBytes, 1<<20)
	setDefault(&l.Rows, 100_000)
	setDefault(&l.Spans, 20_000)
	setDefault(&l.Exemplars, 10_000)
	setDefault(&l.Window, 7*24*time.Hour)
}

// server answers requests. It keeps no state between them but its semaphores.
type server struct {
	cfg     Config
	limits  Limits
	log     *slog.Logger
	queries chan struct{} // one element for each query that runs
	probes  chan struct{} // one element for each investigation that runs
	promql  parser.Parser
	now     func() time.Time
}

// New returns the handler of the API. Its paths are absolute (/api/v1/…,
// /jaeger/api/…, /healthz); any other path is not found. The handler may be
// used concurrently and needs no closing.
func New(cfg Config) (http.Handler, error) {
	if cfg.Records == nil || cfg.Samples == nil {
		return nil, errors.New("cannot build the API: it needs a reader of records and a reader of samples")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	cfg.Limits.setDefaults()
	s := &server{
		cfg:     cfg,
		limits:  cfg.Limits,
		log:     cfg.Logger,
		queries: make(chan struct{}, cfg.Limits.Concurrency),
		probes:  make(chan struct{}, cfg.Limits.Investigations),
		promql:  parser.NewParser(parser.Options{}),
		now:     time.Now,
	}
	mux := http.NewServeMux()
	for _, r := range s.routes() {
		for _, method := range r.methods {
			mux.Handle(method+" "+r.path, s.wrap(r))
		}
	}
	mux.HandleFunc("/", s.noRoute)
	return s.guard(mux)
}
