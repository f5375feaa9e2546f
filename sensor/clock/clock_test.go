package clock

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

const ms = int64(time.Millisecond)

// world is hosts with clocks of their own that call each other.
type world struct {
	rng   *rand.Rand
	skew  func(host int, at int64) int64
	calls []Call
}

// call adds a call at a true time; ways in ns.
func (w *world) call(from, to int, at, there, stay, back int64) {
	c1 := at + w.skew(from, at)
	s1 := at + there + w.skew(to, at+there)
	s4 := at + there + stay + w.skew(to, at+there+stay)
	c4 := at + there + stay + back + w.skew(from, at+there+stay+back)
	if c, ok := Bound(int32(from), int32(to), c1, c4, s1, s4); ok {
		w.calls = append(w.calls, c)
	}
}

// way is at least 0.2 ms, with a long tail of a mean in ms.
func (w *world) way(mean float64) int64 {
	return int64((0.2 + w.rng.ExpFloat64()*mean) * float64(ms))
}

func within(t *testing.T, hosts []Host, host int, at, want, tolerance int64) {
	t.Helper()
	o, ok := hosts[host].At(at)
	if !ok {
		t.Errorf("host %d has no offset", host)
		return
	}
	if d := o.Offset - want; max(d, -d) > tolerance {
		t.Errorf("host %d at %v: offset %v ± %v, want %v", host, time.Duration(at), time.Duration(o.Offset), time.Duration(o.Error), time.Duration(want))
	}
}

// Ten hosts, each up to 2 s off; requests wait long before they are taken, answers
// do not.
func TestTenHosts(t *testing.T) {
	worst := int64(0)
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 3))
		skews := make([]int64, 10)
		for i := range skews {
			skews[i] = int64((rng.Float64()*4 - 2) * float64(time.Second))
		}
		w := &world{rng: rng, skew: func(h int, _ int64) int64 { return skews[h] }}
		length := int64(5 * time.Minute)
		for at := int64(0); at < length; at += 1500 * ms {
			for h := 1; h < 10; h++ { // each host is called by an earlier one
				if from := (h * 7) % h; rng.IntN(3) > 0 {
					w.call(from, h, at+rng.Int64N(1000*ms), w.way(6), int64(rng.IntN(300))*ms, w.way(1))
				} else {
					w.call((h*3+1)%h, h, at+rng.Int64N(1000*ms), w.way(6), int64(rng.IntN(300))*ms, w.way(1))
				}
			}
		}
		hosts := Estimate(10, w.calls, 0, length)
		// The reference is one of the hosts; all are compared with it.
		ref := -1
		for h := range hosts {
			if o, _ := hosts[h].At(length / 2); o.Offset == 0 && o.Error == 0 {
				ref = h
			}
			if hosts[h].Group != 0 {
				t.Fatalf("host %d is in group %d", h, hosts[h].Group)
			}
		}
		if ref < 0 {
			t.Fatal("no host is the reference")
		}
		for h := range hosts {
			want := skews[h] - skews[ref]
			within(t, hosts, h, length/2, want, 10*ms)
			o, _ := hosts[h].At(length / 2)
			d := o.Offset - want
			worst = max(worst, d, -d)
			if max(d, -d) > o.Error {
				t.Errorf("host %d is off by %v, more than its error %v", h, time.Duration(d), time.Duration(o.Error))
			}
		}
	}
	t.Logf("largest error %v", time.Duration(worst))
}

func TestStepAndDrift(t *testing.T) {
	length := int64(10 * time.Minute)
	f := func(skew func(h int, at int64) int64, mover int, check ...int64) {
		t.Helper()
		w := &world{rng: rand.New(rand.NewPCG(1, 2)), skew: skew}
		for at := int64(0); at < length; at += 700 * ms {
			for h := 1; h < 4; h++ {
				w.call(0, h, at, w.way(1), 20*ms, w.way(1))
			}
		}
		hosts := Estimate(4, w.calls, 0, length)
		for _, at := range check {
			for h := range hosts {
				want := int64(0)
				if h == mover {
					want = skew(h, at) - skew((h+1)%4, at)
				}
				within(t, hosts, h, at, want, 10*ms)
			}
		}
	}
	jump := func(mover int) func(int, int64) int64 {
		return func(h int, at int64) int64 {
			if h == mover && at > int64(4*time.Minute) {
				return 1500 * ms
			}
			return 0
		}
	}
	early, late := int64(3*time.Minute+50*time.Second), int64(4*time.Minute+10*time.Second)
	for mover := range 4 { // 0 is in every call, and one of them is the reference
		f(jump(mover), mover, early, late, length-1)
	}
	// 300 ppm: three times what quartz does.
	f(func(h int, at int64) int64 {
		if h == 1 {
			return 400*ms + at*300/1_000_000
		}
		return 0
	}, 1, 0, int64(time.Minute), length/2, length-1)
}

func TestAgreeingClocksStayAsTheyAre(t *testing.T) {
	w := &world{rng: rand.New(rand.NewPCG(5, 6)), skew: func(int, int64) int64 { return 0 }}
	for at := int64(0); at < int64(time.Minute); at += 300 * ms {
		w.call(0, 1, at, w.way(20), 20*ms, w.way(0.1))
		w.call(1, 2, at, w.way(0.1), 20*ms, w.way(20))
	}
	for h, host := range Estimate(3, w.calls, 0, int64(time.Minute)) {
		for _, o := range host.Offsets {
			if o.Sure() {
				t.Errorf("host %d: %+v, though all clocks agree", h, o)
			}
		}
	}
}

func TestGroups(t *testing.T) {
	w := &world{rng: rand.New(rand.NewPCG(5, 6)), skew: func(h int, _ int64) int64 { return int64(h) * 100 * ms }}
	for at := int64(0); at < int64(time.Minute); at += 900 * ms {
		w.call(1, 2, at, ms, 20*ms, ms)
		w.call(2, 3, at, ms, 20*ms, ms)
		w.call(5, 6, at, ms, 20*ms, ms)
	}
	w.call(0, 1, 0, ms, ms, ms) // one call is not enough
	hosts := Estimate(7, w.calls, 0, int64(time.Minute))
	for h, want := range []int{-1, 0, 0, 0, -1, 1, 1} {
		if hosts[h].Group != want {
			t.Errorf("host %d is in group %d, want %d", h, hosts[h].Group, want)
		}
	}
	if _, ok := hosts[0].At(0); ok {
		t.Error("a host that nothing ties has an offset")
	}
	within(t, hosts, 2, 0, 0, ms) // the middle one
	within(t, hosts, 3, 0, 100*ms, ms)
	if Estimate(2, nil, 0, 1)[1].Group != -1 {
		t.Error("no calls, but a group")
	}
}

// Work that is not waited for, and one name for many clocks, bound nothing.
func TestContradictions(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	w := &world{rng: rng, skew: func(h int, _ int64) int64 {
		if h == 1 {
			return int64(rng.IntN(20000)-10000) * ms
		}
		return 0
	}}
	for at := int64(0); at < int64(time.Minute); at += 100 * ms {
		w.call(0, 1, at, ms, ms, ms)
	}
	if g := Estimate(2, w.calls, 0, int64(time.Minute))[1].Group; g != -1 {
		t.Errorf("a host without one clock is in group %d", g)
	}
	if _, ok := Bound(0, 1, 0, 10, 5, 20); ok {
		t.Error("a stay longer than the wait bounds the clocks")
	}
}

func TestOrderDoesNotMatter(t *testing.T) {
	w := &world{rng: rand.New(rand.NewPCG(5, 6)), skew: func(h int, _ int64) int64 { return int64(h) * 100 * ms }}
	for at := int64(0); at < int64(time.Minute); at += 900 * ms {
		w.call(0, 1, at, w.way(3), 20*ms, w.way(1))
		w.call(2, 1, at, w.way(3), 20*ms, w.way(1))
	}
	want := Estimate(3, w.calls, 0, int64(time.Minute))
	w.rng.Shuffle(len(w.calls), func(i, j int) { w.calls[i], w.calls[j] = w.calls[j], w.calls[i] })
	if got := Estimate(3, w.calls, 0, int64(time.Minute)); !reflect.DeepEqual(got, want) {
		t.Errorf("another order gives %v, want %v", got, want)
	}
}
