package spool

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// ShipOptions say where a [Shipper] sends records. Zero values mean the defaults.
type ShipOptions struct {
	// Endpoint is the server's base URL; /v1/logs is appended unless the URL ends
	// with it. Default: OTEL_EXPORTER_OTLP_LOGS_ENDPOINT as it is, else
	// OTEL_EXPORTER_OTLP_ENDPOINT, else http://localhost:4318.
	Endpoint string
	// Headers are added to each request, for instance Authorization.
	Headers map[string]string
	// Client sends the requests, redirects are not followed. Default: a client of
	// the shipper's own.
	Client *http.Client
	// Timeout of one request. Default 30 s.
	Timeout time.Duration
	// BatchRecords and BatchBytes limit one request. Default 500 and 1 MiB.
	BatchRecords, BatchBytes int
	// Poll is how often the folder is looked at. Default 200 ms.
	Poll time.Duration
	// MinBackoff and MaxBackoff bound the pause after a failed request.
	// Default 500 ms and 30 s.
	MinBackoff, MaxBackoff time.Duration
	// Keep is how long a shipped file is kept, where there is room. Default 7 days.
	Keep time.Duration
	// MaxTotalBytes is the folder's limit. At four fifths of it shipped files go
	// before their time. Default 4 GiB.
	MaxTotalBytes int64
	// OnError is told about failed requests, refused records and torn files. Default: nothing but the counters of Stats.
	OnError func(error)

	now func() time.Time
}

func (o ShipOptions) withDefaults() ShipOptions {
	def := func(v *time.Duration, d time.Duration) {
		if *v <= 0 {
			*v = d
		}
	}
	if o.Client == nil {
		o.Client = &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true}}
	}
	// A redirected POST would become a GET, and its answer would pass for the
	// server's.
	client := *o.Client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	o.Client = &client
	if o.BatchRecords <= 0 {
		o.BatchRecords = 500
	}
	if o.BatchBytes <= 0 {
		o.BatchBytes = 1 << 20
	}
	def(&o.Timeout, 30*time.Second)
	def(&o.Poll, 200*time.Millisecond)
	def(&o.MinBackoff, 500*time.Millisecond)
	def(&o.MaxBackoff, 30*time.Second)
	def(&o.Keep, keepShipped)
	if o.MaxTotalBytes <= 0 {
		o.MaxTotalBytes = 4 << 30
	}
	if o.OnError == nil {
		o.OnError = func(error) {}
	}
	if o.now == nil {
		o.now = time.Now
	}
	return o
}

// ShipStats counts what a shipper has done since it was made.
type ShipStats struct {
	Shipped  uint64 // records that the server took
	Rejected uint64 // records that it refused for good, or broken; they are in aside/
	Retries  uint64 // requests sent again
	Torn     uint64 // torn tails set aside
}

// Shipper sends a spool's records to an OTLP/HTTP server, each at least once, and
// in the order of each file. It never gives up on a server that is away.
type Shipper struct {
	dir, url string
	opts     ShipOptions
	swept    time.Time
	done     map[string]bool // files that are shipped to their end

	shipped, rejected, retries, torn atomic.Uint64
}

// NewShipper returns a shipper for the spool in dir. The folder need not exist
// yet.
func NewShipper(dir string, opts ShipOptions) (*Shipper, error) {
	u, err := logsURL(opts.Endpoint)
	if err != nil {
		return nil, err
	}
	return &Shipper{dir: dir, url: u, opts: opts.withDefaults(), done: map[string]bool{}}, nil
}

func logsURL(endpoint string) (string, error) {
	if endpoint == "" {
		endpoint = os.Getenv("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT")
		if endpoint == "" {
			endpoint = os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT")
		}
		if endpoint == "" {
			endpoint = "http://localhost:4318"
		}
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", fmt.Errorf("cannot ship to %q: want a URL such as http://localhost:4318", endpoint)
	}
	if !strings.HasSuffix(u.Path, "/v1/logs") {
		u = u.JoinPath("v1", "logs")
	}
	return u.String(), nil
}

// Stats returns the counters so far.
func (s *Shipper) Stats() ShipStats {
	return ShipStats{
		Shipped: s.shipped.Load(), Rejected: s.rejected.Load(), Retries: s.retries.Load(),
		Torn: s.torn.Load(),
	}
}

// Run ships until ctx ends and returns nil then. While another shipper works on
// the spool it waits for its turn.
func (s *Shipper) Run(ctx context.Context) error {
	release, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	for {
		if _, err := s.pass(ctx); err != nil && ctx.Err() == nil {
			s.opts.OnError(err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(s.opts.Poll):
		}
	}
}

// Drain ships until the spool holds nothing unacknowledged, or ctx ends: then it
// returns ctx's error.
func (s *Shipper) Drain(ctx context.Context) error {
	release, err := s.acquire(ctx)
	if err == nil {
		defer release()
	}
	for err == nil && ctx.Err() == nil {
		var left bool
		left, err = s.pass(ctx)
		if err == nil && !left {
			return nil
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// acquire waits for the spool's shipper lock.
func (s *Shipper) acquire(ctx context.Context) (release func(), err error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot create the spool's folder: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(s.dir, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open the shipper's lock: %w", err)
	}
	for {
		ok, err := tryLock(f)
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("cannot lock the spool: %w", err)
		}
		if ok {
			return func() {
				f.Close()
				s.opts.Client.CloseIdleConnections()
			}, nil
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, ctx.Err()
		case <-time.After(s.opts.Poll):
		}
	}
}

// pass ships what the folder holds now. left reports whether a whole line came
// meanwhile or stays.
func (s *Shipper) pass(ctx context.Context) (left bool, err error) {
	if now := s.opts.now(); now.Sub(s.swept) > sweepEvery {
		s.swept = now
		if _, err := sweep(s.dir, now, s.opts.Keep, s.opts.MaxTotalBytes); err != nil {
			s.opts.OnError(err)
		}
	}
	files, err := list(s.dir)
	if err != nil {
		return false, err
	}
	maps.DeleteFunc(s.done, func(path string, _ bool) bool {
		return !slices.ContainsFunc(files, func(f entry) bool { return f.path == path })
	})
	for _, f := range events(files) {
		if s.done[f.path] {
			continue
		}
		more, e := s.shipFile(ctx, f)
		if ctx.Err() != nil {
			return true, ctx.Err()
		}
		left = left || more
		if e != nil {
			err = errors.Join(err, fmt.Errorf("cannot ship %s: %w", f.path, e))
		}
	}
	return left, err
}

// shipFile ships one file to the end it has now. more reports whether it should
// be looked at again.
func (s *Shipper) shipFile(ctx context.Context, e entry) (more bool, err error) {
	pos, err := readPosition(e.path)
	if err != nil {
		s.opts.OnError(fmt.Errorf("%w; the file is sent from its begin", err))
	}
	if pos.Done {
		s.done[e.path] = true
		return false, nil
	}
	// Asked before reading: what a dead writer wrote is then all there.
	final, err := s.mend(e.path)
	if err != nil {
		return true, err
	}
	if !final && e.size <= pos.Offset {
		return false, nil
	}
	f, err := os.Open(e.path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return true, err
	}
	defer f.Close()
	h, begin, err := s.header(f, e.path)
	if err != nil || begin == 0 {
		return false, err
	}
	at := max(pos.Offset, begin)
	for {
		next, err := s.shipBatch(ctx, e, h, f, at)
		if err != nil {
			return true, err
		}
		if next == at {
			break // the end, or within a line that its writer is writing
		}
		at, more = next, true
		if !final && at >= e.size {
			break // a busy writer must not keep the other files waiting
		}
	}
	if final {
		s.done[e.path] = true
		return false, writePosition(e.path, position{Offset: at, Done: true})
	}
	return more, nil
}

// mend sets a dead writer's torn tail aside. It reports whether the file is final.
func (s *Shipper) mend(path string) (final bool, err error) {
	f, err := openFinal(path)
	if f == nil {
		return false, err
	}
	f.Close()
	torn, err := repair(path)
	if torn != nil {
		s.torn.Add(1)
		s.opts.OnError(torn)
	}
	return true, err
}

// header reads a file's first line. A file without one that can be read is set
// aside as a whole, by its name: begin is 0 then.
func (s *Shipper) header(f *os.File, path string) (h Header, begin int64, err error) {
	lines, next, err := readLines(f, 0, 1, 64<<10, maxLine)
	if err != nil {
		return Header{}, 0, err
	}
	reason := errors.New("the header is torn")
	if len(lines) == 1 {
		h, reason = decodeHeader(lines[0].raw)
	}
	if reason == nil {
		return h, next, nil
	}
	aside := filepath.Join(s.dir, asideFolder, filepath.Base(path))
	if err := os.MkdirAll(filepath.Dir(aside), 0o700); err != nil {
		return Header{}, 0, err
	}
	if err := os.Rename(path, aside); err != nil {
		return Header{}, 0, err
	}
	s.opts.OnError(fmt.Errorf("%s is no spool file of ours, it is now %s: %w", path, aside, reason))
	return Header{}, 0, nil
}

// shipBatch ships the lines that follow at and stores the new position.
func (s *Shipper) shipBatch(ctx context.Context, e entry, h Header, f *os.File, at int64) (next int64, err error) {
	lines, next, err := readLines(f, at, s.opts.BatchRecords, s.opts.BatchBytes, maxLine)
	if err != nil || next == at {
		return at, err
	}
	items := make([]item, 0, len(lines))
	for _, l := range lines {
		i, err := decodeRecord(l, e.stem())
		if err != nil {
			if err := s.keep(e.path, []line{l}, 1, err.Error()); err != nil {
				return at, err
			}
			continue
		}
		items = append(items, i)
	}
	if err := s.deliver(ctx, e.path, h, items); err != nil {
		return at, err
	}
	return next, writePosition(e.path, position{Offset: next})
}
