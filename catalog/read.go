package catalog

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"inquest/sensor/kinds"
)

//go:embed faults/*.yaml
var embedded embed.FS

const (
	maxFile  = 64 << 10 // bytes of a catalogue file
	maxFiles = 1000     // of a folder
)

// source is where faults are read from.
type source struct {
	fsys fs.FS
	name string // stands before the names of its files
	// own is whether it is a user's.
	own bool
	// only are the files to read, all *.yaml when empty.
	only []string
}

func builtIn() source {
	sub, err := fs.Sub(embedded, "faults")
	if err != nil {
		panic(err) // the name is valid
	}
	return source{fsys: sub}
}

// folder returns a user's folder.
func folder(name string) (source, error) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return source{}, fmt.Errorf("cannot read the folder of faults: %w: make it, or take it out of the setting", err)
	case !info.IsDir():
		return source{}, fmt.Errorf("cannot read the folder of faults: %s is a file: name the folder it is in", name)
	}
	return source{fsys: os.DirFS(name), name: name, own: true}, nil
}

// sourceOf returns a user's folder, or one file of it.
func sourceOf(name string) (source, error) {
	info, err := os.Stat(name)
	if err != nil {
		return source{}, fmt.Errorf("cannot read faults: %w", err)
	}
	if info.IsDir() {
		return folder(name)
	}
	dir, file := filepath.Split(name)
	return source{fsys: os.DirFS(filepath.Clean(dir)), name: dir, own: true, only: []string{file}}, nil
}

// read is a file that was read: the fault as far as it could be, and where its parts
// stand.
type read struct {
	id       string // of the file's name
	fault    *Fault
	node     *yaml.Node
	file     string // with the folder
	own      bool
	problems Problems
}

// files reads all files of a source.
func (s source) files() ([]*read, Problems) {
	var problems Problems
	names := s.only
	if names == nil {
		list, err := fs.ReadDir(s.fsys, ".")
		if err != nil {
			return nil, Problems{{File: s.name, Text: "cannot list the folder: " + err.Error()}}
		}
		for _, e := range list {
			switch name := e.Name(); {
			case strings.HasPrefix(name, "."):
			case strings.HasSuffix(name, ".yml"):
				problems = append(problems, Problem{File: s.path(name), Text: "only files that end in .yaml are read: rename it"})
			case strings.HasSuffix(name, ".yaml"):
				names = append(names, name)
			}
		}
		if len(names) == 0 && s.own {
			problems = append(problems, Problem{File: s.name, Text: "the folder has no *.yaml file: put a fault there, or take the folder away"})
		}
	}
	if len(names) > maxFiles {
		return nil, Problems{{File: s.name, Text: fmt.Sprintf("%d files are more than the limit of %d", len(names), maxFiles)}}
	}
	var out []*read
	for _, name := range names {
		r := &read{id: strings.TrimSuffix(name, ".yaml"), file: s.path(name), own: s.own}
		out = append(out, r)
		raw, err := readFile(s.fsys, name)
		if err != nil {
			r.problems = Problems{{Text: err.Error()}}
		} else {
			r.parse(raw)
		}
		for i := range r.problems {
			r.problems[i].File = r.file
		}
		if s.own {
			r.fault.setFile(r.file)
		}
	}
	return out, problems
}

func (f *Fault) setFile(name string) {
	if f != nil {
		f.file = name
	}
}

func (s source) path(name string) string {
	if s.name == "" {
		return name
	}
	return filepath.Join(s.name, name)
}

func readFile(fsys fs.FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read the file: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	raw, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read the file: %w", err)
	}
	return raw, nil
}

// Parse reads one fault. Unknown fields are errors: a misspelt one would silently
// weaken the fault. The error is of type [Problems].
func Parse(raw []byte) (*Fault, error) {
	r := &read{}
	r.parse(raw)
	if len(r.problems) > 0 {
		return nil, r.problems
	}
	return r.fault, nil
}

// parse reads the fault and notes all that is wrong with it, but for its file's name.
func (r *read) parse(raw []byte) {
	if len(raw) > maxFile {
		r.problems = Problems{{Text: fmt.Sprintf("the file is larger than the limit of %d bytes", maxFile)}}
		return
	}
	node := &yaml.Node{}
	if err := yaml.Unmarshal(raw, node); err != nil {
		r.problems = yamlProblems(err)
		return
	}
	d := yaml.NewDecoder(bytes.NewReader(raw))
	d.KnownFields(true)
	f := &Fault{raw: raw}
	if err := d.Decode(f); err != nil {
		r.problems = yamlProblems(err)
		if len(node.Content) == 0 || node.Content[0].Kind != yaml.MappingNode {
			return
		}
	}
	if err := d.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		r.problems = append(r.problems, Problem{Text: "the file holds more than one document: write one fault in a file"})
	}
	r.fault, r.node = f, node
	told := map[int]bool{}
	for _, p := range r.problems {
		told[p.Line] = true
	}
	for _, x := range f.lint() {
		// What could not be read is empty, and need not be told twice.
		if line := r.line(x.at...); line == 0 || !told[line] {
			r.problems = append(r.problems, Problem{Line: line, Text: x.text})
		}
	}
	slices.SortStableFunc(r.problems, func(a, b Problem) int { return a.Line - b.Line })
}

// line is where a part of the fault stands: names of fields and indexes of lists lead
// to it. It is the line of the part around it where that is missing.
func (r *read) line(at ...any) int {
	if r.node == nil || len(r.node.Content) == 0 {
		return 0
	}
	n := r.node.Content[0]
	for _, step := range at {
		next := (*yaml.Node)(nil)
		switch step := step.(type) {
		case string:
			for i := 0; i+1 < len(n.Content) && n.Kind == yaml.MappingNode; i += 2 {
				if n.Content[i].Value == step {
					next = n.Content[i+1]
				}
			}
		case int:
			if n.Kind == yaml.SequenceNode && step < len(n.Content) {
				next = n.Content[step]
			}
		}
		if next == nil {
			break
		}
		n = next
	}
	return n.Line
}

var (
	yamlLine     = regexp.MustCompile(`(?s)^(?:yaml: )?line (\d+): (.*)$`)
	unknownField = regexp.MustCompile(`^field (\S+) not found in type catalog\.(\w+)$`)
	wrongType    = regexp.MustCompile("^cannot unmarshal !!(\\w+)(?: `(.*)`)? into (.*)$")
)

// yamlProblems takes the errors of the decoder apart.
func yamlProblems(err error) Problems {
	texts := []string{err.Error()}
	var te *yaml.TypeError
	if errors.As(err, &te) {
		texts = te.Errors
	}
	var out Problems
	for _, text := range texts {
		p := Problem{Text: "not a fault in YAML: " + strings.TrimPrefix(text, "yaml: ")}
		if m := yamlLine.FindStringSubmatch(text); m != nil {
			p.Line, _ = strconv.Atoi(m[1])
			p.Text = "not a fault in YAML: " + m[2]
			text = m[2]
		}
		if m := unknownField.FindStringSubmatch(text); m != nil {
			p.Text = fmt.Sprintf("unknown field %q%s", m[1], meant(kinds.Nearest(m[1], fieldsOf(m[2]))))
		} else if m := wrongType.FindStringSubmatch(text); m != nil {
			p.Text = fmt.Sprintf("not a fault in YAML: %s is not %s", wrongValue(m[1], m[2]), typeNames[m[3]])
			if typeNames[m[3]] == "" {
				p.Text = "not a fault in YAML: " + text
			}
		}
		out = append(out, p)
	}
	return out
}

// typeNames say in words what a field takes.
var typeNames = map[string]string{
	"float64": "a number", "bool": "true or false", "string": "a text", "[]string": "a list of names",
	"[]record.EntityKind": "a list of kinds of entities", "[]catalog.Expectation": "a list of evidence",
	"catalog.Fault": "a fault", "catalog.Expectation": "evidence (a mapping with quadrant, kinds, where, seen, text)",
	"record.Quadrant": "a quadrant", "record.Direction": "a direction", "catalog.Where": "a place",
}

func wrongValue(tag, text string) string {
	if text != "" {
		return strconv.Quote(text)
	}
	return map[string]string{"map": "a mapping", "seq": "a list"}[tag]
}

// fieldsOf returns the names of the fields of a type of this package.
func fieldsOf(name string) []string {
	t := reflect.TypeFor[Fault]()
	if name == "Expectation" {
		t = reflect.TypeFor[Expectation]()
	}
	var out []string
	for i := range t.NumField() {
		if tag := t.Field(i).Tag.Get("yaml"); tag != "" {
			out = append(out, tag)
		}
	}
	return out
}

// meant asks for the names that may have been meant.
func meant(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return ": did you mean " + strings.Join(names, " or ") + "?"
}
