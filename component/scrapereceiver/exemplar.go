package scrapereceiver

import (
	"encoding/hex"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// exemplars adds those that are new since the last scrape: a target shows an
// exemplar until it has another.
func (s *series) exemplars(in []exemplar.Exemplar, out pmetric.ExemplarSlice) {
	newest := s.exemplar
	for _, e := range in {
		old := e.Value == newest.Value && e.HasTs == newest.HasTs && labels.Equal(e.Labels, newest.Labels)
		if old && (!e.HasTs || e.Ts <= newest.Ts) || e.HasTs && newest.HasTs && e.Ts < newest.Ts {
			continue
		}
		s.exemplar = e
		one := out.AppendEmpty()
		one.SetTimestamp(nanos(e.Ts))
		one.SetDoubleValue(e.Value)
		e.Labels.Range(func(l labels.Label) {
			switch l.Name {
			case "trace_id":
				if id, ok := bytesOf[pcommon.TraceID](l.Value); ok {
					one.SetTraceID(id)
					return
				}
			case "span_id":
				if id, ok := bytesOf[pcommon.SpanID](l.Value); ok {
					one.SetSpanID(id)
					return
				}
			}
			one.FilteredAttributes().PutStr(l.Name, l.Value)
		})
	}
}

// bytesOf reads an id in hexadecimal; one of another length is none, nor is zero.
func bytesOf[ID interface {
	pcommon.TraceID | pcommon.SpanID
	IsEmpty() bool
}](text string,
) (id ID, ok bool) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(id) {
		return id, false
	}
	switch p := any(&id).(type) {
	case *pcommon.TraceID:
		copy(p[:], b)
	case *pcommon.SpanID:
		copy(p[:], b)
	}
	return id, !id.IsEmpty()
}
