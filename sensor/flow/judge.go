package flow

import (
	"cmp"
	"fmt"
	"slices"

	"inquest/record"
	"inquest/sensor"
	"inquest/stats"
)

// Kinds of findings about how the paths of a service broke. Each service whose
// paths could be examined has one of both, so that absence counts.
const (
	KindAborts = "flow_aborts"  // requests end at the break, or report an exception
	KindGoesOn = "flow_goes_on" // requests leave the usual path and go on
)

// Judgement is what the paths of an incident show.
type Judgement struct {
	Findings []sensor.Compared
	// Breaks are the breaks charged to services, the strongest first.
	Breaks []*Break
}

// Judge compares the paths of an incident with those of the baseline.
func Judge(voc *sensor.Vocabulary, base []*sensor.Profile, inc *sensor.Profile) Judgement {
	voc.MergeLogs()
	m := Learn(voc, base)
	charges := make([]*Charges, len(base))
	shares := make([]map[sensor.Key]*sensor.Hits, len(base))
	for i, p := range base {
		charges[i] = m.Charge(p)
		shares[i] = charges[i].Shares
	}
	now := m.Charge(inc)
	j := Judgement{Findings: sensor.CompareShares(shares, now.Shares, inc.Range)}
	m.rate(charges, now)
	j.Breaks = now.Breaks
	slices.SortStableFunc(j.Breaks, func(a, b *Break) int {
		return cmp.Or(cmp.Compare(a.Strength, b.Strength), cmp.Compare(b.Visits, a.Visits))
	})
	j.Findings = append(j.Findings, kinds(j.Findings, j.Breaks, inc.Range)...)
	for i := range j.Findings {
		j.Findings[i].Text = text(&j.Findings[i].Finding, j.Breaks)
	}
	return j
}

// rate gives each break of the incident its strength.
func (m *Model) rate(base []*Charges, now *Charges) {
	for k, b := range now.breaks {
		var past []stats.Share
		for _, c := range base {
			n := c.visits[k.context]
			if n == 0 {
				continue
			}
			s := stats.Share{N: n}
			if o := c.breaks[k]; o != nil {
				s.K = float64(o.Visits)
			}
			past = append(past, s)
		}
		n := now.visits[k.context]
		b.Share = float64(b.Visits) / n
		b.Strength = 1
		if len(past) > 0 {
			if p, up := stats.FitShares(past).Tail(float64(b.Visits), n); up {
				b.Strength = p
			}
		}
	}
}

// kinds says, for each service that was examined, whether its strongest break in
// the log ends requests or diverts them. The finding is as strong as the breaks
// of the service's worst operation together.
func kinds(findings []sensor.Compared, breaks []*Break, r sensor.Range) []sensor.Compared {
	worst := map[string]*sensor.Compared{}
	tried := map[string]int{}
	var services []string
	for i := range findings {
		f := &findings[i]
		if f.Kind != KindBrokenLogs {
			continue
		}
		name := f.Entity.Name
		if tried[name]++; tried[name] == 1 {
			services = append(services, name)
			worst[name] = f
		}
		if f.Strength < worst[name].Strength {
			worst[name] = f
		}
	}
	var out []sensor.Compared
	for _, name := range services {
		w := worst[name]
		b := strongest(breaks, name)
		for _, kind := range []string{KindAborts, KindGoesOn} {
			f := sensor.Compared{Distance: w.Distance, Past: w.Past}
			f.Finding = record.Finding{
				Quadrant: record.QuadrantLogs, Sensor: Name, Entity: w.Entity, Kind: kind,
				From: sensor.Time(r.From), To: sensor.Time(r.To), Direction: record.DirectionUp, Strength: 1, Unit: "1",
			}
			if b != nil && b.Aborts() == (kind == KindAborts) && w.Direction != record.DirectionDown {
				f.Subject, f.Direction = b.Operation, w.Direction
				f.Strength, f.Effect = stats.Any(w.Strength, tried[name]), w.Effect
				f.Observed, f.Expected, f.Requests = w.Observed, w.Expected, w.Requests
				key := sensor.Key{Quadrant: f.Quadrant, Sensor: Name, Kind: kind, Entity: f.Entity}
				f.Evidence = sensor.Evidence(key, r, b.Items)
			}
			out = append(out, f)
		}
	}
	return out
}

// strongest returns the strongest break of a service's own that logs show.
func strongest(breaks []*Break, service string) *Break {
	for _, b := range breaks {
		if b.Service == service && b.Lost == "" && b.inLogs() {
			return b
		}
	}
	return nil
}

// inLogs reports whether log statements show the break.
func (b *Break) inLogs() bool { return 2*b.Logs >= b.Visits }

func text(f *record.Finding, breaks []*Break) string {
	at := ""
	for _, b := range breaks {
		if b.Service == f.Entity.Name && b.Lost == "" && (f.Subject == "" || b.Operation == f.Subject) {
			after, before := b.Region()
			at = fmt.Sprintf(" between %q and %q", after, before)
			if !b.HasBefore {
				at = fmt.Sprintf(" with the new error %q", before)
			}
			break
		}
	}
	switch f.Kind {
	case KindBrokenLogs:
		return fmt.Sprintf("%s of requests to %s %s leave their usual statements%s (usual: %s)",
			percent(f.Observed), f.Entity.Name, f.Subject, at, percent(f.Expected))
	case KindBrokenSpans:
		return fmt.Sprintf("%s of requests to %s %s lack spans or calls that they always have, or end in error (usual: %s)",
			percent(f.Observed), f.Entity.Name, f.Subject, percent(f.Expected))
	case KindCut:
		return fmt.Sprintf("%s of requests break in %s %s and lack later spans of its callers (usual: %s)",
			percent(f.Observed), f.Entity.Name, f.Subject, percent(f.Expected))
	case KindLost:
		return fmt.Sprintf("%s of calls from %s to %s do not reach it (usual: %s)",
			percent(f.Observed), f.Peer.Name, f.Entity.Name, percent(f.Expected))
	case KindAborts:
		return fmt.Sprintf("requests to %s %s end%s", f.Entity.Name, f.Subject, at)
	case KindGoesOn:
		return fmt.Sprintf("requests to %s %s take another path%s", f.Entity.Name, f.Subject, at)
	}
	return ""
}

func percent(v float64) string { return fmt.Sprintf("%.3g %%", 100*v) }
