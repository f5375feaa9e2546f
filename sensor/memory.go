package sensor

import (
	"context"
	"slices"

	"inquest/record"
)

// Memory is a source that holds its telemetry in memory, for tests and small
// imports. It is used for reading only after it is filled.
type Memory struct {
	AllSpans  []Span
	AllLogs   []Log
	AllSeries []Series
	AllNoted  []Noted
	// Errors make the named quadrants unavailable.
	Errors map[record.Quadrant]error
	// Covered says for which stretches there is data; nil means always.
	Covered []Range
}

// Spans implements [Source].
func (m *Memory) Spans(_ context.Context, r Range, fn func(Span) error) error {
	if err := m.Errors[record.QuadrantTraces]; err != nil {
		return err
	}
	for _, s := range m.AllSpans {
		if r.Contains(s.Start) {
			if err := fn(s); err != nil {
				return err
			}
		}
	}
	return nil
}

// Logs implements [Source].
func (m *Memory) Logs(_ context.Context, r Range, fn func(Log) error) error {
	if err := m.Errors[record.QuadrantLogs]; err != nil {
		return err
	}
	for _, l := range m.AllLogs {
		if r.Contains(l.Time) {
			if err := fn(l); err != nil {
				return err
			}
		}
	}
	return nil
}

// Samples implements [Source].
func (m *Memory) Samples(_ context.Context, r Range, fn func(Series) error) error {
	if err := m.Errors[record.QuadrantMetrics]; err != nil {
		return err
	}
	for _, s := range m.AllSeries {
		s.Points = slices.DeleteFunc(slices.Clone(s.Points), func(p Point) bool { return !r.Contains(p.Time) })
		if len(s.Points) > 0 {
			if err := fn(s); err != nil {
				return err
			}
		}
	}
	return nil
}

// Noted implements [Noter].
func (m *Memory) Noted(_ context.Context, r Range, fn func(Noted) error) error {
	for _, n := range m.AllNoted {
		if r.Contains(n.Finding.To.UnixNano()) {
			if err := fn(n); err != nil {
				return err
			}
		}
	}
	return nil
}

// Describe implements [Source].
func (m *Memory) Describe(_ context.Context, r Range) ([]Coverage, error) {
	var out []Coverage
	for _, q := range []record.Quadrant{record.QuadrantLogs, record.QuadrantMetrics, record.QuadrantTraces} {
		c := Coverage{Source: "memory " + string(q), Quadrant: q}
		if m.Covered != nil {
			c.Ranges = []Range{}
			for _, x := range m.Covered {
				if from, to := max(x.From, r.From), min(x.To, r.To); from < to {
					c.Ranges = append(c.Ranges, Range{from, to})
				}
			}
		}
		if err := m.Errors[q]; err != nil {
			c.Unavailable = err.Error()
		}
		out = append(out, c)
	}
	return out, nil
}
