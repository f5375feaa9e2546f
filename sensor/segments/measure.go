// Package segments finds which requests are hit when not all are: the combination
// of up to three dimensions (region, version, model, adapter, pod and others) in
// which errors, slow requests or poor answers are more than in the rest.
package segments

import (
	"cmp"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"inquest/record"
	"inquest/sensor"
	"inquest/sensor/traces"
)

// Name is that of the sensor and of its findings.
const Name = "traces/segments"

// Dimensions that are not attributes.
const (
	dimOperation = "operation"
	dimVersion   = "service.version"
	dimPod       = "pod"
	dimNode      = "node"
	dimInput     = "input_tokens" // by powers of four
)

// attributeDims are the attributes that are dimensions. The inherited ones are
// properties of the whole request: they count in each service that it passes.
var (
	attributeDims = []string{
		"business.biz_type", "user.segment", "cloud.region", "gen_ai.request.model",
		"system.model_version", "lora.adapter", "gen_ai.request.stream", "system.device",
	}
	inherited = 2 // the first of them
)

// preference is the order in which dimensions are kept that say the same.
var preference = slices.Concat([]string{dimVersion}, attributeDims, []string{dimInput, dimPod, dimNode, dimOperation})

const (
	segmentCap = 512 // segments of one service in one slice
	sampleCap  = 128 // values of one segment in one slice
	itemCap    = 3
)

// All returns the sensors of this package.
func All() []sensor.Sensor { return []sensor.Sensor{Sensor{}} }

// Sensor collects visits by segment; [Judge] compares them.
type Sensor struct{}

// Name implements [sensor.Sensor].
func (Sensor) Name() string { return Name }

// Quadrant implements [sensor.Sensor].
func (Sensor) Quadrant() record.Quadrant { return record.QuadrantTraces }

// Measure implements [sensor.Sensor].
func (Sensor) Measure(w *sensor.Window, p *sensor.Profile) {
	c := collector{segments: map[string]*collected{}, count: map[string]int{}, ops: map[string]string{}}
	var dims []visitDims
	for _, t := range w.Traces {
		dims = dims[:0]
		var all [8]string // of the request, as far as inherited
		for _, v := range t.Visits {
			d := read(v)
			for i := range inherited {
				if all[i] == "" {
					all[i] = d.attributes[i]
				}
			}
			dims = append(dims, d)
		}
		for i, v := range t.Visits {
			d := &dims[i]
			for k := range inherited {
				if d.attributes[k] == "" {
					d.attributes[k] = all[k]
				}
			}
			c.add(v, d)
		}
	}
	p.Segments = c.result()
}

// visitDims are the dimensions of a visit and what it says of its answer.
type visitDims struct {
	attributes [8]string // by attributeDims
	input      string
	quality    float64
	hasQuality bool
}

func read(v *sensor.Visit) (d visitDims) {
	take := func(attrs map[string]string) {
		if len(attrs) == 0 {
			return
		}
		for i, name := range attributeDims {
			if d.attributes[i] == "" {
				d.attributes[i] = sensor.Attribute(attrs, name)
			}
		}
		if d.input == "" {
			a := attrs["gen_ai.usage.input_tokens"]
			if a == "" {
				a = sensor.Attribute(attrs, "tokenization.length")
			}
			d.input = bucket(a)
		}
		if a := attrs["model.confidence"]; a != "" && !d.hasQuality {
			if q, err := strconv.ParseFloat(a, 64); err == nil {
				d.quality, d.hasQuality = q, true
			}
		}
	}
	for _, n := range v.Nodes {
		take(n.Attributes)
	}
	for i := range v.Logs {
		take(v.Logs[i].Attributes)
	}
	return d
}

// bucket puts a number of tokens between two powers of four.
func bucket(tokens string) string {
	n, err := strconv.ParseUint(tokens, 10, 32)
	if err != nil {
		return ""
	}
	k := (bits.Len64(n) + 1) / 2 // n < 4^k
	if k == 0 {
		return "0"
	}
	return strconv.Itoa(1<<(2*k-2)) + ".." + strconv.Itoa(1<<(2*k)-1)
}

// collector gathers segments.
type collector struct {
	segments map[string]*collected
	order    []*collected
	count    map[string]int // of segments, by service
	ops      map[string]string
	key      []byte
}

type collected struct {
	sensor.Segment
	step        int // every step-th value is kept
	told        int // values of quality seen
	stepQuality int
	slowest     []float64
	poorest     []float64
}

// add takes one visit.
func (c *collector) add(v *sensor.Visit, d *visitDims) {
	op, ok := c.ops[v.Entry.Name]
	if !ok {
		op = sensor.OperationName(v.Entry.Name)
		c.ops[v.Entry.Name] = op
	}
	s := c.segment(v, d, op, false)
	if s == nil {
		s = c.segment(v, d, op, true)
	}
	s.Visits++
	it := record.Item{Time: sensor.Time(v.Entry.Start), TraceID: v.Entry.TraceID, SpanID: v.Entry.SpanID, Text: v.Entry.Name}
	if traces.OwnError(v) {
		s.Failures++
		if len(s.Failing) < itemCap {
			s.Failing = append(s.Failing, it)
		}
	}
	own := ownTime(v)
	s.Own, s.step = keep(s.Own, s.step, s.Visits-1, float32(own))
	s.Slowest, s.slowest = most(s.Slowest, s.slowest, own, it)
	if d.hasQuality {
		s.Quality, s.stepQuality = keep(s.Quality, s.stepQuality, s.told, float32(d.quality))
		s.told++
		s.Poorest, s.poorest = most(s.Poorest, s.poorest, -d.quality, it)
	}
}

// segment finds the segment of a visit. When there are too many it returns nil;
// coarse ones leave out what takes the most values.
func (c *collector) segment(v *sensor.Visit, d *visitDims, op string, coarse bool) *collected {
	input, pod, node := d.input, v.Pod, v.Host
	if coarse {
		input, pod, node = otherValue, otherValue, otherValue
	}
	k := append(c.key[:0], v.Service...)
	for _, x := range [...]string{op, v.Entry.Version, input, pod, node} {
		k = append(append(k, 0), x...)
	}
	for _, x := range d.attributes {
		k = append(append(k, 0), x...)
	}
	c.key = k
	s := c.segments[string(k)]
	if s != nil {
		return s
	}
	if !coarse && c.count[v.Service] >= segmentCap {
		return nil
	}
	c.count[v.Service]++
	s = &collected{Segment: sensor.Segment{Service: v.Service}}
	add := func(name, value string) {
		if value != "" {
			s.Dimensions = append(s.Dimensions, sensor.Dimension{Name: name, Value: value})
		}
	}
	add(dimOperation, op)
	add(dimVersion, v.Entry.Version)
	add(dimInput, input)
	add(dimPod, pod)
	add(dimNode, node)
	for i, name := range attributeDims {
		add(name, d.attributes[i])
	}
	slices.SortFunc(s.Dimensions, compareDims)
	c.segments[string(k)] = s
	c.order = append(c.order, s)
	return s
}

// otherValue stands for values that are not told apart.
const otherValue = "*"

func compareDims(a, b sensor.Dimension) int {
	return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Value, b.Value))
}

func (c *collector) result() []sensor.Segment {
	out := make([]sensor.Segment, len(c.order))
	for i, s := range c.order {
		out[i] = s.Segment
	}
	return out
}

// ownTime is the time of a visit that no other service accounts for, ms.
func ownTime(v *sensor.Visit) float64 {
	own := v.Entry.Duration
	for _, n := range v.Nodes {
		for _, c := range n.Children {
			if c.Visit != v {
				own -= c.Duration
			}
		}
	}
	return float64(max(0, own)) / 1e6
}

// keep adds the n-th value to values, of which every step-th is kept.
func keep(values []float32, step, n int, v float32) ([]float32, int) {
	step = max(step, 1)
	if n%step != 0 {
		return values, step
	}
	if len(values) == sampleCap {
		for i := range sampleCap / 2 {
			values[i] = values[2*i]
		}
		values, step = values[:sampleCap/2], 2*step
		if n%step != 0 {
			return values, step
		}
	}
	return append(values, v), step
}

// most keeps the items with the greatest scores, the greatest first.
func most(items []record.Item, scores []float64, score float64, it record.Item) ([]record.Item, []float64) {
	at := len(scores)
	for at > 0 && scores[at-1] < score {
		at--
	}
	if at == itemCap {
		return items, scores
	}
	if len(scores) == itemCap {
		items, scores = items[:itemCap-1], scores[:itemCap-1]
	}
	return slices.Insert(items, at, it), slices.Insert(scores, at, score)
}
