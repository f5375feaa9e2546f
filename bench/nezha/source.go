package nezha

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"time"

	"inquest/record"
	"inquest/sensor"
)

// Source gives one day's recording to the engine. Files are read as they are
// asked for; nothing is held but their bounds and the metric series.
type Source struct {
	s      *session
	series []sensor.Series
	change Change
}

// Change mutates the data on the way, for tests of what must not matter: names,
// the date, the speed of the machines. The zero value changes nothing.
type Change struct {
	// Rename maps a service's name; pods follow.
	Rename func(service string) string
	// Shift moves all times.
	Shift time.Duration
	// Scale stretches all durations of spans and latencies of metrics; 0 is 1.
	Scale float64
}

func (c Change) rename(s string) string {
	if c.Rename == nil {
		return s
	}
	return c.Rename(s)
}

// text renames the services that a text speaks of.
func (c Change) text(body string) string {
	if c.Rename == nil {
		return body
	}
	return serviceName.ReplaceAllStringFunc(body, c.Rename)
}

var serviceName = regexp.MustCompile(`ts-[a-z0-9-]+-service`)

func (c Change) scale() float64 {
	if c.Scale == 0 {
		return 1
	}
	return c.Scale
}

// Sources opens the recording, one source a day.
func Sources(ctx context.Context, dir string, change Change) (map[string]*Source, error) {
	sessions, err := openSessions(dir)
	if err != nil {
		return nil, err
	}
	out := map[string]*Source{}
	for _, s := range sessions {
		src := &Source{s: s, change: change}
		if err := src.loadNodes(); err != nil {
			return nil, err
		}
		if err := src.loadSeries(ctx); err != nil {
			return nil, err
		}
		out[s.date] = src
	}
	return out, nil
}

// interner shares equal strings within one read.
type interner map[string]string

func (t interner) share(s string) string {
	if v, ok := t[s]; ok {
		return v
	}
	c := string(append([]byte(nil), s...))
	t[c] = c
	return c
}

// loadNodes learns from the first log files on which node each pod runs.
func (s *Source) loadNodes() error {
	for _, m := range s.s.minutes {
		err := eachRow(m.logs, 8, func(row []string) error {
			if _, ok := s.s.nodes[row[3]]; !ok {
				s.s.nodes[string(append([]byte(nil), row[3]...))] = string(append([]byte(nil), row[2]...))
			}
			return nil
		})
		if err != nil {
			return err
		}
		if len(s.s.nodes) >= len(s.s.metrics) {
			return nil
		}
	}
	return nil
}

// Bounds returns the first and last time of the day's traces.
func (s *Source) Bounds() (from, to time.Time) {
	m := s.s.minutes
	first, last := m[0].from, m[0].to
	for _, x := range m {
		first, last = min(first, x.from), max(last, x.to)
	}
	return sensor.Time(first).Add(s.change.Shift), sensor.Time(last).Add(s.change.Shift)
}

// Spans implements [sensor.Source].
func (s *Source) Spans(ctx context.Context, r sensor.Range, fn func(sensor.Span) error) error {
	in := interner{}
	shift := int64(s.change.Shift)
	for _, m := range s.overlapping(r) {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		err := eachRow(m.traces, 8, func(row []string) error {
			x, err := parseSpan(row, in.share)
			if err != nil {
				return err
			}
			if !r.Contains(x.start + shift) {
				return nil
			}
			sp := sensor.Span{
				TraceID: x.traceID, SpanID: x.spanID, Parent: x.parent,
				Service: in.share(s.change.rename(x.service)), Pod: in.share(s.pod(x.pod)), Node: s.s.nodes[x.pod],
				Name: x.name, Kind: x.kind, Start: x.start + shift,
				Duration: int64(float64(x.end-x.start) * s.change.scale()),
			}
			if x.namespace != "" {
				sp.Attributes = map[string]string{"db.namespace": x.namespace}
			}
			return fn(sp)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// pod returns the name of a pod after the change of its service's name.
func (s *Source) pod(pod string) string {
	if s.change.Rename == nil {
		return pod
	}
	service := serviceOf(pod)
	return s.change.rename(service) + pod[len(service):]
}

// Logs implements [sensor.Source].
func (s *Source) Logs(ctx context.Context, r sensor.Range, fn func(sensor.Log) error) error {
	in := interner{}
	shift := int64(s.change.Shift)
	seen := map[[2]string]bool{} // neighbouring files repeat some records
	for _, m := range s.overlapping(r) {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		err := eachRow(m.logs, 8, func(row []string) error {
			x, err := parseLog(row, in.share)
			if err != nil {
				return err
			}
			id := [2]string{row[0] + x.spanID, x.body}
			if !r.Contains(x.time+shift) || seen[id] {
				return nil
			}
			seen[[2]string{string(append([]byte(nil), id[0]...)), x.body}] = true
			l := sensor.Log{
				Time: x.time + shift, Service: in.share(s.change.rename(x.service)), Pod: in.share(s.pod(x.pod)), Node: x.node,
				Severity: x.number, Body: s.change.text(x.body), TraceID: x.traceID, SpanID: x.spanID,
			}
			if x.function != "" {
				l.Code = in.share(x.function + "#" + x.line)
			}
			return fn(l)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// overlapping returns the files that may hold something of r: log records stray
// from their trace by less than margin.
func (s *Source) overlapping(r sensor.Range) []minute {
	const margin = int64(2 * time.Minute)
	shift := int64(s.change.Shift)
	var out []minute
	for _, m := range s.s.minutes {
		if m.from+shift-margin < r.To && m.to+shift+margin > r.From {
			out = append(out, m)
		}
	}
	return out
}

// Samples implements [sensor.Source].
func (s *Source) Samples(_ context.Context, r sensor.Range, fn func(sensor.Series) error) error {
	for _, series := range s.series {
		lo, _ := slices.BinarySearchFunc(series.Points, r.From, comparePoint)
		hi, _ := slices.BinarySearchFunc(series.Points, r.To, comparePoint)
		if hi > lo {
			series.Points = series.Points[lo:hi:hi]
			if err := fn(series); err != nil {
				return err
			}
		}
	}
	return nil
}

func comparePoint(p sensor.Point, t int64) int {
	switch {
	case p.Time < t:
		return -1
	case p.Time > t:
		return 1
	default:
		return 0
	}
}

// Describe implements [sensor.Source].
func (s *Source) Describe(_ context.Context, r sensor.Range) ([]sensor.Coverage, error) {
	traces := sensor.Coverage{Source: "nezha " + s.s.date + " traces", Quadrant: record.QuadrantTraces, Ranges: s.covered(r)}
	logs := sensor.Coverage{Source: "nezha " + s.s.date + " logs", Quadrant: record.QuadrantLogs, Ranges: s.covered(r)}
	metrics := sensor.Coverage{Source: "nezha " + s.s.date + " metrics", Quadrant: record.QuadrantMetrics}
	from, to := int64(1<<62), int64(0)
	for _, x := range s.series {
		from, to = min(from, x.Points[0].Time), max(to, x.Points[len(x.Points)-1].Time+1)
	}
	if from, to = max(from, r.From), min(to, r.To); from < to {
		metrics.Ranges = []sensor.Range{{From: from, To: to}}
	}
	return []sensor.Coverage{logs, metrics, traces}, nil
}

// covered joins the files' bounds to blocks.
func (s *Source) covered(r sensor.Range) []sensor.Range {
	const hole = int64(30 * time.Second) // between files that follow each other
	shift := int64(s.change.Shift)
	out := []sensor.Range{}
	for _, m := range s.s.minutes {
		from, to := max(m.from+shift, r.From), min(m.to+shift, r.To)
		if from >= to {
			continue
		}
		if k := len(out) - 1; k >= 0 && from-out[k].To < hole {
			out[k].To = max(out[k].To, to)
		} else {
			out = append(out, sensor.Range{From: from, To: to})
		}
	}
	return out
}

func (s *Source) loadSeries(ctx context.Context) error {
	shift := int64(s.change.Shift)
	index := map[string]*sensor.Series{}
	err := s.s.eachSample(ctx, func(x sample) error {
		key := x.column.name + "\x00" + sensor.LabelText(x.column.labels) + "\x00" + x.pod + "\x00" + x.service + "\x00" + x.node
		series := index[key]
		if series == nil {
			labels := map[string]string{}
			for k, v := range x.column.labels {
				labels[k] = v
			}
			for k, v := range map[string]string{"k8s.pod.name": s.pod(x.pod), "service.name": s.change.rename(x.service), "k8s.node.name": x.node} {
				if v != "" {
					labels[k] = v
				}
			}
			series = &sensor.Series{Name: x.column.name, Unit: x.column.unit, Labels: labels}
			index[key] = series
		}
		v := x.value
		if x.column.unit == "s" {
			v *= s.change.scale()
		}
		series.Points = append(series.Points, sensor.Point{Time: x.time + shift, Value: v})
		return nil
	})
	if err != nil {
		return err
	}
	for _, series := range index {
		slices.SortStableFunc(series.Points, func(a, b sensor.Point) int { return comparePoint(a, b.Time) })
		s.series = append(s.series, *series)
	}
	slices.SortFunc(s.series, func(a, b sensor.Series) int {
		if a.Name != b.Name {
			if a.Name < b.Name {
				return -1
			}
			return 1
		}
		if x, y := sensor.LabelText(a.Labels), sensor.LabelText(b.Labels); x < y {
			return -1
		}
		return 1
	})
	return nil
}

// sample is one value of a metric file.
type sample struct {
	time               int64
	column             *column
	service, pod, node string
	value              float64
}

// eachSample gives the values of all metric files. What is said of a node is
// taken from one of its pods only.
func (s *session) eachSample(ctx context.Context, fn func(sample) error) error {
	speaker := map[string]string{} // node → pod that speaks for it
	in := interner{}
	for _, path := range s.metrics {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		err := eachRow(path, 22, func(row []string) error {
			t, err := metricTime(row[1])
			if err != nil {
				return err
			}
			pod := in.share(row[2])
			node := s.nodes[pod]
			if node != "" && speaker[node] == "" {
				speaker[node] = pod
			}
			for i := range podColumns {
				c := &podColumns[i]
				x := sample{time: t, column: c, service: in.share(serviceOf(pod)), pod: pod, node: node}
				if c.node {
					if node == "" || speaker[node] != pod {
						continue
					}
					x.service, x.pod = "", ""
				}
				if x.value, err = strconv.ParseFloat(row[c.index], 64); err != nil {
					continue // an empty cell is no value
				}
				x.value *= c.factor
				if err := fn(x); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, path := range s.front {
		err := eachRow(path, 8, func(row []string) error {
			t, err := metricTime(row[1])
			if err != nil {
				return err
			}
			for i := range frontColumns {
				c := &frontColumns[i]
				v, err := strconv.ParseFloat(row[c.index], 64)
				if err != nil {
					continue
				}
				if err := fn(sample{time: t, column: c, service: in.share(row[2]), value: v * c.factor}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
