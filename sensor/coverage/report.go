// Package coverage measures how much of the stored records can be joined to
// their requests, by service, and names the places where the chain tears. It
// reads what is stored and stands beside the sensors; records without ids are
// bound by package sensor/binding for the second set of figures.
package coverage

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"inquest/sensor/binding"
	"inquest/store"
)

// Options are the settings of [Measure]. The zero value of each gives its default.
type Options struct {
	Binding binding.Options
	// Context is how far around the range spans are read, so that calls at its
	// edges are seen whole. Default 2 minutes.
	Context time.Duration
	// MaxSpans bounds the spans that are held to find tears. Where there are
	// more, the latest part of the range that fits is searched, and the report
	// says which. Default 1,000,000, about 200 bytes each.
	MaxSpans int
	// MinShare is the least share that is reported as a tear. Default 0.01.
	MinShare float64
	// Examples is how many examples a tear has at most. Default 3.
	Examples int
}

func (o Options) withDefaults() Options {
	if o.Context <= 0 {
		o.Context = 2 * time.Minute
	}
	if o.MaxSpans <= 0 {
		o.MaxSpans = 1_000_000
	}
	if o.MinShare <= 0 {
		o.MinShare = 0.01
	}
	if o.Examples <= 0 {
		o.Examples = 3
	}
	return o
}

// Figure is a count of records and its share of all. With is with what binding
// inferred.
type Figure struct {
	Own       int     `json:"own"`
	OwnShare  float64 `json:"own_share"`
	With      int     `json:"with_binding"`
	WithShare float64 `json:"with_binding_share"`
}

// Service is what one service's records carry. Records are log records and spans.
type Service struct {
	Name      string         `json:"name"` // empty for records that name no service
	Records   int            `json:"records"`
	Logs      int            `json:"logs"`
	Spans     int            `json:"spans"`
	TraceID   Figure         `json:"trace_id"`
	SpanID    Figure         `json:"span_id"`
	RequestID Figure         `json:"request_id"`
	Binding   binding.Counts `json:"binding"` // of log records without a trace id

	logsWithTrace int
}

// Kind says in what way the chain tears.
type Kind string

// The kinds of tears.
const (
	// BrokenContext: the caller's call has no child, although the callee served
	// it, as the root of another trace.
	BrokenContext Kind = "broken_context"
	// UnknownParent: the callee's spans name a parent that is not stored.
	UnknownParent Kind = "unknown_parent"
	// RequestIDRewritten: caller and callee give one trace different request ids.
	RequestIDRewritten Kind = "request_id_rewritten"
	// RequestIDLost: the caller's records have a request id, the callee's none.
	RequestIDLost Kind = "request_id_lost"
	// NoIDs: the service's log records carry no trace id, its caller's do.
	NoIDs Kind = "no_ids"
	// Untaken: messages of the caller are taken by no span, and it is not sure by
	// which service they are. To is the one that it probably is or, where none is
	// likely, the destination.
	Untaken Kind = "untaken"
)

// Tear is a place where the chain tears.
type Tear struct {
	// From is the caller, empty where it cannot be told. To is where the chain
	// tears.
	From string `json:"from,omitempty"`
	To   string `json:"to"`
	Kind Kind   `json:"kind"`
	// Count is how many calls or records are torn, of Of, and Share their ratio.
	Count int     `json:"count"`
	Of    int     `json:"of"`
	Share float64 `json:"share"`
	// Evidence says how caller and callee were told.
	Evidence string    `json:"evidence,omitempty"`
	Examples []Example `json:"examples,omitempty"`
	// Text says it in a sentence or two, with what to do.
	Text string `json:"text"`
}

// Example is a torn call or record.
type Example struct {
	Time    time.Time `json:"time"`
	TraceID string    `json:"trace_id,omitempty"`
	SpanID  string    `json:"span_id,omitempty"`
	Text    string    `json:"text"`
}

// Report is what [Measure] found. The same stored data gives the same report.
type Report struct {
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
	Services []Service `json:"services"` // by name
	Tears    []Tear    `json:"tears"`    // the most torn first
	// SearchedFrom is From, unless there were more spans than may be held; tears
	// were searched from there on.
	SearchedFrom time.Time `json:"searched_from"`
}

// Measure measures coverage between from (inclusive) and to (exclusive).
func Measure(ctx context.Context, records store.RecordReader, from, to time.Time, o Options) (*Report, error) {
	o = o.withDefaults()
	if !from.Before(to) {
		return nil, fmt.Errorf("cannot measure coverage: the range from %s to %s is empty", from.Format(time.RFC3339), to.Format(time.RFC3339))
	}
	// Empty lists, not null: that is what the API promises.
	r := &Report{From: from.UTC(), To: to.UTC(), Services: []Service{}, Tears: []Tear{}}
	if err := r.measureShares(ctx, records, o); err != nil {
		return nil, fmt.Errorf("cannot measure coverage: %w", err)
	}
	s := &search{ctx: ctx, records: records, o: o, report: r}
	if err := s.load(); err != nil {
		return nil, fmt.Errorf("cannot search for torn chains: %w", err)
	}
	s.join()
	groups, siblings := s.openGroups(), s.siblings()
	if err := s.namedInLogs(groups); err != nil {
		return nil, fmt.Errorf("cannot look for messages in log records: %w", err)
	}
	s.brokenContexts(groups, siblings)
	s.unknownParents()
	if err := s.requestIDs(); err != nil {
		return nil, fmt.Errorf("cannot compare request ids: %w", err)
	}
	s.servicesWithoutIDs()
	s.untaken(groups, siblings)
	slices.SortFunc(r.Tears, func(a, b Tear) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.To, b.To), strings.Compare(a.From, b.From), strings.Compare(string(a.Kind), string(b.Kind)), strings.Compare(a.Text, b.Text))
	})
	return r, nil
}

// service returns the figures of a service, or nil.
func (r *Report) service(name string) *Service {
	i, ok := slices.BinarySearchFunc(r.Services, name, func(s Service, name string) int { return strings.Compare(s.Name, name) })
	if !ok {
		return nil
	}
	return &r.Services[i]
}

// add adds a tear, unless it is too small.
func (s *search) add(t Tear) {
	if t.Of == 0 || t.Count == 0 {
		return
	}
	t.Share = float64(t.Count) / float64(t.Of)
	if t.Share >= s.o.MinShare {
		s.report.Tears = append(s.report.Tears, t)
	}
}

func percent(n, of int) string {
	if of == 0 {
		return "0 %"
	}
	return fmt.Sprintf("%.3g %%", 100*float64(n)/float64(of))
}

// quote names a service in a sentence.
func quote(service string) string {
	if service == "" {
		return "a service without a name"
	}
	return service
}
