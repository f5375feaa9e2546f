// Package catalog holds the faults that the engine knows, as data: each names
// its mechanism, the evidence expected in each quadrant with how telling its
// presence and absence is, the remedy, and the check that proves the repair.
package catalog

import (
	"bytes"
	"fmt"
	"io/fs"

	"inquest/record"
	"inquest/sensor/kinds"
)

// Fault is one entry.
type Fault struct {
	ID    string `yaml:"id" json:"id"`
	Title string `yaml:"title" json:"title"`
	// Mechanism says how the fault works, in a sentence or two.
	Mechanism string `yaml:"mechanism" json:"mechanism"`
	// At are the kinds of entities that can have it.
	At []record.EntityKind `yaml:"at" json:"at"`
	// Refines are identifiers of more general faults of which this is a kind: where
	// one of them fits, what speaks for it speaks for this one too.
	Refines []string      `yaml:"refines" json:"refines,omitempty"`
	Expect  []Expectation `yaml:"expect" json:"expect"`
	// Remedy says what to do.
	Remedy string `yaml:"remedy" json:"remedy"`
	// Check says what proves that the repair worked.
	Check string `yaml:"check" json:"check"`

	file string // empty of a built-in one
	raw  []byte
}

// File is the file that the fault was read from, empty for one that comes with
// inquest.
func (f *Fault) File() string { return f.file }

// Source is the text that the fault was read from.
func (f *Fault) Source() []byte { return bytes.Clone(f.raw) }

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
	Quadrant record.Quadrant `yaml:"quadrant" json:"quadrant"`
	// Kinds are the kinds of findings, any of which will do.
	Kinds []string `yaml:"kinds" json:"kinds"`
	Where Where    `yaml:"where" json:"where"`
	// Direction is up, down or empty for either. Appeared counts as up, vanished
	// as down.
	Direction record.Direction `yaml:"direction" json:"direction,omitempty"`
	// Seen is the probability, between 0 and 1, that the finding shows when the
	// fault is there and the source was examined: the nearer to 1, the more its
	// presence speaks for the fault and its absence against it. 0.95 says "must
	// show", 0.3 "may show".
	Seen float64 `yaml:"seen" json:"seen"`
	// AtLeast is the least observed value that fits the fault, for evidence that
	// is a share of requests: a service that is down loses most calls, not one in
	// ten. 0 means any.
	AtLeast float64 `yaml:"at_least" json:"at_least,omitempty"`
	// Essential evidence must be there for the fault to be named at all.
	Essential bool `yaml:"essential" json:"essential,omitempty"`
	// Absent turns the expectation round: the finding must not be there, since it
	// would explain the rest from elsewhere. It never speaks for the fault.
	Absent bool `yaml:"absent" json:"absent,omitempty"`
	// Symptom marks evidence of the harm. It supports the fault, but by itself
	// points to no cause.
	Symptom bool `yaml:"symptom" json:"symptom,omitempty"`
	// Text says it in a sentence, for the report.
	Text string `yaml:"text" json:"text"`
}

// Catalog is a set of faults, by identifier.
type Catalog struct {
	Faults []*Fault
	byID   map[string]*Fault
}

// Default returns the catalogue that comes with inquest.
func Default() (*Catalog, error) { return WithFolders() }

// WithFolders returns the catalogue that comes with inquest and the faults of users'
// folders. A fault of a later folder replaces one with the same identifier. The error
// is of type [Problems] where files are wrong, and names each with its line.
func WithFolders(folders ...string) (*Catalog, error) {
	sources := []source{builtIn()}
	for _, f := range folders {
		s, err := folder(f)
		if err != nil {
			return nil, err
		}
		sources = append(sources, s)
	}
	return catalogOf(sources)
}

// Load reads all *.yaml files at the top of each file system, one fault each. A fault
// of a later file system replaces one with the same identifier. All faults are checked
// as by [Fault.Lint]; the error is of type [Problems] where files are wrong.
func Load(systems ...fs.FS) (*Catalog, error) {
	var sources []source
	for _, fsys := range systems {
		sources = append(sources, source{fsys: fsys})
	}
	return catalogOf(sources)
}

// Get returns a fault by identifier.
func (c *Catalog) Get(id string) (*Fault, bool) {
	f, ok := c.byID[id]
	return f, ok
}

// Find returns a fault by identifier; the error names those that may have been meant.
func (c *Catalog) Find(id string) (*Fault, error) {
	if f, ok := c.byID[id]; ok {
		return f, nil
	}
	names := make([]string, len(c.Faults))
	for i, f := range c.Faults {
		names[i] = f.ID
	}
	near := meant(kinds.Nearest(id, names))
	if near == "" {
		near = ": see inquest catalog list"
	}
	return nil, fmt.Errorf("the catalogue has no fault %q%s", id, near)
}
