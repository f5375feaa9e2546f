package admit

import (
	"fmt"
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"inquest/record"
)

// exemplars takes out of a point the exemplars that cannot be stored; the point
// itself is good.
func (a *admission) exemplars(m pmetric.Metric, labels pcommon.Map, exs pmetric.ExemplarSlice, sh *shared) {
	if exs.Len() == 0 {
		return
	}
	var label extent
	label.attributes(labels)
	exs.RemoveIf(func(ex pmetric.Exemplar) bool {
		why := a.exemplar(m, labels, &label, ex, sh)
		if why == "" {
			return false
		}
		a.warn(exemplarLeftOut, 1, func() string {
			return fmt.Sprintf("an exemplar of metric %q was left out of its point: %s", m.Name(), why)
		})
		return true
	})
}

// exemplar returns why it cannot be stored, or "".
func (a *admission) exemplar(m pmetric.Metric, labels pcommon.Map, label *extent, ex pmetric.Exemplar, sh *shared) string {
	if ex.ValueType() == pmetric.ExemplarValueTypeEmpty {
		return "it has no value"
	}
	if t := timestamp(ex.Timestamp()); t != 0 && (t < a.earliest || t > a.latest) {
		return fmt.Sprintf("its time %s is not between %s and %s", timeText(t), timeText(a.earliest), timeText(a.latest))
	}
	var own extent
	own.attributes(ex.FilteredAttributes())
	if own.deep {
		return fmt.Sprintf("it holds a value nested deeper than %d levels", MaxDepth)
	}
	// Labels are JSON texts within JSON.
	own.size += textGrowth*len(m.Name()) + 2*label.size
	if sh.size+own.size <= record.MaxRowSize {
		return ""
	}
	size := sh.rowSize(&own, func(whole bool) int { return exemplarSize(m, labels, ex, sh, whole) })
	if size > record.MaxRowSize {
		return fmt.Sprintf("its %d bytes with labels and resource are above the limit of %d", size, record.MaxRowSize)
	}
	return ""
}

// timestamp returns ts in ns; one past the year 2262 is the last that there is.
func timestamp(ts pcommon.Timestamp) int64 {
	return int64(min(uint64(ts), math.MaxInt64))
}

// pointSize measures a point's name and labels as an exemplar's row has them.
func pointSize(m pmetric.Metric, labels pcommon.Map, sh *shared, whole bool) int {
	ex := pmetric.NewExemplar()
	ex.SetIntValue(0)
	return exemplarSize(m, labels, ex, sh, whole)
}

func exemplarSize(m pmetric.Metric, labels pcommon.Map, ex pmetric.Exemplar, sh *shared, whole bool) int {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	sm := rm.ScopeMetrics().AppendEmpty()
	if whole {
		sh.resource.CopyTo(rm.Resource())
		sh.scope.CopyTo(sm.Scope())
	}
	one := sm.Metrics().AppendEmpty()
	one.SetName(m.Name())
	p := one.SetEmptyGauge().DataPoints().AppendEmpty()
	labels.CopyTo(p.Attributes())
	ex.CopyTo(p.Exemplars().AppendEmpty())
	return new(record.Converter).Exemplars(md, 1, 0)[0].Size()
}
