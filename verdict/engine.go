package verdict

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"inquest/catalog"
	"inquest/record"
	"inquest/sensor"
	"inquest/sensor/attributes"
	"inquest/sensor/logs"
	"inquest/sensor/metrics"
	"inquest/sensor/resources"
	"inquest/sensor/segments"
	"inquest/sensor/traces"
)

// Options set how an engine works. The zero value of a field means its default.
type Options struct {
	// Catalog holds the faults; nil means the one that comes with inquest.
	Catalog *catalog.Catalog
	// Lookback is how far before the incident the engine looks for its baseline
	// when the question names none; default 1 h.
	Lookback time.Duration
	// Slices bounds the baseline's slices; default 120. More sharpen p-values
	// little and cost time.
	Slices int
	// Limits bound what is read at once.
	Limits sensor.Limits
	// Findings bounds the findings of a verdict; default 60.
	Findings int
}

const (
	defaultLookback = time.Hour
	defaultSlices   = 120
	defaultFindings = 60
	// leastSlice is the shortest slice: below it, few requests are whole.
	leastSlice = 10 * time.Second
	// wantSlices is the number of slices that lets an empirical p-value reach the
	// customary 0.05: 1/(19+1).
	wantSlices = 19
	// chunk is the longest stretch that is gathered at once, margin what is read
	// around it so that requests at its edges are whole.
	chunk  = 10 * time.Minute
	margin = 30 * time.Second
)

// Engine judges what one source holds. It keeps the measures of slices that it
// has read, so that several questions about one stretch cost little more than
// one. It is used by one goroutine.
type Engine struct {
	src  sensor.Source
	opt  Options
	voc  *sensor.Vocabulary
	seen map[sensor.Range]*sensor.Profile
}

// New returns an engine for a source.
func New(src sensor.Source, opt Options) (*Engine, error) {
	if opt.Catalog == nil {
		c, err := catalog.Default()
		if err != nil {
			return nil, err
		}
		opt.Catalog = c
	}
	if opt.Lookback <= 0 {
		opt.Lookback = defaultLookback
	}
	if opt.Slices <= 0 {
		opt.Slices = defaultSlices
	}
	if opt.Findings <= 0 {
		opt.Findings = defaultFindings
	}
	if opt.Limits == (sensor.Limits{}) {
		opt.Limits = sensor.DefaultLimits
	}
	return &Engine{src: src, opt: opt, voc: &sensor.Vocabulary{}, seen: map[sensor.Range]*sensor.Profile{}}, nil
}

// ErrQuestion marks a question that cannot be answered as it stands.
var ErrQuestion = errors.New("bad question")

// Investigate answers one question with the default options.
func Investigate(ctx context.Context, src sensor.Source, q Question) (*Verdict, error) {
	e, err := New(src, Options{})
	if err != nil {
		return nil, err
	}
	return e.Investigate(ctx, q)
}

// Investigate answers one question. Sources that cannot be read make the verdict
// weaker, not an error; an error is returned for a bad question ([ErrQuestion])
// and when ctx ends.
func (e *Engine) Investigate(ctx context.Context, q Question) (*Verdict, error) {
	if err := check(q); err != nil {
		return nil, err
	}
	ev, err := e.gather(ctx, q)
	if err != nil {
		return nil, err
	}
	f := newFacts(ev, q)
	f.clean(e.opt.Catalog)
	ranked := weigh(e.opt.Catalog, f)
	return e.decide(q, ev, f, ranked), nil
}

// Findings returns all that was found for a question, also what is as usual, with
// the strength that it has after the baseline was cleaned. Errors are those of
// [Engine.Investigate].
func (e *Engine) Findings(ctx context.Context, q Question) ([]record.Finding, error) {
	if err := check(q); err != nil {
		return nil, err
	}
	ev, err := e.gather(ctx, q)
	if err != nil {
		return nil, err
	}
	f := newFacts(ev, q)
	f.clean(e.opt.Catalog)
	return f.findings, nil
}

func check(q Question) error {
	if q.From.IsZero() || q.To.IsZero() || !q.From.Before(q.To) {
		return fmt.Errorf("%w: from %v must be before to %v", ErrQuestion, q.From, q.To)
	}
	for _, b := range q.Baseline {
		if !b.From.Before(b.To) {
			return fmt.Errorf("%w: baseline from %v must be before its to %v", ErrQuestion, b.From, b.To)
		}
	}
	if o := q.Onset; o != nil && (o.Before(q.From) || o.After(q.To)) {
		return fmt.Errorf("%w: onset %v lies outside the window", ErrQuestion, o)
	}
	return nil
}

// requestSensors measure requests and log records, seriesSensors metric series.
// The two are sliced apart: they are recorded at different paces.
func requestSensors() []sensor.Sensor {
	return slices.Concat(traces.All(), attributes.All(), segments.All(), logs.All())
}

func seriesSensors() []sensor.Sensor { return append(metrics.All(), resources.All()...) }

// evidence is everything measured for a question.
type evidence struct {
	window   sensor.Range
	baseline []sensor.Range

	requests, series         *sensor.Profile   // of the incident
	baseRequests, baseSeries []*sensor.Profile // of the baseline
	windowSeries             *sensor.Window    // of metrics, baseline and incident

	voc      *sensor.Vocabulary
	examined []Examined
	missing  []Missing
	noted    []sensor.Noted // found by checks while recording
	has      map[record.Quadrant]bool
}
