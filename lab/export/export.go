// Package export gives a run of the laboratory as OpenTelemetry requests, in the
// order of time, and writes it to files as the Collector's file exporter does.
package export

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"inquest/lab/scenario"
	"inquest/lab/telemetry"
)

// step is how much of a run goes into one request of each signal.
const step = 10 * time.Second

// Sink takes the requests of a run.
type Sink interface {
	Traces(ptrace.Traces) error
	Logs(plog.Logs) error
	Metrics(pmetric.Metrics) error
}

// Send gives a run to a sink, ten seconds at a time. What has no record is left
// out. An error of the sink ends it.
func Send(r *scenario.Run, to Sink) error {
	o := telemetry.OTLP{Start: r.Start}
	rec := r.Recorder
	// Skewed clocks stamp before the world began and after it ended.
	for at := -time.Minute; at < scenario.Duration+time.Minute; at += step {
		w := telemetry.Window{From: at, To: at + step}
		if td := o.Traces(rec.Spans, w); td.SpanCount() > 0 {
			if err := to.Traces(td); err != nil {
				return err
			}
		}
		if ld := o.Logs(rec.Logs, w); ld.LogRecordCount() > 0 {
			if err := to.Logs(ld); err != nil {
				return err
			}
		}
		if md := o.Metrics(rec.Series, w); md.DataPointCount() > 0 {
			if err := to.Metrics(md); err != nil {
				return err
			}
		}
	}
	return nil
}

// Truth is what is true of a run, as truth.json has it.
type Truth struct {
	Scenario string    `json:"scenario"`
	Seed     uint64    `json:"seed"`
	Start    time.Time `json:"start"`
	// Onset is when the faults began, or what is harmless.
	Onset  time.Time `json:"onset"`
	End    time.Time `json:"end"`
	Causes []Cause   `json:"causes"` // none in a healthy run
	// From, To and Baseline are the question to ask.
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
	Baseline []Range   `json:"baseline"`
}

// Cause is one fault: any of the identifiers at any of the entities is right.
type Cause struct {
	Faults   []string `json:"faults"`
	Entities []string `json:"entities"`
}

// Range is a stretch of time.
type Range struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// TruthOf returns what is true of a run.
func TruthOf(s scenario.Scenario, r *scenario.Run) Truth {
	t := Truth{
		Scenario: s.Name, Seed: s.Asked, Start: r.Start, Onset: r.Onset, End: r.End,
		From: r.Question.From, To: r.Question.To, Causes: []Cause{},
	}
	for _, b := range r.Question.Baseline {
		t.Baseline = append(t.Baseline, Range{b.From, b.To})
	}
	for _, x := range r.Truths {
		c := Cause{Faults: x.Faults}
		for _, e := range x.Entities {
			c.Entities = append(c.Entities, e.String())
		}
		t.Causes = append(t.Causes, c)
	}
	return t
}

// Write writes traces.jsonl, logs.jsonl, metrics.jsonl (one request in OTLP/JSON a
// line) and truth.json into dir, which must be empty or not there. The folder
// appears whole or not at all. The same scenario and start give the same bytes.
func Write(s scenario.Scenario, r *scenario.Run, dir string) error {
	switch entries, err := os.ReadDir(dir); {
	case err == nil && len(entries) > 0:
		return fmt.Errorf("%s is not empty: name a new folder", dir)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("cannot use the folder: %w", err)
	}
	parent := filepath.Dir(filepath.Clean(dir))
	if err := os.MkdirAll(parent, 0o750); err != nil {
		return fmt.Errorf("cannot make the folder: %w", err)
	}
	temporary, err := os.MkdirTemp(parent, ".lab-run-")
	if err != nil {
		return fmt.Errorf("cannot make the folder: %w", err)
	}
	defer os.RemoveAll(temporary) // nothing when it was renamed
	if err := writeAll(s, r, temporary); err != nil {
		return fmt.Errorf("cannot write the run: %w", err)
	}
	if err := os.Chmod(temporary, 0o750); err != nil { //nolint:gosec // a folder needs its x bits
		return fmt.Errorf("cannot write the run: %w", err)
	}
	if err := os.Rename(temporary, dir); err != nil {
		return fmt.Errorf("cannot put the run in its place: %w", err)
	}
	return nil
}

func writeAll(s scenario.Scenario, r *scenario.Run, dir string) error {
	var all files
	for _, name := range []string{"traces", "logs", "metrics"} {
		f, err := os.Create(filepath.Join(dir, name+".jsonl")) //nolint:gosec // the caller's folder
		if err != nil {
			return err
		}
		defer f.Close()
		all = append(all, bufio.NewWriter(f))
	}
	if err := Send(r, all); err != nil {
		return err
	}
	for _, w := range all {
		if err := w.Flush(); err != nil {
			return err
		}
	}
	truth, err := json.MarshalIndent(TruthOf(s, r), "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "truth.json"), append(truth, '\n'), 0o600)
}

// files are those of traces, logs and metrics.
type files []*bufio.Writer

func line(w *bufio.Writer, b []byte, err error) error {
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

// Traces implements [Sink].
func (f files) Traces(td ptrace.Traces) error {
	b, err := (&ptrace.JSONMarshaler{}).MarshalTraces(td)
	return line(f[0], b, err)
}

// Logs implements [Sink].
func (f files) Logs(ld plog.Logs) error {
	b, err := (&plog.JSONMarshaler{}).MarshalLogs(ld)
	return line(f[1], b, err)
}

// Metrics implements [Sink].
func (f files) Metrics(md pmetric.Metrics) error {
	b, err := (&pmetric.JSONMarshaler{}).MarshalMetrics(md)
	return line(f[2], b, err)
}
