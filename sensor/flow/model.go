// Package flow compares the paths of requests through services with those of
// the baseline: statements, spans and calls that requests of this kind always
// reach and now do not, and errors that they never showed. What is missing is
// charged, within each request, to the deepest service that can account for it.
package flow

import (
	"cmp"
	"slices"

	"inquest/sensor"
	"inquest/stats"
)

// always is the share of visits from which an event counts as regular: with it,
// at most one visit in twenty lacks the event by itself, the usual level at
// which an exception is not yet taken for a sign. Its exact value matters little,
// since the rate of breaks is compared with the baseline's own rate.
const always = 0.95

// leastVisits is the number of visits from which an event that was there every
// time may count as regular: with n of n, the rate is above `always`/2 with 95 %
// confidence from n = 5 on.
const leastVisits = 5

// maxRuleEvents bounds the events of one context among which rules are learnt;
// the most frequent are taken.
const maxRuleEvents = 96

// Model is the regular paths of each context.
type Model struct {
	voc      *sensor.Vocabulary
	contexts map[int32]*contextModel
	// examined keeps the results of examine: the same path is always judged the
	// same, and few paths make up most visits.
	examined map[[2]int32]visitState
}

type contextModel struct {
	events []int32           // by position
	index  map[int32]int     // of events
	order  []float64         // mean position in the path
	after  [][]bool          // after[i][j]: a visit that has i always has j
	before [][]float64       // before[i][j]: visits with i ahead of j
	known  map[int32]bool    // every event ever seen
	rate   map[int32]float64 // robust share of visits with the event
}

// Learn builds the model from baseline profiles.
func Learn(voc *sensor.Vocabulary, base []*sensor.Profile) *Model {
	m := &Model{voc: voc, contexts: map[int32]*contextModel{}, examined: map[[2]int32]visitState{}}
	// counts[context][slice][path] = visits
	counts := map[int32][]map[int32]float64{}
	for s, p := range base {
		for i := range p.Flows {
			for _, v := range p.Flows[i].Visits {
				c := counts[v.Context]
				if c == nil {
					c = make([]map[int32]float64, len(base))
					counts[v.Context] = c
				}
				if c[s] == nil {
					c[s] = map[int32]float64{}
				}
				c[s][v.Path]++
			}
		}
	}
	for ctx, c := range counts {
		m.contexts[ctx] = m.learn(c)
	}
	return m
}

func (m *Model) learn(perSlice []map[int32]float64) *contextModel {
	c := &contextModel{index: map[int32]int{}, known: map[int32]bool{}, rate: map[int32]float64{}}
	total := map[int32]float64{}
	position := map[int32]float64{}
	for _, paths := range perSlice {
		for path, n := range paths {
			for pos, e := range m.voc.Path(path) {
				total[e] += n
				position[e] += n * float64(pos)
			}
		}
	}
	for e := range total {
		c.events = append(c.events, e)
		c.known[e] = true
	}
	byFrequency := func(a, b int32) int {
		return cmp.Or(cmp.Compare(total[b], total[a]), m.voc.Event(a).Compare(m.voc.Event(b)))
	}
	slices.SortFunc(c.events, byFrequency)
	if len(c.events) > maxRuleEvents {
		c.events = c.events[:maxRuleEvents]
	}
	slices.SortFunc(c.events, func(a, b int32) int {
		return cmp.Or(cmp.Compare(position[a]/total[a], position[b]/total[b]), byFrequency(a, b))
	})
	for i, e := range c.events {
		c.index[e] = i
		c.order = append(c.order, position[e]/total[e])
	}
	c.rules(m.voc, perSlice, total)
	return c
}

// rules counts, for each pair of events, in which share of the visits with the
// one the other is there too, slice by slice, and takes the median over slices:
// slices with a fault of their own do not count against a rule.
func (c *contextModel) rules(voc *sensor.Vocabulary, perSlice []map[int32]float64, total map[int32]float64) {
	n := len(c.events)
	shares := make([][]stats.Share, n*n)
	c.before = make([][]float64, n)
	for i := range c.before {
		c.before[i] = make([]float64, n)
	}
	var present []int
	for _, paths := range perSlice {
		if len(paths) == 0 {
			continue
		}
		both := make([]float64, n*n)
		for path, k := range paths {
			present = present[:0]
			for _, e := range voc.Path(path) {
				if i, ok := c.index[e]; ok {
					present = append(present, i)
				}
			}
			for x, i := range present {
				for y, j := range present {
					both[i*n+j] += k
					if x < y {
						c.before[i][j] += k
					}
				}
			}
		}
		for i := range n {
			if both[i*n+i] == 0 {
				continue
			}
			for j := range n {
				shares[i*n+j] = append(shares[i*n+j], stats.Share{K: both[i*n+j], N: both[i*n+i]})
			}
		}
	}
	c.after = make([][]bool, n)
	for i := range n {
		c.after[i] = make([]bool, n)
		for j := range n {
			r := stats.MedianRate(shares[i*n+j])
			if voc.Event(c.events[i]).Kind == sensor.EventStart {
				c.rate[c.events[j]] = r
			}
			c.after[i][j] = i != j && r >= always && total[c.events[i]] >= leastVisits && !voc.Event(c.events[j]).Severe
		}
	}
}

// Verdict on one visit.
type visitState struct {
	bad     bool
	logs    bool    // statements are missing or errors are new in the log
	spans   bool    // spans or calls are missing, or errors new in spans
	first   int32   // first missing event, −1 for none
	last    int32   // the event after which it is missing, −1 for none
	novel   int32   // first new severe event, −1 for none
	missing []int32 // statements that are missing, in order
	lost    string  // the service that was not reached or is named by the error
	goes    bool    // the visit takes another branch at the break
}

// examine compares one visit with the model. known is false when the baseline
// has no such visits.
func (m *Model) examine(v sensor.FlowVisit) (st visitState, known bool) {
	c := m.contexts[v.Context]
	if c == nil {
		return visitState{first: -1, last: -1, novel: -1}, false
	}
	key := [2]int32{v.Context, v.Path}
	st, ok := m.examined[key]
	if !ok {
		st = m.judge(c, v)
		m.examined[key] = st
	}
	return st, true
}

func (m *Model) judge(c *contextModel, v sensor.FlowVisit) visitState {
	st := visitState{first: -1, last: -1, novel: -1}
	path := m.voc.Path(v.Path)
	have := make([]bool, len(c.events))
	for _, e := range path {
		if i, ok := c.index[e]; ok {
			have[i] = true
		}
	}
	firstAt, firstLog := -1, -1 // events are by position
	for j := range c.events {
		if have[j] {
			continue
		}
		for i := range c.events {
			if have[i] && c.after[i][j] {
				if m.voc.Event(c.events[j]).Kind == sensor.EventLog {
					st.logs = true
					st.missing = append(st.missing, c.events[j])
					if firstLog < 0 {
						firstLog = j
					}
				} else {
					st.spans = true
				}
				if firstAt < 0 {
					firstAt = j
				}
				break
			}
		}
	}
	for _, e := range path {
		ev := m.voc.Event(e)
		if !ev.Severe || c.rate[e] > 1-always {
			continue
		}
		if ev.Kind == sensor.EventLog {
			st.logs = true
		} else {
			st.spans = true
		}
		if st.novel < 0 || ev.Kind == sensor.EventLog && m.voc.Event(st.novel).Kind != sensor.EventLog {
			st.novel = e
		}
		if ev.Peer != "" {
			st.lost = ev.Peer
		}
	}
	st.bad = st.logs || st.spans
	if firstAt >= 0 {
		// Statements tell the place in the code better than spans do.
		at := firstAt
		if firstLog >= 0 {
			at = firstLog
		}
		m.locate(c, &st, path, have, at)
		// A call that would have come next and nothing regular after it: the call
		// itself failed.
		if ev := m.voc.Event(c.events[firstAt]); ev.Kind == sensor.EventCall && st.lost == "" && m.ends(c, have, firstAt) {
			st.lost = ev.Name
		}
	} else if st.novel >= 0 {
		m.surround(c, &st, path)
	}
	return st
}

// locate finds where the path broke, and whether it went on behind.
func (m *Model) locate(c *contextModel, st *visitState, path []int32, have []bool, firstAt int) {
	st.first = c.events[firstAt]
	ev := m.voc.Event(st.first)
	lastAt := -1
	for i := range c.events {
		if !have[i] || c.before[i][firstAt] <= c.before[firstAt][i] {
			continue
		}
		e := m.voc.Event(c.events[i])
		if e.Kind == sensor.EventLog && e.Owner == ev.Owner && (lastAt < 0 || c.order[i] >= c.order[lastAt]) {
			lastAt = i
		}
	}
	if lastAt >= 0 {
		st.last = c.events[lastAt]
	}
	// A new statement in the same span shows that the code took another branch,
	// unless it reports an exception. When nothing stands where the missing ones
	// stood, the code did not get there: it was thrown out.
	for _, e := range path {
		x := m.voc.Event(e)
		if x.Kind == sensor.EventLog && x.Owner == ev.Owner && c.rate[e] <= 1-always && !x.Thrown {
			st.goes = true
		}
	}
}

// ends reports whether no regular event that follows the given one is there.
func (m *Model) ends(c *contextModel, have []bool, at int) bool {
	for i := range c.events {
		e := m.voc.Event(c.events[i])
		if have[i] && c.before[at][i] > c.before[i][at] && !e.Severe && e.Kind != sensor.EventError {
			return false
		}
	}
	return true
}

// surround finds the regular statements on both sides of a new error in a visit
// that lacks nothing.
func (m *Model) surround(c *contextModel, st *visitState, path []int32) {
	novel := m.voc.Event(st.novel)
	behind := false
	for _, e := range path {
		x := m.voc.Event(e)
		if e == st.novel {
			behind = true
			continue
		}
		if x.Kind != sensor.EventLog || x.Owner != novel.Owner || c.rate[e] <= 1-always {
			continue
		}
		if !behind {
			st.last = e
		} else {
			st.first = e
			break
		}
	}
	st.goes = !novel.Thrown
}
