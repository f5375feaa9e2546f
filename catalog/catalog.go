// Package catalog holds the faults that the engine knows, as data: each names
// its mechanism, the evidence expected in each quadrant with how telling its
// presence and absence is, the remedy, and the check that proves the repair.
package catalog

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"inquest/record"
)

//go:embed faults/*.yaml
var embedded embed.FS

// Fault is one entry.
type Fault struct {
	ID    string `yaml:"id"`
	Title string `yaml:"title"`
	// Mechanism says how the fault works, in a sentence or two.
	Mechanism string `yaml:"mechanism"`
	// At are the kinds of entities that can have it.
	At []record.EntityKind `yaml:"at"`
	// Refines are identifiers of more general faults of which this is a kind: where
	// one of them fits, what speaks for it speaks for this one too.
	Refines []string      `yaml:"refines"`
	Expect  []Expectation `yaml:"expect"`
	Remedy  string        `yaml:"remedy"`
	Check   string        `yaml:"check"`
}

// Where says whose finding is expected, seen from the entity at fault.
type Where string

// The places of findings.
const (
	WhereSelf    Where = "self"    // the entity, its pods, its operations
	WhereIn      Where = "in"      // each way from a caller to the entity
	WhereOut     Where = "out"     // each way from the entity to a callee
	WhereCallers Where = "callers" // services that call it, directly or not
	WhereHosted  Where = "hosted"  // what runs on it
	WhereHost    Where = "host"    // what it runs on
	// WhereEachHosted is each service that runs on it: several of them at once are
	// what tells a host's fault from a service's.
	WhereEachHosted Where = "each_hosted"
)

// Expectation is one sort of evidence.
type Expectation struct {
	Quadrant record.Quadrant `yaml:"quadrant"`
	// Kinds are the kinds of findings, any of which will do.
	Kinds []string `yaml:"kinds"`
	Where Where    `yaml:"where"`
	// Direction is up, down or empty for either. Appeared counts as up, vanished
	// as down.
	Direction record.Direction `yaml:"direction"`
	// Seen is the probability, between 0 and 1, that the finding shows when the
	// fault is there and the source was examined: the nearer to 1, the more its
	// presence speaks for the fault and its absence against it. 0.95 says "must
	// show", 0.3 "may show".
	Seen float64 `yaml:"seen"`
	// AtLeast is the least observed value that fits the fault, for evidence that
	// is a share of requests: a service that is down loses most calls, not one in
	// ten. 0 means any.
	AtLeast float64 `yaml:"at_least"`
	// Essential evidence must be there for the fault to be named at all.
	Essential bool `yaml:"essential"`
	// Absent turns the expectation round: the finding must not be there, since it
	// would explain the rest from elsewhere. It never speaks for the fault.
	Absent bool `yaml:"absent"`
	// Symptom marks evidence of the harm. It supports the fault, but by itself
	// points to no cause.
	Symptom bool   `yaml:"symptom"`
	Text    string `yaml:"text"`
}

// Catalog is a set of faults, by identifier.
type Catalog struct {
	Faults []*Fault
	byID   map[string]*Fault
}

// Default returns the catalogue that comes with inquest.
func Default() (*Catalog, error) {
	sub, err := fs.Sub(embedded, "faults")
	if err != nil {
		return nil, fmt.Errorf("cannot open the embedded catalogue: %w", err)
	}
	return Load(sub)
}

// Load reads all *.yaml files at the top of fsys, one fault each. A fault of a
// later file system replaces one with the same identifier, so users' folders
// come after the default. All faults are checked with [Fault.Lint].
func Load(systems ...fs.FS) (*Catalog, error) {
	c := &Catalog{byID: map[string]*Fault{}}
	for _, fsys := range systems {
		names, err := fs.Glob(fsys, "*.yaml")
		if err != nil {
			return nil, fmt.Errorf("cannot list the catalogue: %w", err)
		}
		for _, name := range names {
			raw, err := fs.ReadFile(fsys, name)
			if err != nil {
				return nil, fmt.Errorf("cannot read the catalogue: %w", err)
			}
			f, err := Parse(raw)
			if err != nil {
				return nil, fmt.Errorf("cannot use catalogue file %s: %w", name, err)
			}
			if want := strings.TrimSuffix(path.Base(name), ".yaml"); f.ID != want {
				return nil, fmt.Errorf("cannot use catalogue file %s: its id is %q, not %q", name, f.ID, want)
			}
			c.byID[f.ID] = f
		}
	}
	for _, f := range c.byID {
		c.Faults = append(c.Faults, f)
	}
	slices.SortFunc(c.Faults, func(a, b *Fault) int { return strings.Compare(a.ID, b.ID) })
	for _, f := range c.Faults {
		for _, id := range f.Refines {
			if c.byID[id] == nil || id == f.ID {
				return nil, fmt.Errorf("cannot use catalogue file %s.yaml: it refines %q, which is no other fault of the catalogue", f.ID, id)
			}
		}
	}
	if len(c.Faults) == 0 {
		return nil, errors.New("cannot use the catalogue: it has no faults")
	}
	return c, nil
}

// Get returns a fault by identifier.
func (c *Catalog) Get(id string) (*Fault, bool) {
	f, ok := c.byID[id]
	return f, ok
}

// maxFile bounds a catalogue file.
const maxFile = 64 << 10

// Parse reads one fault. Unknown fields are errors: a misspelt one would
// silently weaken the fault.
func Parse(raw []byte) (*Fault, error) {
	if len(raw) > maxFile {
		return nil, fmt.Errorf("file of %d bytes is above the limit of %d", len(raw), maxFile)
	}
	d := yaml.NewDecoder(bytes.NewReader(raw))
	d.KnownFields(true)
	f := &Fault{}
	if err := d.Decode(f); err != nil {
		return nil, fmt.Errorf("not a fault in YAML: %w", err)
	}
	if err := f.Lint(); err != nil {
		return nil, err
	}
	return f, nil
}

var idPattern = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

// Lint reports everything that is wrong with a fault.
func (f *Fault) Lint() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if !idPattern.MatchString(f.ID) {
		bad("id %q: use small letters, digits and hyphens", f.ID)
	}
	for name, v := range map[string]string{"title": f.Title, "mechanism": f.Mechanism, "remedy": f.Remedy, "check": f.Check} {
		if strings.TrimSpace(v) == "" {
			bad("%s is empty", name)
		}
	}
	if len(f.At) == 0 {
		bad("at is empty: name the kinds of entities that can have the fault")
	}
	if len(f.Expect) == 0 {
		bad("expect is empty: a fault without evidence cannot be found")
	}
	cause := false
	for i, e := range f.Expect {
		if !slices.Contains(record.Quadrants, e.Quadrant) {
			bad("expect %d: unknown quadrant %q", i+1, e.Quadrant)
		}
		if len(e.Kinds) == 0 {
			bad("expect %d: kinds is empty", i+1)
		}
		switch e.Where {
		case WhereSelf, WhereIn, WhereOut, WhereCallers, WhereHosted, WhereHost, WhereEachHosted:
		default:
			bad("expect %d: unknown where %q", i+1, e.Where)
		}
		switch e.Direction {
		case "", record.DirectionUp, record.DirectionDown:
		default:
			bad("expect %d: direction %q is not up, down or empty", i+1, e.Direction)
		}
		if e.Seen <= 0 || e.Seen >= 1 {
			bad("expect %d: seen %v is not between 0 and 1", i+1, e.Seen)
		}
		if e.AtLeast < 0 || e.AtLeast > 1 {
			bad("expect %d: at_least %v is not between 0 and 1", i+1, e.AtLeast)
		}
		if strings.TrimSpace(e.Text) == "" {
			bad("expect %d: text is empty", i+1)
		}
		if e.Absent && (e.Essential || e.Symptom) {
			bad("expect %d: what must be absent is neither essential nor a symptom", i+1)
		}
		cause = cause || !e.Symptom && !e.Absent
	}
	if len(f.Expect) > 0 && !cause {
		bad("all evidence is symptoms: nothing would point to the cause")
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}
