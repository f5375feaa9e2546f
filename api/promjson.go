package api

import (
	"fmt"
	"net/http"

	jsoniter "github.com/json-iterator/go"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/jsonutil"

	"inquest/store"
)

// promJSON writes results as Prometheus' HTTP API does: times in seconds,
// values as strings, so that NaN and infinities pass. Prometheus' own encoder
// sits in a package that brings its whole server; what it shares, numbers and
// histograms, is used from there.
type promJSON struct {
	*jsoniter.Stream
}

// writeResult answers with the result of a query.
func writeResult(w http.ResponseWriter, res store.Result, warnings []string) error {
	if res.Value == nil {
		return errorf("the store gave no value")
	}
	w.Header().Set("Content-Type", "application/json")
	j := promJSON{jsoniter.NewStream(jsoniter.ConfigCompatibleWithStandardLibrary, w, 32<<10)}
	j.WriteRaw(`{"status":"success","data":{"resultType":`)
	j.WriteString(string(res.Value.Type()))
	j.WriteRaw(`,"result":`)
	if err := j.value(res.Value); err != nil {
		return err
	}
	j.WriteRaw(`}`)
	if warnings = withLag(w, warnings); len(warnings) > 0 {
		j.WriteRaw(`,"warnings":`)
		j.WriteVal(warnings)
	}
	j.WriteRaw(`}`)
	return j.Flush()
}

// encodeValue returns the encoding of a value alone.
func encodeValue(v parser.Value) ([]byte, error) {
	j := promJSON{jsoniter.NewStream(jsoniter.ConfigCompatibleWithStandardLibrary, nil, 512)}
	if err := j.value(v); err != nil {
		return nil, err
	}
	return j.Buffer(), j.Error
}

func (j promJSON) value(v parser.Value) error {
	switch v := v.(type) {
	case promql.Vector:
		writeArray(j, v, j.sample)
	case promql.Matrix:
		writeArray(j, v, j.series)
	case promql.Scalar:
		j.point(v.T, func() { jsonutil.MarshalFloat(v.V, j.Stream) })
	case promql.String:
		j.point(v.T, func() { j.WriteString(v.V) })
	default:
		return fmt.Errorf("cannot encode a result of type %T", v)
	}
	return nil
}

// writeArray writes the elements and passes them on now and then, so that a
// large answer does not lie in memory twice.
func writeArray[T any](j promJSON, elems []T, write func(T)) {
	j.WriteArrayStart()
	for i, e := range elems {
		if i > 0 {
			j.WriteMore()
		}
		write(e)
		if j.Buffered() > 256<<10 {
			j.Flush() //nolint:errcheck // the stream keeps the error for the last Flush
		}
	}
	j.WriteArrayEnd()
}

func (j promJSON) sample(s promql.Sample) {
	j.WriteRaw(`{"metric":`)
	j.labels(s.Metric)
	if s.H != nil {
		j.WriteRaw(`,"histogram":`)
		j.histogram(s.T, s.H)
	} else {
		j.WriteRaw(`,"value":`)
		j.float(s.T, s.F)
	}
	j.WriteObjectEnd()
}

func (j promJSON) series(s promql.Series) {
	j.WriteRaw(`{"metric":`)
	j.labels(s.Metric)
	if len(s.Floats) > 0 {
		j.WriteRaw(`,"values":`)
		writeArray(j, s.Floats, func(p promql.FPoint) { j.float(p.T, p.F) })
	}
	if len(s.Histograms) > 0 {
		j.WriteRaw(`,"histograms":`)
		writeArray(j, s.Histograms, func(p promql.HPoint) { j.histogram(p.T, p.H) })
	}
	j.WriteObjectEnd()
}

func (j promJSON) point(t int64, value func()) {
	j.WriteArrayStart()
	jsonutil.MarshalTimestamp(t, j.Stream)
	j.WriteMore()
	value()
	j.WriteArrayEnd()
}

func (j promJSON) float(t int64, f float64) {
	j.point(t, func() { jsonutil.MarshalFloat(f, j.Stream) })
}

func (j promJSON) histogram(t int64, h *histogram.FloatHistogram) {
	j.point(t, func() { jsonutil.MarshalHistogram(h, j.Stream) })
}

func (j promJSON) labels(ls labels.Labels) {
	j.WriteObjectStart()
	first := true
	ls.Range(func(l labels.Label) {
		if !first {
			j.WriteMore()
		}
		first = false
		j.WriteString(l.Name)
		j.WriteRaw(":")
		j.WriteString(l.Value)
	})
	j.WriteObjectEnd()
}
