package catalog

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// TestParse changes one part of a sound fault and looks for the message, with its line.
func TestParse(t *testing.T) {
	f := func(old, with, want string) {
		t.Helper()
		if !strings.Contains(good, old) {
			t.Fatalf("%q is not in the fault", old)
		}
		_, err := Parse([]byte(strings.Replace(good, old, with, 1)))
		if want == "" && err != nil {
			t.Errorf("%q: %v", with, err)
		}
		if want != "" && (err == nil || !slices.Contains(strings.Split(err.Error(), "\n"), want)) {
			t.Errorf("%q: error\n%v\nwant\n%s", with, err, want)
		}
	}
	f("", "", "")
	f("id: x", "id: X Y", `line 2: id "X Y": use small letters, digits and hyphens`)
	f("title: X", "title: ''", "line 3: title is empty")
	f("mechanism: m", "mechanism: ' '", "line 4: mechanism is empty")
	f("remedy: r", "", "line 2: remedy is empty")
	f("check: c", "", "line 2: check is empty")
	f("[service]", "[]", "line 5: at is empty: name the kinds of entities that can have the fault (service, pod, node, gpu, model, model_version, adapter, dependency)")
	f("[service]", "[sevrice]", `line 5: at: nothing of kind "sevrice" can be at fault: it is one of service, pod, node, gpu, model, model_version, adapter, dependency`)
	f("[service]", "[service, pod, service]", "line 5: at: service is named twice")
	f("at:", "refines: [x]\nat:", "line 5: refines: a fault cannot refine itself")
	f("at:", "refines: [y, y]\nat:", "line 5: refines: y is named twice")
	f("quadrant: logs", "quadrant: smell", `line 6: expect 1: unknown quadrant "smell": it is one of logs, metrics, traces, resources`)
	f("kinds: [error_logs]", "kinds: []", "line 6: expect 1: kinds is empty: name the findings, any of which will do")
	f("[error_logs]", "[error_logs, error_logs]", "line 6: expect 1: kind error_logs is named twice")
	f("[error_logs]", "[\n error_log]", `line 7: expect 1: no sensor makes findings of kind "error_log": did you mean error_logs?`)
	f("[error_logs]", "[self_time]", `line 6: expect 1: no sensor makes findings of kind "self_time" in logs, only in traces`)
	f("[error_logs]", "[zzzzzz]", `line 6: expect 1: no sensor makes findings of kind "zzzzzz": see inquest catalog kinds`)
	f("where: self", "where: there", `line 6: expect 1: unknown where "there": it is one of self, in, out, callers, hosted, host, each_hosted`)
	f("where: self", "where: in", `line 6: expect 1: findings of kind "error_logs" are not about the way between two entities: where cannot be in`)
	f("direction: up", "direction: sideways", `line 6: expect 1: direction "sideways" is not up, down or empty`)
	f("seen: 0.5", "seen: 1", "line 6: expect 1: seen 1 is not between 0 and 1: it is the probability that the finding shows")
	f("seen: 0.5", "seen: .nan", "line 6: expect 1: seen NaN is not between 0 and 1: it is the probability that the finding shows")
	f("seen: 0.5", "seen: often", `line 6: not a fault in YAML: "often" is not a number`)
	f("seen: 0.5", "seen: 0.5, at_least: 2", "line 6: expect 1: at_least 2 is not between 0 and 1: it is a share of requests")
	f("text: t", "text: ''", "line 6: expect 1: text is empty: say what the evidence shows")
	f("seen: 0.5", "seen: 0.5, absent: true, essential: true", "line 6: expect 1: what must be absent is neither essential nor a symptom")
	f("seen: 0.5", "seen: 0.5, symptom: true", "line 6: all evidence is symptoms or must be absent: nothing would point to the cause")
	f("remedy: r", "remedys: r", `line 7: unknown field "remedys": did you mean remedy?`)
	f("seen: 0.5", "sen: 0.5", `line 6: unknown field "sen": did you mean seen?`)
	f("check: c", "check: c\ncheck: d", `line 9: not a fault in YAML: mapping key "check" already defined at line 8`)
	f("check: c", "check: c\n---\nid: y", "the file holds more than one document: write one fault in a file")
	f("title: X", "title: [", "line 2: not a fault in YAML: did not find expected ',' or ']'")
	f(good, "", "not a fault in YAML: EOF")
	f(good, "- 1", `line 1: not a fault in YAML: a list is not a fault`)
	f("check: c", "check: "+strings.Repeat("c", maxFile), "the file is larger than the limit of 65536 bytes")
}

// TestAllAtOnce finds every problem of a file, not the first alone.
func TestAllAtOnce(t *testing.T) {
	_, err := Parse([]byte("id: x\ntitle: X\nmechanism: m\nat: [srvice]\nremedi: r\nexpect:\n  - {quadrant: traces, kinds: [self_tim], where: self, seen: 2, text: t}\n"))
	for _, want := range []string{"line 1: remedy", "line 1: check", "line 4: at:", `line 5: unknown field "remedi"`, "line 7: expect 1: no sensor", "line 7: expect 1: seen 2"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
}

func TestLoadChecksTogether(t *testing.T) {
	with := func(id, refines string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte(strings.Replace(good, "id: x", "id: "+id, 1) + "refines: [" + refines + "]\n")}
	}
	f := func(fsys fstest.MapFS, want string) {
		t.Helper()
		_, err := Load(fsys)
		if want == "" && err != nil {
			t.Error(err)
		}
		if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	f(fstest.MapFS{"general.yaml": with("general", ""), "special.yaml": with("special", "general")}, "")
	f(fstest.MapFS{"general.yaml": with("general", ""), "special.yaml": with("special", "genral")},
		`special.yaml:9: refines "genral", which is no other fault of the catalogue: did you mean general?`)
	f(fstest.MapFS{"a.yaml": with("a", "b"), "b.yaml": with("b", "a")}, "a.yaml:9: refines in a circle: a refines b refines a")
	f(fstest.MapFS{"y.yaml": with("x", "")}, `y.yaml:2: id is "x", and the file is named y.yaml: they must agree`)
	f(fstest.MapFS{"x.yml": with("x", "")}, "x.yml: only files that end in .yaml are read: rename it")
	f(fstest.MapFS{"a.yaml": {Data: []byte("id: a")}, "b.yaml": with("b", "a")}, "a.yaml:1: title is empty")
}

func TestCheckFolders(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	check := func(names ...string) *Report {
		t.Helper()
		r, err := Check(names...)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := check(); len(r.Problems) != 0 || len(r.Notes) != 0 || r.Files != 0 {
		t.Errorf("the built-in catalogue: %+v", r)
	}
	if r := check(dir); len(r.Problems) != 1 || !strings.Contains(r.Problems[0].String(), dir+": the folder has no *.yaml file") {
		t.Errorf("an empty folder: %+v", r)
	}
	own := write("queue-buildup.yaml", strings.Replace(good, "id: x", "id: queue-buildup", 1))
	r := check(dir)
	if len(r.Problems) != 0 || r.Files != 1 || len(r.Notes) != 3 {
		t.Fatalf("%+v", r)
	}
	if got := r.Notes[0].String(); !strings.HasPrefix(got, own+":2: replaces the built-in fault queue-buildup; what speaks for it now speaks for ") {
		t.Error(got)
	}
	c, err := WithFolders(dir)
	if err != nil {
		t.Fatal(err)
	}
	if f, _ := c.Get("queue-buildup"); f.Title != "X" || f.File() != own {
		t.Errorf("%+v", f)
	}
	if f, _ := c.Get("unknown"); f.File() != "" || !strings.HasPrefix(string(f.Source()), "id: unknown\n") {
		t.Errorf("%q from %q", f.Source(), f.File())
	}
	bad := write("broken.yaml", strings.Replace(strings.Replace(good, "id: x", "id: broken", 1), "[error_logs]", "[eror_logs]", 1))
	want := bad + `:6: expect 1: no sensor makes findings of kind "eror_logs": did you mean error_logs?`
	if _, err := WithFolders(dir); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
	if r := check(bad); r.Files != 1 || len(r.Problems) != 1 || r.Problems[0].String() != want {
		t.Errorf("%+v, want %q", r, want)
	}
	if r := check(own); r.Files != 1 || len(r.Problems) != 0 {
		t.Errorf("%+v", r)
	}
	if _, err := Check(filepath.Join(dir, "nowhere")); err == nil {
		t.Error("a folder that does not exist is taken")
	}
	if _, err := WithFolders(own); err == nil || !strings.Contains(err.Error(), "is a file") {
		t.Errorf("a file in place of a folder: %v", err)
	}
}
