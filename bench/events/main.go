// Command events shows that admission loses no AI event: it sends many, some of
// them broken in every known way, and checks that each good one is stored once
// and each broken one is a dead letter with the right reason. Before, it
// measures what validation costs, on and off in the same run. After, a schema
// that is wrong refuses good events, and once it is mended they are re-driven.
//
//	go run ./bench/events -inquest bin/inquest -n 1000000
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"golang.org/x/sync/errgroup"

	"inquest/admit/event/eventtest"
	"inquest/api/client"
)

const batchSize = 500

type options struct {
	inquest       string
	n, senders    int
	costBatches   int
	costRounds    int
	brokenPercent int
	redriven      int
}

func main() {
	var o options
	flag.StringVar(&o.inquest, "inquest", "bin/inquest", "`path` of inquest's binary")
	flag.IntVar(&o.n, "n", 1_000_000, "events")
	flag.IntVar(&o.senders, "senders", 8, "senders at once")
	flag.IntVar(&o.brokenPercent, "broken", 10, "percent of events that are broken")
	flag.IntVar(&o.costBatches, "cost-batches", 300, "batches of 500 for the cost of validation; 0 leaves it out")
	flag.IntVar(&o.costRounds, "cost-rounds", 6, "rounds of that")
	flag.IntVar(&o.redriven, "redriven", 100_000, "events that are refused at first and re-driven; 0 leaves it out")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "events:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	eventtest.Start = time.Now().Add(-time.Hour)
	if o.costBatches > 0 {
		if err := cost(ctx, o); err != nil {
			return err
		}
	}
	if o.n > 0 {
		if err := exact(ctx, o); err != nil {
			return err
		}
	}
	if o.redriven > 0 {
		return redrive(ctx, o)
	}
	return nil
}

// server is a running inquest.
type server struct {
	cmd       *exec.Cmd
	otlp, api string // URLs
	dir       string
	log       bytes.Buffer
}

func start(ctx context.Context, o options, validate bool) (*server, error) {
	dir, err := os.MkdirTemp("", "inquest-events-")
	if err != nil {
		return nil, err
	}
	return startIn(ctx, o, dir, "extensions::inquest::events::validate="+strconv.FormatBool(validate))
}

func startIn(ctx context.Context, o options, dir, setting string) (*server, error) {
	ports, err := freePorts(4)
	if err != nil {
		return nil, err
	}
	s := &server{dir: dir, otlp: "http://" + ports[0], api: "http://" + ports[1]}
	s.cmd = exec.CommandContext(ctx, o.inquest, "serve", "--data", dir,
		"--set", "receivers::otlp::protocols::http::endpoint="+ports[0],
		"--set", "receivers::otlp::protocols::grpc::endpoint="+ports[2],
		"--set", "extensions::inquest::api::endpoint="+ports[1],
		"--set", setting,
		"--set", "service::telemetry::metrics::level=none")
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	s.cmd.Cancel = func() error { return s.cmd.Process.Signal(os.Interrupt) }
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	for range 200 {
		resp, err := http.Get(s.api + "/healthz")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return s, nil
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	return nil, errors.Join(errors.New("the server does not start: "+s.log.String()), s.stop())
}

// end stops the server and keeps its data.
func (s *server) end() error {
	err := s.cmd.Process.Signal(os.Interrupt)
	_ = s.cmd.Wait() // its exit status after a signal says nothing
	return err
}

func (s *server) stop() error { return errors.Join(s.end(), os.RemoveAll(s.dir)) }

func freePorts(n int) ([]string, error) {
	var addrs []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		addrs = append(addrs, l.Addr().String())
	}
	return addrs, nil
}

// cost sends the same good events to servers that validate and that do not.
func cost(ctx context.Context, o options) error {
	batches := make([][]byte, o.costBatches)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range batches {
		ld := plog.NewLogs()
		lrs := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
		for j := range batchSize {
			eventtest.Good(rng, i*batchSize+j).AttributeRecord().MoveTo(lrs.AppendEmpty())
		}
		data, err := plogotlp.NewExportRequestFromLogs(ld).MarshalProto()
		if err != nil {
			return err
		}
		batches[i] = data
	}
	rates := map[bool][]float64{}
	for round := range o.costRounds {
		for i := range 2 {
			validate := (round+i)%2 == 0
			rate, err := ingest(ctx, o, batches, validate)
			if err != nil {
				return err
			}
			rates[validate] = append(rates[validate], rate)
		}
	}
	on, off := median(rates[true]), median(rates[false])
	fmt.Printf("validation: on %.0f events/s, off %.0f events/s (medians of %d rounds, OTLP attributes): costs %.1f %% of throughput\n",
		on, off, o.costRounds, 100*(1-on/off))
	return nil
}

func ingest(ctx context.Context, o options, batches [][]byte, validate bool) (rate float64, err error) {
	s, err := start(ctx, o, validate)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	began := time.Now()
	var next atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range o.senders {
		group.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(batches) {
					return nil
				}
				if _, err := post(ctx, s.otlp+"/v1/logs", "application/x-protobuf", batches[i]); err != nil {
					return err
				}
			}
		})
	}
	if err := group.Wait(); err != nil {
		return 0, err
	}
	return float64(len(batches)*batchSize) / time.Since(began).Seconds(), nil
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// post sends until it is acknowledged: 429 and 503 ask to try again.
func post(ctx context.Context, url, contentType string, body []byte) ([]byte, error) {
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		req.Header.Set("Content-Type", contentType)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return nil, err
		}
		answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
		resp.Body.Close()
		switch {
		case err != nil:
			return nil, err
		case resp.StatusCode == http.StatusOK:
			return answer, nil
		case resp.StatusCode != http.StatusServiceUnavailable && resp.StatusCode != http.StatusTooManyRequests:
			return nil, fmt.Errorf("%s answered %s: %s", url, resp.Status, answer)
		}
		time.Sleep(time.Second)
	}
}

// exact sends events as JSON lines and checks what is stored.
func exact(ctx context.Context, o options) (err error) {
	s, err := start(ctx, o, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	began := time.Now()
	due, err := send(ctx, o, s, o.n, o.brokenPercent)
	if err != nil {
		return err
	}
	sent := time.Since(began)
	good := due[""]
	delete(due, "")
	fmt.Printf("sent %d events in %.1f s (%.0f/s, made and sent by one process): %d good, %d broken in %d ways of %d reasons\n",
		o.n, sent.Seconds(), float64(o.n)/sent.Seconds(), good, o.n-good, len(eventtest.Kinds), len(due))
	return check(ctx, s, good, due)
}

// send sends n events and returns how many are due for each reason, "" for good
// ones.
func send(ctx context.Context, o options, s *server, n, brokenPercent int) (map[string]int, error) {
	counts := make([]map[string]int, o.senders)
	var next atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for k := range o.senders {
		counts[k] = map[string]int{}
		group.Go(func() error {
			for {
				first := int(next.Add(batchSize)) - batchSize
				if first >= n {
					return nil
				}
				body, due := lines(first, min(batchSize, n-first), brokenPercent)
				for code, n := range due {
					counts[k][code] += n
				}
				if _, err := post(ctx, s.otlp+"/v1/events", "application/x-ndjson", body); err != nil {
					return err
				}
			}
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	due := map[string]int{}
	for _, c := range counts {
		for code, n := range c {
			due[code] += n
		}
	}
	return due, nil
}

// wrongSchema is the published one with a member that no event has.
const wrongSchema = `{"$schema": "https://json-schema.org/draft/2020-12/schema", "$ref": "https://inquest.dev/schema/ai-event/1.0", "required": ["tenant"]}`

// redrive has good events refused by a wrong schema, mends it, and checks that
// re-driving stores each once and leaves no letter.
func redrive(ctx context.Context, o options) (err error) {
	dir, err := os.MkdirTemp("", "inquest-events-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, "wrong.json")
	if err := os.WriteFile(file, []byte(wrongSchema), 0o600); err != nil {
		return err
	}
	data := filepath.Join(dir, "data")
	s, err := startIn(ctx, o, data, "extensions::inquest::events::schema="+file)
	if err != nil {
		return err
	}
	if _, err = send(ctx, o, s, o.redriven, 0); err == nil {
		err = check(ctx, s, 0, map[string]int{"schema.required": o.redriven})
	}
	if err := errors.Join(err, s.end()); err != nil {
		return err
	}
	if s, err = startIn(ctx, o, data, "extensions::inquest::events::validate=true"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	c, err := client.New(s.api, nil)
	if err != nil {
		return err
	}
	began := time.Now()
	done, err := c.RedriveDeadLetters(ctx, client.LetterFilter{All: true})
	if err != nil {
		return err
	}
	fmt.Printf("re-driven in %.1f s: %d letters tried, %d done, %d records stored\n", time.Since(began).Seconds(), done.Letters, done.Done, done.Records)
	return check(ctx, s, o.redriven, map[string]int{})
}

// lines makes events first to first+n-1; due counts the reasons, "" for good ones.
func lines(first, n, brokenPercent int) (body []byte, due map[string]int) {
	rng := rand.New(rand.NewPCG(uint64(first), 7))
	due = map[string]int{}
	for i := first; i < first+n; i++ {
		e, code := eventtest.Good(rng, i), ""
		if i%100 < brokenPercent {
			e, code = eventtest.Broken(rng, i, rng.IntN(len(eventtest.Kinds)))
		}
		text := e.JSON()
		if bytes.ContainsAny(text, "\n\r") {
			text = bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("\n"), []byte(" ")), []byte("\r"), []byte(" "))
		}
		body = append(append(body, text...), '\n')
		due[code]++
	}
	return body, due
}

func check(ctx context.Context, s *server, good int, due map[string]int) error {
	c, err := client.New(s.api, nil)
	if err != nil {
		return err
	}
	letters, err := c.DeadLetterCounts(ctx, client.LetterFilter{})
	if err != nil {
		return err
	}
	got := map[string]int{}
	for _, l := range letters {
		got[l.Reason] += l.Records
	}
	rows, ids, err := stored(ctx, s)
	if err != nil {
		return err
	}
	fmt.Printf("stored %d events with %d request ids; dead letters %v\n", rows, ids, got)
	var errs []error
	if rows != good || ids != good {
		errs = append(errs, fmt.Errorf("%d good events were sent, %d are stored with %d request ids", good, rows, ids))
	}
	if !maps.Equal(got, due) {
		errs = append(errs, fmt.Errorf("dead letters by reason are\n%v, want\n%v", got, due))
	}
	return errors.Join(errs...)
}

// stored counts events and their distinct request ids.
func stored(ctx context.Context, s *server) (rows, ids int, err error) {
	q := url.Values{"query": {`{record.type="log"} | stats count() rows, count_uniq("request.id") ids`}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.api+"/api/v1/records/query?"+q.Encode(), nil)
	if err != nil {
		return 0, 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, 0, err
	}
	defer resp.Body.Close()
	var row struct {
		Rows string `json:"rows"`
		IDs  string `json:"ids"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&row); err != nil {
		return 0, 0, err
	}
	rows, err1 := strconv.Atoi(row.Rows)
	ids, err2 := strconv.Atoi(row.IDs)
	return rows, ids, errors.Join(err1, err2)
}
