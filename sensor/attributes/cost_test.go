package attributes_test

import (
	"fmt"
	"testing"

	"inquest/sensor"
	"inquest/sensor/attributes"
	"inquest/sensor/traces"
)

// system are requests through four services, of twelve spans each, with the
// attributes that AI services give theirs.
func system(requests int) *sensor.Memory {
	m := &sensor.Memory{}
	services := []string{"gateway", "chat-api", "retriever", "vllm"}
	for r := range requests {
		trace, parent, at := fmt.Sprintf("%032x", r), "", int64(r)*50e6
		for i, name := range services {
			for k, kind := range []string{"server", "internal", "client"} {
				id := fmt.Sprintf("%08x%d%d", r, i, k)
				s := sensor.Span{
					TraceID: trace, SpanID: id, Parent: parent, Service: name, Pod: name + "-1", Node: "n1", Version: "v1",
					Name: kind + " of " + name, Kind: kind, Start: at + int64(3*i+k)*1e6, Duration: int64(1000-30*(3*i+k)) * 1e6,
				}
				if k == 0 {
					s.Attributes = map[string]string{"http.response.status_code": "200", "business.biz_type": "chat", "user.segment": "free"}
				}
				if i == 3 && k == 1 {
					s.Attributes = map[string]string{
						"gen_ai.request.model": "m", "gen_ai.usage.input_tokens": fmt.Sprint(100 + r%400), "gen_ai.usage.output_tokens": fmt.Sprint(r % 300),
						"gen_ai.response.finish_reasons": `["stop"]`, "gen_ai.request.temperature": "0.7", "llm.output.entropy": "2.5",
						"features.deviations.age": "0.5", "system.device": "cuda:0", "model.confidence": "0.9",
					}
				}
				m.AllSpans = append(m.AllSpans, s)
				parent = id
			}
		}
	}
	return m
}

// BenchmarkMeasure gives the time of each sensor for a span.
func BenchmarkMeasure(b *testing.B) {
	w, err := sensor.Gather(b.Context(), system(5000), sensor.Range{From: 0, To: 1e15}, sensor.DefaultLimits)
	if err != nil {
		b.Fatal(err)
	}
	for _, s := range append(traces.All(), attributes.All()...) {
		b.Run(s.Name(), func(b *testing.B) {
			for b.Loop() {
				s.Measure(w, sensor.NewProfile(w.Range))
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(w.Spans), "ns/span")
		})
	}
}
