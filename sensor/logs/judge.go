package logs

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"inquest/record"
	"inquest/sensor"
	"inquest/stats"
)

// leastSlices is the number of slices of a baseline from which a comparison means
// anything.
const leastSlices = 3

// Judge compares the logs of an incident with the baseline, by what the sensors
// [Streams] and [Templates] and the vocabulary's requests hold of them: topics,
// changes, new and vanished templates, silence. Each entity that was examined has a
// finding of each kind, so that absence counts. The slices of the baseline are in
// the order of time.
func Judge(voc *sensor.Vocabulary, base []*sensor.Profile, inc *sensor.Profile) []sensor.Compared {
	t := Default()
	return slices.Concat(messages(t, base, inc), changes(t, base, inc), seen(voc, base, inc), silences(base, inc))
}

// pair is a topic of an entity.
type pair struct {
	entity record.Entity
	topic  int
}

// comparison is what some topics show in baseline and incident.
type comparison struct {
	table     *Table
	from, to  int // numbers of the topics
	base      []*sensor.Profile
	inc       []*sensor.Profile // one, or with those just before
	r         sensor.Range      // of inc
	pairs     []pair            // that were told of at all
	entities  []record.Entity   // whose logs were read
	newcomers newcomers
	shares    map[pair]bool // told of in requests
	inBase    map[pair]bool
	requests  map[record.Entity]int // slices of the baseline with a request of it
}

func compare(t *Table, from, to int, base, inc []*sensor.Profile) *comparison {
	c := &comparison{
		table: t, from: from, to: to, base: base, inc: inc,
		r:      sensor.Range{From: inc[0].Range.From, To: inc[len(inc)-1].Range.To},
		shares: map[pair]bool{}, inBase: map[pair]bool{}, requests: map[record.Entity]int{},
	}
	number := map[string]int{}
	for i := from; i < to; i++ {
		number[t.names[i]] = i
	}
	entities := map[record.Entity]bool{}
	told := map[pair]bool{}
	first, last, amount := map[pair]int{}, map[pair]int{}, map[pair]float64{}
	for slice, p := range append(slices.Clone(base), inc...) {
		for e, s := range p.Streams {
			entities[e] = true
			if slice < len(base) && s.Requests > 0 {
				c.requests[e]++
			}
			for name, topic := range s.Topics {
				n, ok := number[name]
				if !ok {
					continue
				}
				k := pair{e, n}
				told[k] = true
				c.shares[k] = c.shares[k] || topic.Requests > 0
				if slice >= len(base) {
					continue
				}
				if !c.inBase[k] {
					first[k] = slice
				}
				c.inBase[k], last[k] = true, slice
				amount[k] += topic.Requests + topic.Bursts
			}
		}
	}
	for k := range told {
		c.pairs = append(c.pairs, k)
	}
	slices.SortFunc(c.pairs, func(a, b pair) int { return cmp.Or(a.entity.Compare(b.entity), cmp.Compare(a.topic, b.topic)) })
	for e := range entities {
		c.entities = append(c.entities, e)
	}
	slices.SortFunc(c.entities, record.Entity.Compare)
	c.newcomers = newNewcomers(base, c.seconds())
	for k := range c.inBase {
		c.newcomers.see(last[k]-first[k], amount[k])
	}
	c.newcomers.among(float64(len(entities)*(to-from) - len(c.inBase)))
	return c
}

func (c *comparison) seconds() float64 {
	s := 0.0
	for _, p := range c.inc {
		s += p.Seconds
	}
	return s
}

// The two measures of a topic.
const (
	inRequests = "requests" // share of the entity's requests
	besides    = "besides"  // bursts of records that belong to none
)

func (c *comparison) key(k pair, measure string) sensor.Key {
	return sensor.Key{
		Quadrant: record.QuadrantLogs, Sensor: Streams{}.Name(), Kind: kindOf(c.table.names[k.topic]),
		Entity: k.entity, Subject: c.table.names[k.topic] + "/" + measure, // one word: templates of several are merged
	}
}

// usual reports whether the entity usually writes records in its requests. Where it
// does not, there is no share of them to compare with, and what it tells in requests
// is counted like what it tells besides.
func (c *comparison) usual(e record.Entity) bool { return c.requests[e] >= leastSlices }

// measured returns the comparison of each pair that was told of, by pair.
func (c *comparison) measured() map[pair][]sensor.Compared {
	mini := func(parts []*sensor.Profile, r sensor.Range) *sensor.Profile {
		out := sensor.NewProfile(r)
		out.Seconds = 0
		for _, p := range parts {
			out.Seconds += p.Seconds
			out.Logs += p.Logs
			for _, k := range c.pairs {
				s := p.Streams[k.entity]
				if s == nil {
					continue
				}
				topic := s.Topics[c.table.names[k.topic]]
				if topic == nil {
					topic = &sensor.Topic{}
				}
				if c.shares[k] && s.Requests > 0 {
					h := out.Trials(c.key(k, inRequests))
					h.K, h.N = h.K+math.Min(topic.Requests, s.Requests), h.N+s.Requests
				}
				events := topic.Bursts
				if !c.usual(k.entity) {
					events += topic.Requests
				}
				for range int(events) {
					out.Count(c.key(k, besides), record.Item{})
				}
			}
		}
		return out
	}
	var base []*sensor.Profile
	for _, p := range c.base {
		base = append(base, mini([]*sensor.Profile{p}, p.Range))
	}
	byKey := map[sensor.Key]pair{}
	for _, k := range c.pairs {
		byKey[c.key(k, inRequests)], byKey[c.key(k, besides)] = k, k
	}
	out := map[pair][]sensor.Compared{}
	for _, x := range sensor.Compare(base, mini(c.inc, c.r)) {
		f := &x.Finding
		k := byKey[sensor.Key{Quadrant: f.Quadrant, Sensor: f.Sensor, Kind: f.Kind, Entity: f.Entity, Subject: f.Subject}]
		out[k] = append(out[k], x)
	}
	return out
}

// finding returns what one pair shows: the stronger of its measures, and where the
// baseline never told of it, how rarely an entity begins to tell of something.
func (c *comparison) finding(k pair, measured []sensor.Compared) (sensor.Compared, bool) {
	now := sensor.Topic{}
	for _, p := range c.inc {
		if s := p.Streams[k.entity]; s != nil && s.Topics[c.table.names[k.topic]] != nil {
			t := s.Topics[c.table.names[k.topic]]
			now.Requests, now.Bursts = now.Requests+t.Requests, now.Bursts+t.Bursts
			for _, item := range t.Items {
				now.Note(item)
			}
		}
	}
	best, tries := -1, len(measured)
	for i := range measured {
		if best < 0 || measured[i].Strength < measured[best].Strength {
			best = i
		}
	}
	if best < 0 {
		return sensor.Compared{}, false
	}
	x := measured[best]
	f := &x.Finding
	p := f.Strength
	if !c.inBase[k] {
		tries++
		p = math.Min(p, c.newcomers.p(now.Requests+now.Bursts))
		f.Direction = record.DirectionAppeared
	}
	f.Strength = stats.Any(p, tries)
	f.Unit = "{record}/s"
	if strings.HasSuffix(f.Subject, inRequests) {
		f.Unit = "1"
	}
	f.Subject = ""
	items := now.Items
	if len(items) == 0 {
		items = c.before(k)
	}
	f.Evidence = evidence(c.table, k, c.r, items)
	return x, true
}

// before returns examples from the baseline.
func (c *comparison) before(k pair) []record.Item {
	for i := len(c.base) - 1; i >= 0; i-- {
		if s := c.base[i].Streams[k.entity]; s != nil && s.Topics[c.table.names[k.topic]] != nil {
			return s.Topics[c.table.names[k.topic]].Items
		}
	}
	return nil
}

// quiet returns the finding of an entity that was examined and shows nothing.
func (c *comparison) quiet(e record.Entity, kind string) sensor.Compared {
	return sensor.Compared{Finding: record.Finding{
		Quadrant: record.QuadrantLogs, Sensor: Streams{}.Name(), Entity: e, Kind: kind,
		From: sensor.Time(c.r.From), To: sensor.Time(c.r.To), Direction: record.DirectionUp, Strength: 1, Unit: "1",
	}}
}

// examined reports whether an entity wrote in the incident and before, so that it
// would have told.
func (c *comparison) examined(e record.Entity) bool {
	now := false
	for _, p := range c.inc {
		if s := p.Streams[e]; s != nil && s.Records > 0 {
			now = now || s.Service == "" // what a pod tells is its service's
		}
	}
	if !now {
		return false
	}
	n := 0
	for _, p := range c.base {
		if s := p.Streams[e]; s != nil && s.Records > 0 {
			n++
		}
	}
	return n >= leastSlices
}

// evidence leads to the records of a topic.
func evidence(t *Table, k pair, r sensor.Range, items []record.Item) []record.Reference {
	out := sensor.Evidence(sensor.Key{Quadrant: record.QuadrantLogs, Entity: k.entity}, r, items)
	name := strconv.Quote(k.entity.Name)
	switch k.entity.Kind {
	case record.EntityPod:
		out[0].Query += ` ("k8s.pod.name":=` + name + ` or "` + attributeObjectName + `":=` + name + `)`
	case record.EntityNode:
		out[0].Query += ` ("k8s.node.name":=` + name + ` or "host.name":=` + name + ` or "` + attributeObjectName + `":=` + name + `)`
	}
	out[0].Query += " " + t.query(k.topic)
	return out
}

// often says how often something comes.
func often(v float64, unit string) string {
	if unit == "1" {
		return fmt.Sprintf("%.3g %% of requests", 100*v)
	}
	return fmt.Sprintf("%.3g times a minute", 60*v)
}

// quoted is the text of the first example, short.
func quoted(f *record.Finding) string {
	if len(f.Evidence) == 0 || len(f.Evidence[0].Items) == 0 {
		return ""
	}
	text, _, _ := strings.Cut(f.Evidence[0].Items[0].Text, "\n")
	const most = 160
	if r := []rune(text); len(r) > most {
		text = string(r[:most]) + "…"
	}
	return ": " + strconv.Quote(text)
}
