package truth

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"inquest/record"
)

// look is what was seen of one service at one time.
type look struct {
	at      time.Time
	health  []health
	tree    *tree    // nil without a path, or with
	problem *Problem // why there is none
	cache   map[fileID]hashed
	event   load
	grace   time.Duration
}

// mostProblems bounds the problems of one state.
const mostProblems = 20

// evaluate makes a state of a look. It keeps in b how the files were at load.
func evaluate(s *Service, l *look, b *baseline) *State {
	st := &State{Service: s.Name, Checked: l.at}
	f := &st.Facts
	f.Path, f.ConfiguredVersion = s.Path, s.Version
	if f.ConfiguredVersion == "" && s.Path != "" {
		f.ConfiguredVersion = versionConfigured(filepath.Clean(s.Path))
	}
	b.renew(l.health, l.event)
	f.LoadedAt, f.LoadedBy = b.load.at, b.load.by
	var ps []Problem
	if l.problem != nil {
		ps = append(ps, *l.problem)
	}
	if l.tree != nil {
		ps = append(ps, pathVersion(s, l.tree, f)...)
		ps = append(ps, files(s, l, b, f)...)
	}
	ps = append(ps, toldVersions(s, l.health, f)...)
	slices.SortStableFunc(ps, func(a, b Problem) int { return cmp.Compare(severityOf[a.Reason], severityOf[b.Reason]) })
	st.Problems = ps[:min(len(ps), mostProblems)]
	switch {
	case len(ps) == 0:
		st.Validated = yes()
		return st
	case ps[0].Reason.contradicts():
		st.Validated = no()
	}
	st.Reason, st.Detail = ps[0].Reason, ps[0].Detail
	return st
}

// pathVersion compares the version that the real path tells with the configured one.
func pathVersion(s *Service, t *tree, f *Facts) []Problem {
	f.RealPath, f.Files, f.Bytes = t.real, len(t.files), t.bytes
	want, where := f.ConfiguredVersion, t.real
	got := versionInPath(t.real, want, t.folder)
	if got == "" {
		got, where = versionInPath(t.near, want, t.folder), t.near
	}
	f.PathVersion = got
	if want != "" && isRevision(got) && !isRevision(want) {
		if rev := hubRevision(where, want); rev == got {
			f.aliases = append(f.aliases, got)
			return nil
		}
	}
	if got == "" || want == "" || sameVersion(got, want) {
		return nil
	}
	p := Problem{Reason: ReasonVersionMismatch, Quadrant: record.QuadrantResources, Subject: s.Path, Version: got}
	p.Detail = fmt.Sprintf("%s holds version %s of %s, configured is version %s", s.Path, got, s.Model, want)
	if t.linked {
		p.Reason, p.Since = ReasonPathSymlink, t.since
		p.Detail = fmt.Sprintf("%s leads through a symbolic link to %s, which is version %s of %s; configured is version %s",
			s.Path, t.real, got, s.Model, want)
	}
	return []Problem{p}
}

// files compares the files with the manifest and with how they were at load.
func files(s *Service, l *look, b *baseline, f *Facts) (ps []Problem) {
	sums, missing, problem := l.tree.sums(l.cache)
	switch {
	case problem != nil:
		return append(ps, *problem)
	case missing > 0:
		return append(ps, *pathProblem(ReasonPending, l.tree.real, "%d of %d files of %s are not hashed yet", missing, len(l.tree.files), l.tree.real))
	}
	f.SHA256 = l.tree.digest(sums)
	f.hashes = make(map[string]bool, len(sums)+1)
	for v := range maps.Values(sums) {
		f.hashes[v] = true
	}
	f.hashes[f.SHA256] = true
	p := manifestProblem(s, l.tree, sums)
	if p != nil {
		ps = append(ps, *p)
	}
	sure := p == nil && (s.Manifest != "" || s.SHA256 != "")
	if p := b.check(l.tree, sums, l.at, l.grace, sure); p != nil {
		ps = append(ps, *p)
	}
	return ps
}

// toldVersions compares what the health addresses tell with what is configured,
// or with the real path, or with each other.
func toldVersions(s *Service, answers []health, f *Facts) (ps []Problem) {
	want, by := f.ConfiguredVersion, "configured is"
	if want == "" {
		want, by = f.PathVersion, "its real path tells"
	}
	for i := range answers {
		h := &answers[i]
		t := Told{URL: h.url, Version: h.version}
		p := Problem{Quadrant: record.QuadrantLogs, Subject: h.url}
		switch {
		case h.err != nil:
			t.Error = h.err.Error()
			p.Reason, p.Quadrant = ReasonUnreachable, record.QuadrantMetrics
			p.Detail = fmt.Sprintf("%s tells nothing at %s: %s", s.Name, h.url, t.Error)
		case h.version == "":
			p.Reason = ReasonVersionLatest
			p.Detail = fmt.Sprintf("%s tells no version at %s: name the member that holds it in version_paths", s.Name, h.url)
		case isLatest(h.version):
			p.Reason = ReasonVersionLatest
			p.Detail = fmt.Sprintf("%s tells version %q at %s, which is no fixed version: let it tell the one that it loaded", s.Name, h.version, h.url)
		case want == "":
			want, by = h.version, "another replica tells"
		case !sameVersion(h.version, want) && !slices.ContainsFunc(f.aliases, func(a string) bool { return sameVersion(h.version, a) }):
			p.Reason, p.Version = ReasonVersionMismatch, h.version
			p.Detail = fmt.Sprintf("%s tells version %s at %s, %s version %s", s.Name, h.version, h.url, by, want)
		}
		f.Told = append(f.Told, t)
		if p.Reason != "" {
			ps = append(ps, p)
		}
	}
	return ps
}
