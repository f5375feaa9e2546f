// Package nezha reads the public data set Nezha/TrainTicket (45 injected faults
// on a micro-service system), gives it as OpenTelemetry requests or as a source
// for the engine, and measures the engine's verdicts on it.
//
// The data set's names, times and truth live here only: the engine gets
// telemetry in OpenTelemetry terms and a question.
package nezha

import (
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// minute is one pair of files: the spans and log records of about a minute.
type minute struct {
	label  string // HH_MM
	traces string // paths
	logs   string
	from   int64 // of the spans, ns
	to     int64
}

// session is one day of recording.
type session struct {
	date    string
	day     time.Time
	minutes []minute // ascending
	metrics []string // paths of pods' files, ascending
	front   []string
	nodes   map[string]string // pod → node
}

// openSessions lists the days of a data set.
func openSessions(dir string) ([]*session, error) {
	days, err := filepath.Glob(filepath.Join(dir, "rca_data", "20*"))
	if err != nil || len(days) == 0 {
		return nil, fmt.Errorf("cannot find rca_data/DATE in %s: give the folder of the data set nezha-trainticket", dir)
	}
	slices.Sort(days)
	var out []*session
	for _, d := range days {
		s := &session{date: filepath.Base(d), nodes: map[string]string{}}
		if s.day, err = time.Parse(time.DateOnly, s.date); err != nil {
			return nil, fmt.Errorf("cannot read folder %s: its name is no date: %w", d, err)
		}
		for _, base := range []string{"rca_data", "construct_data"} {
			if err := s.add(filepath.Join(dir, base, s.date)); err != nil {
				return nil, err
			}
		}
		slices.SortFunc(s.minutes, func(a, b minute) int { return strings.Compare(a.label, b.label) })
		slices.Sort(s.metrics)
		if len(s.minutes) == 0 {
			return nil, fmt.Errorf("cannot find traces of %s in %s: the data set is incomplete", s.date, dir)
		}
		out = append(out, s)
	}
	return out, nil
}

func (s *session) add(dir string) error {
	traces, err := filepath.Glob(filepath.Join(dir, "trace", "*_trace.csv.gz"))
	if err != nil {
		return err
	}
	for _, t := range traces {
		label := strings.TrimSuffix(filepath.Base(t), "_trace.csv.gz")
		m := minute{label: label, traces: t, logs: filepath.Join(dir, "log", label+"_log.csv.gz")}
		if m.from, m.to, err = spanBounds(t); err != nil {
			return err
		}
		s.minutes = append(s.minutes, m)
	}
	metrics, err := filepath.Glob(filepath.Join(dir, "metric", "*_metric.csv.gz"))
	if err != nil {
		return err
	}
	s.metrics = append(s.metrics, metrics...)
	front := filepath.Join(dir, "metric", "front_service.csv.gz")
	if _, err := os.Stat(front); err == nil {
		s.front = append(s.front, front)
	}
	return nil
}

// spanBounds returns the range of starts of the spans of a file.
func spanBounds(path string) (from, to int64, err error) {
	err = eachRow(path, 8, func(row []string) error {
		start, err := strconv.ParseInt(row[5], 10, 64)
		if err != nil {
			return err
		}
		if from == 0 || start < from {
			from = start
		}
		to = max(to, start+1)
		return nil
	})
	return from, to, err
}

// eachRow calls fn for each row of a gzipped CSV file after its heading. The
// slice is valid during the call only.
func eachRow(path string, columns int, fn func(row []string) error) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("cannot read the data set: %w", err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("cannot unpack %s: %w", path, err)
	}
	r := csv.NewReader(z)
	r.ReuseRecord = true
	r.FieldsPerRecord = -1
	r.LazyQuotes = true
	for first := true; ; first = false {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot read %s: %w", path, err)
		}
		if first {
			continue
		}
		if len(row) < columns {
			return fmt.Errorf("cannot read %s: a row has %d columns, not %d", path, len(row), columns)
		}
		if err := fn(row); err != nil {
			return fmt.Errorf("cannot read %s: %w", path, err)
		}
	}
}
