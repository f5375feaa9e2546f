package attributes

import (
	"fmt"
	"strings"
	"testing"

	"inquest/record"
	"inquest/sensor"
)

// span is one visit of the service s, with attributes "name=value".
func span(id int, attrs ...string) sensor.Span {
	return sensor.Span{
		TraceID: fmt.Sprint("t", id), SpanID: fmt.Sprint("s", id), Service: "s", Name: "op", Kind: "server",
		Start: int64(id) * 1e9, Duration: 1e8, Attributes: pairs(attrs),
	}
}

func pairs(attrs []string) map[string]string {
	out := map[string]string{}
	for _, a := range attrs {
		name, value, _ := strings.Cut(a, "=")
		out[name] = value
	}
	return out
}

func profile(t *testing.T, src *sensor.Memory) *sensor.Profile {
	t.Helper()
	w, err := sensor.Gather(t.Context(), src, sensor.Range{From: 0, To: 1e15}, sensor.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	p := sensor.NewProfile(w.Range)
	for _, s := range All() {
		s.Measure(w, p)
	}
	return p
}

func spans(t *testing.T, list ...sensor.Span) *sensor.Profile {
	t.Helper()
	return profile(t, &sensor.Memory{AllSpans: list})
}

func TestNumber(t *testing.T) {
	f := func(attr, kind, subject string, want float64) {
		t.Helper()
		for k, s := range spans(t, span(1, attr)).Values {
			if k.Kind == kind && k.Subject == subject && k.Entity == sensor.Service("s") {
				if len(s.Values) != 1 || s.Values[0] != want {
					t.Errorf("%s: %v, want %v", attr, s.Values, want)
				}
				return
			}
		}
		t.Errorf("%s: no %s of %s", attr, kind, subject)
	}
	f("gen_ai.usage.input_tokens=512", "input_tokens", "gen_ai.usage.input_tokens", 512)
	f("gen_ai.usage.output_tokens=7", "output_tokens", "gen_ai.usage.output_tokens", 7)
	f("http.request.body.size=900", "input_size", "http.request.body.size", 900)
	f("batch.size=8", "batch_size", "batch.size", 8)
	f("features.deviations.age=-1.5", "deviation", "features.deviations.age", -1.5)
	f("ai.features.deviations.age=2", "deviation", "features.deviations.age", 2)
	f("ai.computation.output_stats.max_val=3.5", "output_stats", "computation.output_stats.max_val", 3.5)
	f("llm.output.entropy=0.25", "entropy", "llm.output.entropy", 0.25)
	f("model.confidence=0.9", "confidence", "model.confidence", 0.9)
	f("moe.top_share=0.5", "expert_share", "moe.top_share", 0.5)
}

func TestWhatIsNoNumberIsLeftOut(t *testing.T) {
	p := spans(t, span(1, "gen_ai.usage.input_tokens=many"), span(2, "computation.input_stats.min_val=null"), span(3, "batch.size=NaN"))
	for k, s := range p.Values {
		if len(s.Values) != 0 {
			t.Errorf("%s: %v", k.Subject, s.Values)
		}
	}
}

func TestRatio(t *testing.T) {
	p := spans(t, span(1, "gen_ai.usage.cache_read.input_tokens=30", "gen_ai.usage.input_tokens=40"), span(2, "gen_ai.usage.cache_read.input_tokens=30"))
	for k, s := range p.Values {
		if k.Kind == "cached_tokens" && (len(s.Values) != 1 || s.Values[0] != 0.75) {
			t.Errorf("%v, want 0.75 alone", s.Values)
		}
	}
}

func TestValue(t *testing.T) {
	p := spans(t, span(1, `gen_ai.response.finish_reasons=["stop","length"]`), span(2, "gen_ai.response.finish_reasons=stop"))
	for k, m := range p.Mixes {
		if k.Kind == "finish_reason" && (m.N != 3 || m.Values["stop"].K != 2 || m.Values["length"].K != 1) {
			t.Errorf("%v choices: %+v", m.N, m.Values)
		}
	}
	if len(p.Mixes) != 1 {
		t.Errorf("%d mixes, want 1", len(p.Mixes))
	}
}

func TestFlagAndListCountRequestsOnce(t *testing.T) {
	f := func(attr, kind string, want float64) {
		t.Helper()
		a, b := span(1, attr), span(2, attr)
		b.TraceID, b.Parent = a.TraceID, a.SpanID // the same visit
		p := spans(t, a, b, span(3))
		for k, h := range p.Marks {
			if k.Kind == kind {
				if h.K != want {
					t.Errorf("%s: %v, want %v", attr, h.K, want)
				}
				if n := p.Units[sensor.Unit{Quadrant: record.QuadrantTraces, Entity: k.Entity}]; n != 2 {
					t.Errorf("%v visits, want 2", n)
				}
				return
			}
		}
		t.Errorf("%s: no %s", attr, kind)
	}
	f("tokenization.truncated=true", "truncated", 1)
	f("tokenization.truncated=false", "truncated", 0)
	f("computation.output_stats.has_nan=true", "nan", 1)
	f("guardrail.refused=1", "refused", 1)
	f(`features.unseen=["city"]`, "unseen", 1)
	f("features.unseen=[]", "unseen", 0)
	f("features.unseen=2", "unseen", 1)
	f("features.unseen=0", "unseen", 0)
	f(`ai.features.out_of_range=["age"]`, "out_of_range", 1)
}

func TestShares(t *testing.T) {
	f := func(kind string, k, n float64, list ...sensor.Span) {
		t.Helper()
		for key, h := range spans(t, list...).Shares {
			if key.Kind == kind {
				if h.K != k || h.N != n {
					t.Errorf("%s: %v of %v, want %v of %v", kind, h.K, h.N, k, n)
				}
				return
			}
		}
		t.Errorf("no %s", kind)
	}
	f("cache_miss", 1, 2, span(1, "cache.hit=true"), span(2, "cache.hit=false"), span(3))
	f("truncated", 1, 2, span(1, "tokenization.length=512", "tokenization.max_length=512"),
		span(2, "tokenization.length=100", "tokenization.max_length=512"), span(3, "tokenization.length=9"))
}

func TestVersionIsAChange(t *testing.T) {
	a := span(1)
	a.Version = "v1"
	for k, m := range spans(t, a).Mixes {
		if k.Kind != KindChange || k.Subject != "service.version" || m.Values["v1"].K != 1 {
			t.Errorf("%+v %+v", k, m)
		}
	}
}

// compare judges a slice of unusual spans against twenty of usual ones.
func compare(t *testing.T, usual, unusual func(i int) sensor.Span) map[string]sensor.Compared {
	t.Helper()
	var base []*sensor.Profile
	var inc *sensor.Profile
	for slice := range 21 {
		var list []sensor.Span
		for i := range 60 {
			s := usual(i)
			if slice == 20 {
				s = unusual(i)
			}
			list = append(list, s)
		}
		p := spans(t, list...)
		if slice < 20 {
			base = append(base, p)
		} else {
			inc = p
		}
	}
	out := map[string]sensor.Compared{}
	for _, c := range sensor.Compare(base, inc) {
		out[c.Kind+" "+c.Subject] = c
	}
	return out
}

func TestNewModelVersionIsStrong(t *testing.T) {
	got := compare(t, func(i int) sensor.Span { return span(i, "system.model_version=m1") },
		func(i int) sensor.Span { return span(i, fmt.Sprint("system.model_version=m", 1+i%4/3)) })
	c := got["model_version system.model_version=m2"]
	if c.Direction != record.DirectionAppeared || c.Strength > 1e-6 || c.Observed != 0.25 {
		t.Errorf("%+v", c.Finding)
	}
	if len(c.Evidence) != 1 || len(c.Evidence[0].Items) == 0 {
		t.Errorf("no evidence: %+v", c.Evidence)
	}
}

func TestMarkThatIsOnlyWrittenWhenSet(t *testing.T) {
	got := compare(t, func(i int) sensor.Span { return span(i) },
		func(i int) sensor.Span {
			if i%3 == 0 {
				return span(i, `features.unseen=["city"]`)
			}
			return span(i)
		})
	c := got["unseen features.unseen"]
	if c.Direction != record.DirectionAppeared || c.Strength > 1e-6 || c.Observed != 20.0/60 {
		t.Errorf("%+v", c.Finding)
	}
}

func TestLogs(t *testing.T) {
	log := func(trace string, attrs ...string) sensor.Log {
		return sensor.Log{Time: 1e9, Service: "s", TraceID: trace, SpanID: "s1", Body: "event", Attributes: pairs(attrs)}
	}
	p := profile(t, &sensor.Memory{AllSpans: []sensor.Span{span(1)}, AllLogs: []sensor.Log{
		log("t1", "ai.tokenization.truncated=true", "ai.system.device=cpu"), log("t1", "ai.tokenization.truncated=true"),
		log("", "ai.tokenization.truncated=false"),
	}})
	unit := sensor.Unit{Quadrant: record.QuadrantLogs, Entity: sensor.Service("s")}
	if p.Units[unit] != 2 { // one request, one record by itself
		t.Errorf("%v units, want 2", p.Units[unit])
	}
	for k, h := range p.Marks {
		if k.Quadrant != record.QuadrantLogs || k.Kind != "truncated" || h.K != 1 {
			t.Errorf("%+v %v", k, h.K)
		}
	}
	for k, m := range p.Mixes {
		if k.Quadrant != record.QuadrantLogs || k.Kind != "device" || m.Values["cpu"].K != 1 {
			t.Errorf("%+v %+v", k, m)
		}
	}
	if len(p.Marks) != 1 || len(p.Mixes) != 1 {
		t.Errorf("%d marks and %d mixes, want one each", len(p.Marks), len(p.Mixes))
	}
}

func TestParse(t *testing.T) {
	f := func(line, want string) {
		t.Helper()
		_, err := Parse([]byte("version: 1\nattributes:\n  - " + line))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
	f("{name: batch.size, kind: batch_size, read: number}", "")
	f("{name: batch.size, kind: batch_size, read: sum}", "read is")
	f("{name: batch.size, read: number}", "kind is missing")
	f("{name: acme.size, kind: x, read: number}", "not read from stores")
	f("{name: features.deviations.*, kind: x, read: value}", "as number only")
	f("{name: batch.size, kind: x, read: ratio, of: acme.size}", "which is not read")
	f("{name: batch.size, kind: x, read: number, of: batch.size}", "takes no of")
	f("{name: batch.size, kind: x, read: number, off: 1}", "off")
	if _, err := Parse([]byte("version: 2")); err == nil {
		t.Error("version 2 passes")
	}
}
