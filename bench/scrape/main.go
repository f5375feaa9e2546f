// Command scrape measures what scraping costs: it serves the metrics of many
// targets, lets inquest scrape them with nothing but --scrape, and tells the
// processor time of the server and how long after a scrape its samples can be
// queried. It checks that all series are there and that none of them has a gap.
//
//	go run ./bench/scrape -inquest bin/inquest -targets 100 -series 1000
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/common/model"

	"inquest/api/client"
)

type options struct {
	inquest         string
	targets, series int
	rounds          int
	polls           int
}

// interval is serve's default.
const interval = 15 * time.Second

func main() {
	var o options
	flag.StringVar(&o.inquest, "inquest", "bin/inquest", "`path` of inquest's binary")
	flag.IntVar(&o.targets, "targets", 100, "targets")
	flag.IntVar(&o.series, "series", 1000, "series of each, at least 100")
	flag.IntVar(&o.rounds, "rounds", 8, "scrapes of each target for the processor time")
	flag.IntVar(&o.polls, "polls", 4, "scrapes for the time until a query sees them")
	flag.Parse()
	if err := run(context.Background(), o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	dir, err := os.MkdirTemp("", "bench-scrape")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	targets := make([]*target, o.targets)
	api, err := freeAddress()
	if err != nil {
		return err
	}
	args := []string{
		"serve", "--data", filepath.Join(dir, "data"), "--set", "extensions::inquest::api::endpoint=" + api,
		"--set", "service::telemetry::metrics::level=none", "--set", "service::telemetry::logs::level=warn",
		"--set", "receivers::otlp::protocols::http::endpoint=localhost:0", "--set", "receivers::otlp::protocols::grpc::endpoint=localhost:0",
	}
	for i := range targets {
		if targets[i], err = newTarget(i, o.series); err != nil {
			return err
		}
		defer func() { _ = targets[i].server.Close() }() // the process ends anyway
		args = append(args, "--scrape", "bench="+targets[i].address)
	}
	cmd := exec.CommandContext(ctx, o.inquest, args...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}()
	c, err := client.New("http://"+api, nil)
	if err != nil {
		return err
	}
	return measure(ctx, o, c, cmd.Process.Pid, targets)
}

func measure(ctx context.Context, o options, c *client.Client, pid int, targets []*target) error {
	time.Sleep(2*interval + time.Second) // every target once, and all series made
	began, before, bytes := time.Now(), processorTime(pid), sent(targets)
	time.Sleep(time.Duration(o.rounds) * interval)
	took, cpu := time.Since(began), processorTime(pid)-before
	fmt.Printf("targets %d, series %d, %.0f samples/s, %.1f MB/s of text\n", o.targets, o.targets*targets[0].lines,
		float64(o.targets*targets[0].lines)/interval.Seconds(), float64(sent(targets)-bytes)/took.Seconds()/1e6)
	fmt.Printf("processor time of the server: %.1f%% of one core over %s, resident memory %d MB\n", 100*cpu.Seconds()/took.Seconds(), took.Round(time.Second), residentMB(pid))

	n, err := value(ctx, c, `count({job="bench",i=~".+"})`)
	if err != nil {
		return err
	}
	if want := o.targets * targets[0].lines; int(n) != want {
		return fmt.Errorf("%d series are there, want %d", int(n), want)
	}
	// up is there once an interval at every target.
	window := time.Duration(o.rounds-1) * interval
	n, err = value(ctx, c, fmt.Sprintf(`min(count_over_time(up{job="bench"}[%s]))`, model.Duration(window)))
	if err != nil {
		return err
	}
	if int(n) < o.rounds-1 {
		return fmt.Errorf("a target was scraped %d times in %s, want %d", int(n), window, o.rounds-1)
	}
	fmt.Printf("all series are there, no target missed a scrape in %s\n", window)
	return fresh(ctx, o, c, targets)
}

// fresh measures the time from a target's answer to a query that sees it.
func fresh(ctx context.Context, o options, c *client.Client, targets []*target) error {
	var delays []time.Duration
	for i := range o.polls {
		t := targets[i*len(targets)/o.polls]
		last := t.answered.Load()
		for t.answered.Load() == last {
			time.Sleep(time.Millisecond)
		}
		at := t.answered.Load()
		for {
			v, err := value(ctx, c, fmt.Sprintf(`answered{instance=%q}`, t.address))
			if err != nil {
				return err
			}
			if int64(v) >= at/1e6 {
				break
			}
			time.Sleep(2 * time.Millisecond)
		}
		delays = append(delays, time.Since(time.Unix(0, at)))
	}
	slices.Sort(delays)
	fmt.Printf("from the target's answer to a query that sees it: %s median, %s longest of %d\n",
		delays[len(delays)/2].Round(time.Millisecond), delays[len(delays)-1].Round(time.Millisecond), len(delays))
	return nil
}

func value(ctx context.Context, c *client.Client, expr string) (float64, error) {
	res, _, err := c.QueryInstant(ctx, expr, time.Now())
	if err != nil {
		return 0, err
	}
	var v model.Vector
	if err := json.Unmarshal(res.Result, &v); err != nil || len(v) != 1 {
		return 0, err
	}
	return float64(v[0].Value), nil
}

// target is one server with metrics.
type target struct {
	address  string
	server   *http.Server
	lines    int
	answered atomic.Int64 // ns, the last time
	bytes    atomic.Int64
}

func newTarget(n, series int) (*target, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	t := &target{address: ln.Addr().String()}
	var scrapes atomic.Int64
	t.lines = strings.Count(string(page(n, series, 0)), "i=\"")
	t.server = &http.Server{ReadHeaderTimeout: 5 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		text := page(n, series, scrapes.Add(1))
		now := time.Now().UnixNano()
		t.answered.Store(now)
		text = fmt.Appendf(text, "# TYPE answered gauge\nanswered %d\n", now/1e6)
		t.bytes.Add(int64(len(text)))
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = w.Write(text) // the scraper's failure is seen in its up
	})}
	go func() { _ = t.server.Serve(ln) }()
	return t, nil
}

func sent(targets []*target) (n int64) {
	for _, t := range targets {
		n += t.bytes.Load()
	}
	return n
}

// page is half gauges and counters, half histograms of ten buckets.
func page(n, series int, scrape int64) []byte {
	var b []byte
	histograms := series / 2 / 12
	scalars := series - 12*histograms
	b = append(b, "# HELP bench_gauge A gauge.\n# TYPE bench_gauge gauge\n"...)
	for i := range scalars / 2 {
		b = fmt.Appendf(b, "bench_gauge{i=\"%d\",model=\"m-%d\",zone=\"eu-1\"} %g\n", i, i%7, float64((scrape*31+int64(i*n))%1000)/7)
	}
	b = append(b, "# HELP bench_events_total A counter.\n# TYPE bench_events_total counter\n"...)
	for i := range scalars - scalars/2 {
		b = fmt.Appendf(b, "bench_events_total{i=\"%d\",code=\"%d\",zone=\"eu-1\"} %d\n", i, 200+i%5, scrape*int64(i+1))
	}
	b = append(b, "# HELP bench_seconds A histogram.\n# TYPE bench_seconds histogram\n"...)
	bounds := []string{"0.005", "0.01", "0.05", "0.1", "0.25", "0.5", "1.0", "2.5", "10.0", "+Inf"}
	for i := range histograms {
		for k, le := range bounds {
			b = fmt.Appendf(b, "bench_seconds_bucket{i=\"%d\",route=\"/v1/r%d\",le=\"%s\"} %d\n", i, i%9, le, scrape*int64(k+1))
		}
		b = fmt.Appendf(b, "bench_seconds_sum{i=\"%d\",route=\"/v1/r%d\"} %g\n", i, i%9, float64(scrape)*1.7)
		b = fmt.Appendf(b, "bench_seconds_count{i=\"%d\",route=\"/v1/r%d\"} %d\n", i, i%9, scrape*10)
	}
	return b
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// processorTime is user and system time of a process so far.
func processorTime(pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	f := strings.Fields(rest)
	if len(f) < 13 {
		return 0
	}
	user, err1 := strconv.Atoi(f[11])
	system, err2 := strconv.Atoi(f[12])
	if errors.Join(err1, err2) != nil {
		return 0
	}
	return time.Duration(user+system) * 10 * time.Millisecond // USER_HZ is 100
}

func residentMB(pid int) int {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	defer f.Close()
	text, _ := io.ReadAll(f)
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	kb := 0
	_, _ = fmt.Sscan(rest, &kb)
	return kb / 1024
}
