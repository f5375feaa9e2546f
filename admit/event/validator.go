package event

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"inquest/schema"
)

// Validator checks AI events against one schema. Its methods may be called by
// many goroutines at once.
type Validator struct {
	schema  *jsonschema.Schema
	plan    *plan
	workers sync.Pool // *worker
}

// New compiles a JSON Schema, such as [schema.AIEvent] or a user's own. It may
// refer to the published one by its $id, and so extend it. Other documents are
// not loaded. Formats are asserted.
func New(schemaJSON []byte) (*Validator, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schemaJSON))
	if err != nil {
		return nil, fmt.Errorf("cannot read the event schema: %w; it must be JSON", err)
	}
	const name = "urn:inquest:event-schema"
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	c.UseLoader(published{})
	if err := c.AddResource(name, doc); err != nil {
		return nil, fmt.Errorf("cannot use the event schema: %w", err)
	}
	s, err := c.Compile(name)
	if err != nil {
		return nil, fmt.Errorf("cannot compile the event schema: %w; check it against JSON Schema 2020-12", err)
	}
	return &Validator{schema: s, plan: newPlan(s)}, nil
}

// published loads the schemas that inquest publishes, and nothing else.
type published struct{}

func (published) Load(url string) (any, error) {
	if url != schema.AIEventID {
		return nil, fmt.Errorf("an event schema can refer to %s only", schema.AIEventID)
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(schema.AIEvent()))
}

// Input is the raw input of an accepted event, for a payload store.
type Input struct {
	Given  bool // the event had one, and its hash is right
	Text   string
	Hash   string // SHA-256, 64 lower-case hexadecimal digits
	UserID string
}

// Check checks an event, see [Validator.Admit]. The raw input stays with it.
func (v *Validator) Check(resource pcommon.Resource, lr plog.LogRecord, received int64) *Reason {
	_, why := v.Admit(resource, lr, received, false)
	return why
}

// Admit checks the event that lr is. When it returns nil lr has the stored form.
// Otherwise lr is as it was. resource is only read. received is when it arrived,
// in ns since the Unix epoch, or 0; it becomes the observed time of a record that
// has none.
//
// The raw input is returned, and left out of lr when dropInput is true. Its text
// shares memory with lr and may be kept.
//
// The same event gets the same reason: of several broken rules the one whose
// place in the event comes first, and of those the one whose keyword does.
func (v *Validator) Admit(resource pcommon.Resource, lr plog.LogRecord, received int64, dropInput bool) (Input, *Reason) {
	w, ok := v.workers.Get().(*worker)
	if !ok {
		w = new(worker)
	}
	defer v.workers.Put(w)
	w.reset(v.plan)
	whole := false
	if !w.fast(resource, lr) || !w.decode() {
		w.reset(v.plan)
		whole = true
		if why := v.slow(w, resource, lr); why != nil {
			return Input{}, why
		}
	}
	in, why := w.verify(lr)
	if why != nil {
		return Input{}, why
	}
	w.store(resource, lr, received, dropInput, whole || w.form == bodyForm)
	return in, nil
}

// slow checks an event by the library.
func (v *Validator) slow(w *worker, resource pcommon.Resource, lr plog.LogRecord) *Reason {
	view, form, why := v.viewOf(lr)
	if why != nil {
		return why
	}
	w.form = form
	w.facts.fillView(view, resource, lr, form)
	if err := v.schema.Validate(view); err != nil {
		return v.reasonOf(err, view)
	}
	if why := w.flatten(view); why != nil {
		return why
	}
	w.decode()
	return w.readClock()
}
