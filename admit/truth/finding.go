package truth

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"inquest/alert"
	"inquest/record"
)

// Sensor is the name of the truth check in findings.
const Sensor = "truth"

// factStrength is the strength of a finding that is no measurement but a
// contradiction of two facts, such as two hashes: chance brings none about, so it
// is as strong as a shift that a baseline of a thousand windows never showed.
const factStrength = 1e-3

// patience is how many looks in a row a service must be unreachable before that
// is told: one may fall into a restart.
const patience = 2

// change is what is told when a state changes.
type change struct {
	finding record.Finding
	alert   *alert.Event
}

// changes compares states with what was told.
type changes struct {
	told        map[Reason]Problem // what holds as far as was told
	unreachable int                // looks in a row
	looks, bad  int                // looks that ended, and those at which somebody did not answer
	last        time.Time          // the look before
}

// next returns what is to be told of a new state: problems that are new, other
// than before, or over. A state of a look that is not complete is passed over.
func (c *changes) next(s *Service, st *State, regular bool) (out []change) {
	before := c.last
	if before.IsZero() {
		before = st.Checked
	}
	c.last = st.Checked
	now := c.lasting(st, regular)
	if now == nil {
		return nil
	}
	if c.told == nil {
		c.told = map[Reason]Problem{}
	}
	for _, r := range slices.SortedFunc(maps.Keys(severityOf), func(a, b Reason) int { return severityOf[a] - severityOf[b] }) {
		p, is := now[r]
		was, had := c.told[r]
		switch {
		case is && (!had || p.Version != was.Version):
			c.told[r] = p
			ch := change{finding: c.finding(s, st, was, p, before)}
			ch.alert = alertOf(s, p, ch.finding.Text)
			out = append(out, ch)
		case had && !is && st.examined(r):
			delete(c.told, r)
			out = append(out, change{finding: c.finding(s, st, was, Problem{}, before)})
		}
	}
	return out
}

// lasting returns the first problem of each reason, nil where files are still
// being hashed. A look that is not regular, since it follows another at once, does
// not count for how long somebody is unreachable.
func (c *changes) lasting(st *State, regular bool) map[Reason]Problem {
	now := map[Reason]Problem{}
	passing := false
	for _, p := range st.Problems {
		if _, had := now[p.Reason]; !had {
			now[p.Reason] = p
		}
		passing = passing || p.Reason.passing()
	}
	_, unreachable := now[ReasonUnreachable]
	switch {
	case !unreachable:
		c.unreachable = 0
	case regular:
		c.bad++
		c.unreachable++
	}
	if regular {
		c.looks++
	}
	if c.unreachable < patience {
		delete(now, ReasonUnreachable)
	}
	if passing {
		return nil
	}
	return now
}

// examined tells whether the look could have found that problem.
func (st *State) examined(r Reason) bool {
	switch r {
	case ReasonFileChanged, ReasonFileMismatch, ReasonFileTouched:
		return st.Facts.hashes != nil
	case ReasonPathSymlink:
		return st.Facts.RealPath != ""
	case ReasonVersionMismatch, ReasonVersionLatest:
		return !slices.ContainsFunc(st.Facts.Told, func(t Told) bool { return t.Error != "" }) &&
			(st.Facts.Path == "" || st.Facts.RealPath != "")
	default:
		return true
	}
}

func (c *changes) finding(s *Service, st *State, was, now Problem, before time.Time) record.Finding {
	about, direction, observed := now, record.DirectionAppeared, 1.0
	if now.Reason == "" {
		about, direction, observed = was, record.DirectionVanished, 0
	}
	f := record.Finding{
		Quadrant: about.Quadrant, Sensor: Sensor, Entity: entity(s, st, about),
		Kind: about.Reason.FindingKind(), Subject: about.Subject,
		From: before, To: st.Checked, Direction: direction,
		Observed: observed, Expected: 1 - observed, Strength: factStrength,
		Text: c.text(s, st, was, now),
	}
	onset, errs := before.Add(st.Checked.Sub(before)/2), st.Checked.Sub(before).Seconds()/2
	if direction == record.DirectionAppeared && !about.Since.IsZero() && !about.Since.After(st.Checked) {
		onset, errs = about.Since, 0
		if onset.Before(f.From) {
			f.From = onset
		}
	}
	f.Onset, f.OnsetErrorSeconds = &onset, errs
	if about.Reason == ReasonUnreachable {
		// This is a measurement: how often somebody did not answer until now.
		f.Strength = min(1, float64(c.bad)/float64(c.looks))
	}
	return f
}

// text says the change in a sentence or two, with before and after.
func (c *changes) text(s *Service, st *State, was, now Problem) string {
	switch {
	case now.Reason == "" && len(st.Problems) == 0:
		return fmt.Sprintf("What is served as %s fits its configuration again. Before: %s.", s.Name, was.Detail)
	case now.Reason == "":
		return fmt.Sprintf("This is over: %s. Now: %s.", was.Detail, st.Detail)
	case was.Reason != "":
		return fmt.Sprintf("%s. Before: %s.", now.Detail, was.Detail)
	case c.looks <= patience:
		return now.Detail + ". It was so when inquest began to look."
	default:
		return now.Detail + ". Before, this check found nothing."
	}
}

// entity is the version that is really served, where the problem tells one, or
// the service.
func entity(s *Service, st *State, p Problem) record.Entity {
	version := p.Version
	if version == "" && (p.Reason == ReasonFileChanged || p.Reason == ReasonFileMismatch) {
		version = st.Facts.ConfiguredVersion
	}
	if version == "" {
		return record.Entity{Kind: record.EntityService, Name: s.Name}
	}
	return record.Entity{Kind: record.EntityModelVersion, Of: s.Model, Name: version}
}

func alertOf(s *Service, p Problem, text string) *alert.Event {
	severity := alert.SeverityWarning
	if p.Reason.contradicts() {
		severity = alert.SeverityError
	}
	e := &alert.Event{
		Reason: string(p.Reason), Service: s.Name, Severity: severity, Source: Sensor, Text: text, Hint: hints[p.Reason],
	}
	if p.Subject != "" {
		e.Labels = append(e.Labels, alert.Label{Name: "where", Value: p.Subject})
	}
	if p.Version != "" {
		e.Labels = append(e.Labels, alert.Label{Name: "version found", Value: p.Version})
	}
	return e
}

// hints say what to do next.
var hints = map[Reason]string{
	ReasonPathSymlink:        "Point the link at the configured version, or configure the version that is meant, and restart the service.",
	ReasonVersionMismatch:    "Restart the service with the configured version, or configure the one that is meant.",
	ReasonFileMismatch:       "Restore the file from where the manifest was made, and restart the service.",
	ReasonFileChanged:        "Restart the service if the new files are meant, else restore the old ones.",
	ReasonUnreachable:        "Look whether the service runs and whether its health address is the configured one.",
	ReasonVersionLatest:      "Let the service tell the version that it loaded.",
	ReasonPathMissing:        "Mount the model's folder where inquest runs, or correct path.",
	ReasonPathUnreadable:     "Let inquest read the model's files, or correct path.",
	ReasonManifestUnreadable: "Correct the manifest.",
	ReasonFileTouched:        "Set a manifest, or restart the service.",
}
