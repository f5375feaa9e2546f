package segments

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"inquest/record"
	"inquest/sensor"
)

// visit is one request to the service s.
type visit struct {
	region, version, model, pod string
	failed                      bool
	ms, chance                  float64
	quality                     string
	attrs                       map[string]string
}

// slice measures one slice of visits.
func slice(t *testing.T, at int64, visits []visit) *sensor.Profile {
	t.Helper()
	src := &sensor.Memory{}
	for i, v := range visits {
		s := sensor.Span{
			TraceID: fmt.Sprintf("t%d-%d", at, i), SpanID: "a", Service: "s", Name: "op", Kind: "server", Pod: v.pod,
			Version: v.version, Start: at + int64(i)*1e6, Duration: int64(v.ms * 1e6), Error: v.failed,
			Attributes: map[string]string{"cloud.region": v.region, "gen_ai.request.model": v.model, "model.confidence": v.quality},
		}
		for k, x := range v.attrs {
			s.Attributes[k] = x
		}
		src.AllSpans = append(src.AllSpans, s)
	}
	w, err := sensor.Gather(t.Context(), src, sensor.Range{From: at, To: at + 1e12}, sensor.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	p := sensor.NewProfile(w.Range)
	for _, s := range All() {
		s.Measure(w, p)
	}
	return p
}

// visits are requests from two regions to two versions and two models, one in ten
// of which fails; change alters one, by a chance between 0 and 1.
func visits(seed int64, change func(v *visit)) []visit {
	r := rand.New(rand.NewPCG(uint64(seed), 1))
	pick := func(rare float64, names ...string) string {
		if r.Float64() < rare {
			return names[0]
		}
		return names[1+r.IntN(len(names)-1)]
	}
	var out []visit
	for range 1000 {
		v := visit{
			region: pick(0.25, "eu", "us"), version: pick(0.25, "v2", "v1"), model: pick(0.4, "m1", "m2"), pod: pick(0.3, "s-0", "s-1", "s-2"),
			failed: r.Float64() < 0.1, ms: 100 + 40*r.Float64(), quality: fmt.Sprint(0.8 + 0.2*r.Float64()), chance: r.Float64(),
		}
		if change != nil {
			change(&v)
		}
		out = append(out, v)
	}
	return out
}

// judgement compares twenty usual slices with an altered one.
func judgement(t *testing.T, usual, change func(v *visit)) map[string]sensor.Compared {
	t.Helper()
	var base []*sensor.Profile
	for i := range int64(20) {
		base = append(base, slice(t, i*1e12, visits(i, usual)))
	}
	out := map[string]sensor.Compared{}
	for _, c := range Judge(base, slice(t, 20e12, visits(20, change))) {
		out[c.Kind] = c
	}
	return out
}

func TestNothingIsFoundWhereNothingChanged(t *testing.T) {
	got := judgement(t, nil, nil)
	for _, k := range kinds {
		if c, ok := got[k.kind]; !ok || c.Strength < 0.05 {
			t.Errorf("%s: %v %+v", k.kind, ok, c.Finding)
		}
	}
}

func TestNothingIsFoundWhereAllAreHit(t *testing.T) {
	got := judgement(t, nil, func(v *visit) { v.failed = v.failed || v.chance < 0.4; v.ms *= 4; v.quality = "0.1" })
	for _, k := range kinds {
		if c := got[k.kind]; c.Strength < 0.05 {
			t.Errorf("%s: %+v", k.kind, c.Finding)
		}
	}
}

func TestOneDimension(t *testing.T) {
	c := judgement(t, nil, func(v *visit) { v.failed = v.failed || v.model == "m2" && v.chance < 0.3 })[KindErrors]
	if c.Subject != "gen_ai.request.model=m2" || c.Strength > 1e-6 || c.Observed < 0.3 {
		t.Errorf("%+v", c.Finding)
	}
}

func TestTwoDimensionsThatAreFlatAlone(t *testing.T) {
	// Errors move to eu with v2: each region and each version has as many as before.
	c := judgement(t, nil, func(v *visit) {
		switch {
		case v.region == "eu" && v.version == "v2":
			v.failed = v.chance < 0.4
		case v.region == "eu" || v.version == "v2":
			v.failed = false
		default:
			v.failed = v.chance < 0.133
		}
	})[KindErrors]
	if c.Subject != "cloud.region=eu,service.version=v2" || c.Strength > 0.01 {
		t.Errorf("%+v", c.Finding)
	}
}

func TestRegionAndVersion(t *testing.T) {
	c := judgement(t, nil, func(v *visit) { v.failed = v.failed || v.region == "eu" && v.version == "v2" && v.chance < 0.5 })[KindErrors]
	if c.Subject != "cloud.region=eu,service.version=v2" || c.Strength > 1e-3 || c.Entity != sensor.Service("s") {
		t.Errorf("%+v", c.Finding)
	}
	if !strings.Contains(c.Text, "cloud.region=eu and service.version=v2 fail") {
		t.Errorf("text %q", c.Text)
	}
	e := c.Evidence[0]
	if want := `"cloud.region":="eu" "service.version":="v2"`; !strings.HasSuffix(e.Query, want) || len(e.Items) != 3 {
		t.Errorf("evidence %+v", e)
	}
}

func TestThreeDimensions(t *testing.T) {
	c := judgement(t, nil, func(v *visit) {
		if v.region == "eu" && v.version == "v2" && v.model == "m1" {
			v.ms *= 5
		}
	})[KindLatency]
	if c.Subject != "cloud.region=eu,gen_ai.request.model=m1,service.version=v2" || c.Strength > 1e-3 || c.Observed != 1 {
		t.Errorf("%+v", c.Finding)
	}
}

func TestQuality(t *testing.T) {
	c := judgement(t, nil, func(v *visit) {
		if v.region == "us" {
			v.quality = "0.3"
		}
	})[KindQuality]
	if c.Subject != "cloud.region=us" || c.Strength > 1e-6 || c.Direction != record.DirectionUp {
		t.Errorf("%+v", c.Finding)
	}
}

func TestNewVersion(t *testing.T) {
	one := func(v *visit) { v.version = "v1" }
	c := judgement(t, one, func(v *visit) { v.failed = v.failed || v.version == "v2" && v.chance < 0.3 })[KindErrors]
	if c.Subject != "service.version=v2" || c.Strength > 1e-4 {
		t.Errorf("%+v", c.Finding)
	}
}

func TestFailuresByPod(t *testing.T) {
	c := judgement(t, nil, func(v *visit) { v.failed = v.failed || v.pod == "s-1" })[KindErrors]
	if c.Subject != "pod=s-1" || c.Strength > 1e-6 {
		t.Errorf("%+v", c.Finding)
	}
}

func TestSegmentOfTheRequestCountsBelow(t *testing.T) {
	src := &sensor.Memory{AllSpans: []sensor.Span{
		{TraceID: "t", SpanID: "a", Service: "front", Name: "op", Kind: "server", Duration: 9e6, Attributes: map[string]string{"user.segment": "free", "cloud.region": "eu"}},
		{TraceID: "t", SpanID: "b", Parent: "a", Service: "back", Name: "op", Kind: "server", Start: 1e6, Duration: 4e6},
	}}
	w, err := sensor.Gather(t.Context(), src, sensor.Range{From: 0, To: 1e12}, sensor.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	p := sensor.NewProfile(w.Range)
	Sensor{}.Measure(w, p)
	for _, s := range p.Segments {
		region := map[string]string{"front": "eu", "back": ""}[s.Service]
		if value(&s, "user.segment") != "free" || value(&s, "cloud.region") != region {
			t.Errorf("%+v", s)
		}
		if want := map[string]float32{"front": 5, "back": 4}[s.Service]; s.Own[0] != want {
			t.Errorf("%s: own time %v ms, want %v", s.Service, s.Own[0], want)
		}
	}
}

func TestSegmentsAreBounded(t *testing.T) {
	var many []visit
	for i := range 2000 {
		many = append(many, visit{region: "eu", version: "v1", ms: float64(i), attrs: map[string]string{"user.segment": fmt.Sprint(i % 700)}})
	}
	p := slice(t, 0, many)
	n := 0
	for _, s := range p.Segments {
		n += s.Visits
	}
	if len(p.Segments) > segmentCap+700 || n != 2000 {
		t.Errorf("%d segments of %d visits", len(p.Segments), n)
	}
}

func TestBucket(t *testing.T) {
	f := func(tokens, want string) {
		t.Helper()
		if got := bucket(tokens); got != want {
			t.Errorf("%s: %s, want %s", tokens, got, want)
		}
	}
	f("0", "0")
	f("1", "1..3")
	f("3", "1..3")
	f("4", "4..15")
	f("1024", "1024..4095")
	f("4095", "1024..4095")
	f("", "")
	f("many", "")
}

func TestKeepIsEven(t *testing.T) {
	var values []float32
	step := 0
	for n := range 1000 {
		values, step = keep(values, step, n, float32(n))
	}
	for i, v := range values {
		if v != float32(i*step) {
			t.Fatalf("value %d is %v at a step of %d", i, v, step)
		}
	}
	if len(values) != 125 || step != 8 {
		t.Errorf("%d values at a step of %d", len(values), step)
	}
}
