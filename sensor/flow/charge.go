package flow

import (
	"cmp"
	"slices"

	"inquest/record"
	"inquest/sensor"
)

// Kinds of findings of this package.
const (
	// KindBrokenLogs: requests stop reaching statements, or log errors they never
	// did, and nothing they called accounts for it.
	KindBrokenLogs = "broken_flow_logs"
	// KindBrokenSpans is the same by spans and calls.
	KindBrokenSpans = "broken_flow_spans"
	// KindCut: requests that broke here lack spans of the services that called.
	KindCut = "cut_short"
	// KindLost: calls to the entity do not reach it, or fail with an error that
	// names it.
	KindLost = "call_lost"
)

// Name of the flow sensor in findings.
const Name = "flow"

// Break is how visits of one operation broke.
type Break struct {
	Service   string
	Operation string
	// After and Before are the last event reached and the first missing; Before
	// has kind start when only errors are new.
	After, Before       sensor.Event
	HasAfter, HasBefore bool
	Novel               *sensor.Event
	Visits              int
	Goes                int // of these, how many went on behind the break
	Logs                int // how many show it in the log
	Thrown              int // how many logged an exception
	Missing             []string
	At                  []int64 // starts of the visits, ascending
	Items               []record.Item
	// Lost is set when the call to that service is what failed.
	Lost string
	Pods map[string]int
	// Strength is how often the baseline shows as many, Share the share of the
	// operation's visits.
	Strength, Share float64
}

// Aborts reports whether most visits ended where they broke.
func (b *Break) Aborts() bool {
	return 2*b.Goes < b.Visits || 2*b.Thrown >= b.Visits
}

// Charges is the account of one slice.
type Charges struct {
	Shares map[sensor.Key]*sensor.Hits
	Breaks []*Break // most visits first
	visits map[int32]float64
	breaks map[breakKey]*Break
}

type breakKey struct {
	context     int32
	last, first int32
	novel       int32
	lost        string
}

// Charge examines every request of p and charges each break to the deepest
// visit that shows one.
func (m *Model) Charge(p *sensor.Profile) *Charges {
	c := &Charges{
		Shares: map[sensor.Key]*sensor.Hits{}, visits: map[int32]float64{}, breaks: map[breakKey]*Break{},
	}
	for i := range p.Flows {
		m.chargeTrace(&p.Flows[i], c)
	}
	for k, b := range c.breaks {
		m.describe(k, b)
		c.Breaks = append(c.Breaks, b)
	}
	slices.SortFunc(c.Breaks, func(a, b *Break) int {
		return cmp.Or(cmp.Compare(b.Visits, a.Visits), cmp.Compare(a.Service, b.Service),
			cmp.Compare(a.Operation, b.Operation), a.Before.Compare(b.Before), a.After.Compare(b.After),
			cmp.Compare(a.Lost, b.Lost), compareNovel(a.Novel, b.Novel))
	})
	return c
}

func compareNovel(a, b *sensor.Event) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	default:
		return a.Compare(*b)
	}
}

func (m *Model) chargeTrace(f *sensor.FlowTrace, c *Charges) {
	states := make([]visitState, len(f.Visits))
	known := make([]bool, len(f.Visits))
	below := make([]bool, len(f.Visits))   // a callee, direct or not, is bad
	callers := make([]bool, len(f.Visits)) // a caller lacks spans or calls
	for i := range f.Visits {
		states[i], known[i] = m.examine(f.Visits[i])
	}
	for i := len(f.Visits) - 1; i >= 0; i-- { // callees come after callers
		if up := f.Visits[i].Caller; up >= 0 && (states[i].bad || below[i]) {
			below[up] = true
		}
	}
	for i := range f.Visits {
		if up := f.Visits[i].Caller; up >= 0 {
			callers[i] = callers[up] || states[up].spans
		}
	}
	for i, v := range f.Visits {
		if !known[i] {
			continue
		}
		st := &states[i]
		root := st.bad && !below[i]
		ctx := m.voc.Context(v.Context)
		own := root && st.lost == ""
		item := record.Item{Time: sensor.Time(v.At), TraceID: f.ID, SpanID: v.SpanID, Text: ctx.Service + " " + ctx.Operation}
		c.add(record.QuadrantLogs, KindBrokenLogs, ctx, own && st.logs, item)
		c.add(record.QuadrantTraces, KindBrokenSpans, ctx, own && st.spans, item)
		c.add(record.QuadrantTraces, KindCut, ctx, own && callers[i], item)
		m.addLost(c, ctx, v, st, root, item)
		c.visits[v.Context]++
		if root {
			note(m, c.breaks, v, st, item)
		}
	}
}

func (c *Charges) add(q record.Quadrant, kind string, ctx sensor.Context, hit bool, item record.Item) {
	k := sensor.Key{Quadrant: q, Sensor: Name, Kind: kind, Entity: sensor.Service(ctx.Service), Subject: ctx.Operation, Unit: "1"}
	c.addKey(k, hit, item)
}

func (c *Charges) addKey(k sensor.Key, hit bool, item record.Item) {
	h := c.Shares[k]
	if h == nil {
		h = &sensor.Hits{}
		c.Shares[k] = h
	}
	h.Add(hit, item)
}

// addLost counts calls from a context to each service it regularly calls.
func (m *Model) addLost(c *Charges, ctx sensor.Context, v sensor.FlowVisit, st *visitState, root bool, item record.Item) {
	peers := map[string]bool{}
	for _, e := range m.voc.Path(v.Path) {
		if ev := m.voc.Event(e); ev.Kind == sensor.EventCall {
			peers[ev.Name] = true
		}
	}
	if root && st.lost != "" {
		peers[st.lost] = true
	}
	for p := range peers {
		k := sensor.Key{
			Quadrant: record.QuadrantTraces, Sensor: Name, Kind: KindLost, Entity: sensor.Service(p),
			Peer: sensor.Service(ctx.Service), Unit: "1",
		}
		c.addKey(k, root && st.lost == p, item)
	}
}

func note(m *Model, breaks map[breakKey]*Break, v sensor.FlowVisit, st *visitState, item record.Item) {
	k := breakKey{v.Context, st.last, st.first, st.novel, st.lost}
	b := breaks[k]
	if b == nil {
		b = &Break{Pods: map[string]int{}}
		for _, e := range st.missing {
			b.Missing = append(b.Missing, m.voc.Event(e).Name)
		}
		breaks[k] = b
	}
	b.Visits++
	b.Pods[m.voc.Pod(v.Pod)]++
	if st.goes {
		b.Goes++
	}
	if st.logs {
		b.Logs++
	}
	for _, e := range m.voc.Path(v.Path) {
		if ev := m.voc.Event(e); ev.Thrown && ev.Severe {
			b.Thrown++
			break
		}
	}
	b.At = append(b.At, v.At)
	if len(b.Items) < 3 {
		b.Items = append(b.Items, item)
	}
}

func (m *Model) describe(k breakKey, b *Break) {
	ctx := m.voc.Context(k.context)
	b.Service, b.Operation, b.Lost = ctx.Service, ctx.Operation, k.lost
	if k.last >= 0 {
		b.After, b.HasAfter = m.voc.Event(k.last), true
	}
	if k.first >= 0 {
		b.Before, b.HasBefore = m.voc.Event(k.first), true
	}
	if k.novel >= 0 {
		e := m.voc.Event(k.novel)
		b.Novel = &e
	}
	slices.Sort(b.At)
}

// Region names the two ends of a break in words: the last statement reached, or
// the start of the span in which the missing one stands, and the missing one.
func (b *Break) Region() (after, before string) {
	switch {
	case b.HasAfter:
		after = b.After.Name
	case b.HasBefore && b.Before.Owner != "":
		after = b.Before.Owner + " start"
	default:
		after = b.Operation + " start"
	}
	switch {
	case b.HasBefore:
		before = b.Before.Name
	case b.Novel != nil:
		before = b.Novel.Name
	}
	return after, before
}
