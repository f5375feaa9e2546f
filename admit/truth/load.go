package truth

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"inquest/record"
)

// load is when and what a service loaded, as far as anyone tells.
type load struct {
	at      time.Time // zero when nobody tells
	by      string
	precise bool   // of the load itself, not of the process's start
	sha256  string // as the service's own event tells it, or ""
}

// Names of who tells the time of a load.
const (
	loadedByHealthz = "healthz"
	loadedByEvent   = "model_load event"
	loadedByStart   = "process start"
)

const (
	// sameLoad is how far two tellings of one load may be apart: an uptime in
	// seconds wobbles.
	sameLoad = 5 * time.Second
	// loadSlack is the error of a load's time that is told in seconds.
	loadSlack = 2 * time.Second
)

func (l load) is(o load) bool {
	if l.at.IsZero() || o.at.IsZero() {
		return l.at.IsZero() == o.at.IsZero()
	}
	return l.at.Sub(o.at).Abs() <= sameLoad
}

// currentLoad returns the load that files are to be as old as. Of several
// replicas the one that loaded first counts, since its files are the oldest.
func currentLoad(answers []health, event load) load {
	var loaded, started time.Time
	earliest := func(t *time.Time, v time.Time) {
		if !v.IsZero() && (t.IsZero() || v.Before(*t)) {
			*t = v
		}
	}
	for i := range answers {
		earliest(&loaded, answers[i].loaded)
		earliest(&started, answers[i].started)
	}
	l := load{at: loaded, by: loadedByHealthz, precise: true}
	fits := !event.at.IsZero() && (started.IsZero() || event.at.After(started.Add(-sameLoad)))
	switch {
	case !loaded.IsZero() && fits && event.at.Sub(loaded).Abs() <= time.Minute:
		l.sha256 = event.sha256
	case !loaded.IsZero():
	case fits:
		l = event
	case !started.IsZero():
		l = load{at: started, by: loadedByStart}
	default:
		l = load{}
	}
	return l
}

// baseline is how the files were when the service loaded them.
type baseline struct {
	load load
	told string // all versions told, where no load is: another one is another load
	sums map[string]string
	at   time.Time // when sums was taken
	// settling is set while the service may still be fetching files.
	settling bool
}

// renew makes b the baseline of another load where there was one.
func (b *baseline) renew(answers []health, event load) {
	told := ""
	for i := range answers {
		if answers[i].err != nil && (b.sums != nil || !b.load.at.IsZero()) {
			return // who does not answer has not loaded anew
		}
		told += answers[i].version + "\n"
	}
	l := currentLoad(answers, event)
	if l.is(b.load) && (!l.at.IsZero() || told == b.told) {
		switch {
		case l.sha256 == "":
			l.sha256 = b.load.sha256
		case b.load.sha256 == "":
			b.sums = nil // what was taken for the files at load has to fit it
		}
		l.at = cmpZero(b.load.at, l.at) // the first telling, so that it does not wander
		b.load, b.told = l, told
		return
	}
	*b = baseline{load: l, told: told}
}

func cmpZero(a, b time.Time) time.Time {
	if a.IsZero() {
		return b
	}
	return a
}

// check compares the files with the baseline, and takes them for the baseline
// where they are as old as the load. sure is set where a manifest vouches for them.
func (b *baseline) check(t *tree, sums map[string]string, now time.Time, grace time.Duration, sure bool) *Problem {
	if b.sums != nil && !b.settling {
		return b.compare(t, sums)
	}
	if b.load.sha256 != "" {
		if claimed := b.load.sha256; t.digest(sums) != claimed && !slices.Contains(slices.Collect(maps.Values(sums)), claimed) {
			return b.changed(t, t.written(time.Time{}), "no file of it has the sha256 %s that the service told when it loaded it; now %s",
				short(claimed), short(t.digest(sums)))
		}
	} else if !b.load.at.IsZero() {
		limit := b.load.at.Add(loadSlack)
		if !b.load.precise {
			limit = b.load.at.Add(grace)
		}
		if late := t.written(limit); len(late) > 0 {
			return b.changed(t, late, "%s; the hash at load is not known", listTimes(late))
		}
		if touched := t.touchedAfter(limit); touched != "" && !sure {
			return pathProblem(ReasonFileTouched, t.real,
				"%s was renamed or its metadata changed after %s, and its hash at load is not known: set a manifest, or restart the service", touched, b.when())
		}
		b.settling = !b.load.precise && now.Before(limit)
	}
	b.sums, b.at = sums, now
	return nil
}

func (b *baseline) when() string {
	return fmt.Sprintf("the load at %s (%s)", stamp(b.load.at), b.load.by)
}

func (b *baseline) changed(t *tree, late []file, format string, args ...any) *Problem {
	p := &Problem{Reason: ReasonFileChanged, Quadrant: record.QuadrantResources, Subject: t.real}
	p.Detail = fmt.Sprintf("%s changed after %s: ", t.real, b.when()) + fmt.Sprintf(format, args...)
	for _, f := range late {
		if m := time.Unix(0, f.id.mtime); m.After(p.Since) {
			p.Since = m
		}
	}
	return p
}

func (b *baseline) compare(t *tree, sums map[string]string) *Problem {
	var wrong []string
	var since time.Time
	for _, f := range t.files {
		was, ok := b.sums[f.name]
		if ok && was == sums[f.name] {
			continue
		}
		at := time.Unix(0, f.id.mtime)
		if at.After(since) {
			since = at
		}
		if ok {
			wrong = append(wrong, fmt.Sprintf("%s had sha256 %s, now %s, written %s", f.name, short(was), short(sums[f.name]), stamp(at)))
		} else {
			wrong = append(wrong, fmt.Sprintf("%s is new, written %s", f.name, stamp(at)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.sums)) {
		if _, ok := sums[name]; !ok {
			wrong = append(wrong, name+" is gone")
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	when := "at " + b.when()
	if b.load.at.IsZero() {
		when = "when inquest first looked at it, at " + stamp(b.at)
	}
	if since.Before(b.at) {
		since = time.Time{} // an old file moved here
	}
	return &Problem{
		Reason: ReasonFileChanged, Quadrant: record.QuadrantResources, Subject: t.real, Since: since,
		Detail: fmt.Sprintf("%s is not as it was %s: %s", t.real, when, some(wrong)),
	}
}

// written returns the files that were written after a time.
func (t *tree) written(after time.Time) (out []file) {
	for _, f := range t.files {
		if time.Unix(0, f.id.mtime).After(after) {
			out = append(out, f)
		}
	}
	return out
}

func (t *tree) touchedAfter(after time.Time) string {
	for _, f := range t.files {
		if f.id.ctime != 0 && time.Unix(0, f.id.ctime).After(after) {
			return f.path
		}
	}
	return ""
}

func listTimes(files []file) string {
	var out []string
	for _, f := range files {
		out = append(out, fmt.Sprintf("%s was written at %s", f.name, stamp(time.Unix(0, f.id.mtime))))
	}
	return some(out)
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
