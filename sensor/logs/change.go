package logs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"inquest/record"
	"inquest/sensor"
	"inquest/stats"
)

// KindChange is that something was changed at an entity, in the incident or just
// before, as Kubernetes events and log records tell: a rollout, an image, a
// configuration, a flag, a model.
const KindChange = "change"

// changes compares how often each entity tells of changes. A cause may come before
// its effect, so slices that end within half an incident before it belong to it.
func changes(t *Table, base []*sensor.Profile, inc *sensor.Profile) []sensor.Compared {
	before, now := justBefore(base, inc)
	c := compare(t, t.topics, len(t.names), before, now)
	measured := c.measured()
	byEntity := map[record.Entity][]sensor.Compared{}
	for _, k := range c.pairs {
		if x, ok := c.finding(k, measured[k]); ok {
			x.Subject = strings.TrimPrefix(t.names[k.topic], changePrefix)
			byEntity[k.entity] = append(byEntity[k.entity], x)
		}
	}
	var out []sensor.Compared
	for _, e := range c.entities {
		all := byEntity[e]
		if len(all) == 0 {
			if c.examined(e) {
				out = append(out, c.quiet(e, KindChange))
			}
			continue
		}
		best := 0
		for i := range all {
			if all[i].Strength < all[best].Strength {
				best = i
			}
		}
		x := all[best]
		x.Strength = stats.Any(x.Strength, len(all))
		describeChange(&x.Finding, inc.Range)
		out = append(out, x)
	}
	return out
}

// justBefore takes the slices from the baseline that end within half an incident
// before it, as long as enough are left, and returns them with the incident.
func justBefore(base []*sensor.Profile, inc *sensor.Profile) (before, now []*sensor.Profile) {
	from := inc.Range.From - (inc.Range.To-inc.Range.From)/2
	for _, p := range base {
		if p.Range.To > from && p.Range.To <= inc.Range.From {
			now = append(now, p)
		} else {
			before = append(before, p)
		}
	}
	if len(before) < leastSlices {
		before, now = base, nil
	}
	slices.SortStableFunc(now, func(a, b *sensor.Profile) int { return cmp.Compare(a.Range.From, b.Range.From) })
	return before, append(now, inc)
}

func describeChange(f *record.Finding, inc sensor.Range) {
	up := f.Direction == record.DirectionAppeared || f.Direction == record.DirectionUp
	if !up || len(f.Evidence) == 0 || len(f.Evidence[0].Items) == 0 {
		f.Text = fmt.Sprintf("log of %s tells of changes (%s) %s, usually %s", f.Entity.Name, f.Subject, often(f.Observed, f.Unit), often(f.Expected, f.Unit))
		return
	}
	at := f.Evidence[0].Items[0].Time
	f.Onset = &at
	when := "in the incident"
	if at.UnixNano() < inc.From {
		when = "just before the incident"
	}
	f.Text = fmt.Sprintf("%s changed %s (%s, at %s)%s", f.Entity.Name, when, f.Subject, at.Format("15:04:05"), quoted(f))
}
