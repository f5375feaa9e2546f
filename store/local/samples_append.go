package local

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/storage/remote/otlptranslator/prometheusremotewrite"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"inquest/store"
)

// Limits on one series. A point beyond them is rejected.
const (
	maxLabels     = 256
	maxLabelName  = 1 << 10
	maxLabelValue = 16 << 10
)

// maxRejections is how many points of one call are reported each with a reason
// of its own; of the rest the number and the last reason are reported.
const maxRejections = 1000

var translation = prometheusremotewrite.Settings{
	AddMetricSuffixes: true,
	PromoteResourceAttributes: prometheusremotewrite.NewPromoteResourceAttributes(config.OTLPConfig{
		PromoteAllResourceAttributes: true,
	}),
	DisableTargetInfo:     true,
	AllowDeltaTemporality: true,
}

// scraped is for metrics that have the name of Prometheus already.
var scraped = func() prometheusremotewrite.Settings {
	s := translation
	s.AddMetricSuffixes = false
	s.LabelNamePreserveMultipleUnderscores = true
	return s
}()

// AppendMetrics implements [store.Samples].
//
// A point that comes again with another value is rejected where the database
// can see it: in the same call, or when it is the series' newest. A late point
// that contradicts an older one is taken, and it is open which of the two a
// query sees; exactly one it is.
func (s *Samples) AppendMetrics(ctx context.Context, md pmetric.Metrics) ([]store.Rejection, error) {
	leave, err := s.gate.enter()
	if err != nil {
		return nil, fmt.Errorf("cannot append metrics: %w", err)
	}
	defer leave()
	if err := s.guard.mayAppend(); err != nil {
		return nil, fmt.Errorf("cannot append metrics: %w", err)
	}
	var rejected []store.Rejection
	for _, part := range byNaming(md) {
		more, err := s.append(ctx, part, false)
		if errors.Is(err, errSplit) {
			// A point that cannot be translated makes the translator pass over the
			// rest of its metric. So they go one by one.
			more, err = s.append(ctx, part, true)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot append metrics: %w", err)
		}
		rejected = append(rejected, more...)
	}
	return rejected, nil
}

// errSplit says that some points were passed over.
var errSplit = errors.New("points must be appended one by one")

func (s *Samples) append(ctx context.Context, part naming, split bool) ([]store.Rejection, error) {
	md, settings := part.md, part.settings
	app := newCheckedAppender(s, s.db.AppenderV2(ctx))
	s.conv.Reset(app)
	defer s.conv.Reset(nil)
	var err error
	if split {
		err = forEachPoint(md, func(one pmetric.Metrics, name string, unix int64) error {
			mendNames(one)
			if _, err := s.conv.FromMetrics(ctx, one, settings); err != nil {
				if ctx.Err() != nil {
					return err
				}
				app.reject(fmt.Sprintf("%s at %s", name, rfc3339(unix)), err)
			}
			return nil
		})
	} else if _, err = s.conv.FromMetrics(ctx, md, settings); err != nil && ctx.Err() == nil {
		err = errSplit
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, errors.Join(err, app.Rollback())
	}
	s.unsynced = true
	if err := app.Commit(); err != nil {
		if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EIO) || errors.Is(err, syscall.EDQUOT) {
			err = fmt.Errorf("%w: %w", store.ErrUnavailable, err)
		}
		return nil, err
	}
	for name, m := range app.meta {
		s.meta.set(name, m)
	}
	return app.rejections(), nil
}

// checkedAppender stands between the translator and the database. It turns
// errors of one point into rejections, so that the translator goes on.
type checkedAppender struct {
	storage.AppenderV2
	lo, hi int64
	seen   map[pointKey]sampleValue
	meta   map[string]store.Metadata

	// A point of a histogram is several samples: bad has those reported.
	bad    map[pointKey]struct{}
	out    []store.Rejection
	extra  store.Rejection
	labels labels.Builder
}

type pointKey struct {
	hash uint64
	t    int64
}

type sampleValue struct {
	bits uint64
	h    *histogram.Histogram
	fh   *histogram.FloatHistogram
}

func (v sampleValue) equal(w sampleValue) bool {
	switch {
	case v.h != nil && w.h != nil:
		return v.h.Equals(w.h)
	case v.fh != nil && w.fh != nil:
		return v.fh.Equals(w.fh)
	}
	return v == w
}

func newCheckedAppender(s *Samples, app storage.AppenderV2) *checkedAppender {
	a := &checkedAppender{AppenderV2: app, seen: map[pointKey]sampleValue{}, meta: map[string]store.Metadata{}, bad: map[pointKey]struct{}{}}
	a.lo, a.hi = s.bounds(time.Now(), 30*time.Second)
	return a
}

func (a *checkedAppender) Append(ref storage.SeriesRef, ls labels.Labels, st, t int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, opts storage.AOptions) (storage.SeriesRef, error) {
	if opts.MetricFamilyName != "" {
		a.meta[opts.MetricFamilyName] = metadataOf(opts.Metadata)
	}
	if err := a.check(ls, t); err != nil {
		a.rejectSample(ls, t, opts.MetricFamilyName, err)
		return 0, nil
	}
	key, val := pointKey{ls.Hash(), t}, sampleValue{math.Float64bits(v), h, fh}
	if old, ok := a.seen[key]; ok {
		if !old.equal(val) {
			a.rejectSample(ls, t, opts.MetricFamilyName, errors.New("the same request has another value for this series and time"))
		}
		return 0, nil
	}
	opts.Exemplars = nil // they are records
	ref, err := a.AppenderV2.Append(ref, ls, st, t, v, h, fh, opts)
	if err != nil {
		if value.IsStaleNaN(v) && errors.Is(err, storage.ErrDuplicateSampleForTimestamp) {
			return 0, nil // an end where there is a value says nothing new
		}
		a.rejectSample(ls, t, opts.MetricFamilyName, err)
		return 0, nil
	}
	a.seen[key] = val
	return ref, nil
}

func (a *checkedAppender) check(ls labels.Labels, t int64) error {
	if t < a.lo || t > a.hi {
		return fmt.Errorf("time is not between %s and %s", rfc3339(a.lo*1e6), rfc3339(a.hi*1e6))
	}
	if n := ls.Len(); n > maxLabels {
		return fmt.Errorf("%d labels; at most %d can be stored", n, maxLabels)
	}
	return ls.Validate(func(l labels.Label) error {
		if len(l.Name) > maxLabelName {
			return fmt.Errorf("label name %.40q… has %d bytes; at most %d can be stored", l.Name, len(l.Name), maxLabelName)
		}
		if len(l.Value) > maxLabelValue {
			return fmt.Errorf("label %s has %d bytes; at most %d can be stored", l.Name, len(l.Value), maxLabelValue)
		}
		return nil
	})
}

// rejectSample rejects the point that the sample belongs to.
func (a *checkedAppender) rejectSample(ls labels.Labels, t int64, family string, err error) {
	a.labels.Reset(ls)
	a.labels.Set(model.MetricNameLabel, family)
	a.labels.Del("le", "quantile")
	point := a.labels.Labels()
	key := pointKey{point.Hash(), t}
	if _, ok := a.bad[key]; ok {
		return
	}
	a.bad[key] = struct{}{}
	what := point.String()
	if len(what) > 300 {
		what = strings.ToValidUTF8(what[:300], "") + "…"
	}
	a.reject(fmt.Sprintf("%s at %s", what, rfc3339(t*1e6)), err)
}

func (a *checkedAppender) reject(what string, err error) {
	r := store.Rejection{Points: 1, Reason: what + ": " + err.Error()}
	if len(a.out) < maxRejections {
		a.out = append(a.out, r)
		return
	}
	a.extra.Points++
	a.extra.Reason = "more points like this: " + r.Reason
}

func (a *checkedAppender) rejections() []store.Rejection {
	if a.extra.Points > 0 {
		return append(a.out, a.extra)
	}
	return a.out
}
