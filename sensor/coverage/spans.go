package coverage

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"inquest/record"
	"inquest/store"
)

// span is what the search for tears holds of a span. Its texts are shared.
type span struct {
	start, end  int64
	trace       string
	id, parent  string
	service     string
	name        string
	kind        string
	peer        string // the name by which a call goes to its callee
	destination string // of a message
	message     string // id of a message
	task        string // name of a task
}

// isCall tells whether the span is the caller's side of a call.
func (s *span) isCall() bool { return s.kind == "client" || s.kind == "producer" }

// isEntry tells whether the span is the callee's side.
func (s *span) isEntry() bool { return s.kind == "server" || s.kind == "consumer" }

// Names of attributes, of which the first that is there counts.
var (
	peerFields        = []string{"peer.service", "server.address", "net.peer.name", "http.host", "rpc.service"}
	destinationFields = []string{"messaging.destination.name", "messaging.destination"}
	messageFields     = []string{"messaging.message.id", "messaging.message_id", "celery.task_id", "task.id"}
	taskFields        = []string{"celery.task_name", "task.name", "messaging.celery.task_name"}
)

type spanKey struct{ trace, id string }

// edge is a way from one service to another.
type edge struct{ from, to string }

// search looks for tears.
type search struct {
	ctx     context.Context
	records store.RecordReader
	o       Options
	report  *Report

	spans   []span // by start
	byID    map[spanKey]int32
	joined  map[edge]int             // calls that arrived, by way
	traces  map[edge]map[string]bool // traces in which they did
	called  []bool                   // by span: has a child in another service, or its callee's side
	callee  []string                 // by span: the service of that child
	roots   map[string][]int32       // entries without a parent, by service
	begun   map[string][]int32       // other spans that begin a trace, by service
	orphans map[string][]int32       // spans whose parent is not stored, by service
	entries map[string]int           // spans that begin a visit, by service
	open    []int32                  // calls without a child
	torn    map[edge]string          // ways with a broken context: how they were told
	matched map[int32]bool           // open calls of which the callee is known
	loggers map[callGroup]string     // calls whose messages the log records of one service name
	taken   map[callGroup]bool       // calls without a child that name a service without ids
	hosts   map[string]string        // pod, host or instance to the one service there
	begins  map[string]int64         // by trace: when its first span began
}

// load reads the spans, in the part of the range that fits.
func (s *search) load() error {
	from, err := s.fits()
	if err != nil {
		return err
	}
	s.report.SearchedFrom = from
	fields := []string{
		record.FieldTime, record.FieldDuration, record.FieldTraceID, record.FieldSpanID, record.FieldParentSpanID,
		record.FieldName, record.FieldSpanKind, "service.name", "k8s.pod.name", "host.name", "service.instance.id",
	}
	fields = slices.Concat(fields, peerFields, destinationFields, messageFields, taskFields)
	for i := range fields {
		fields[i] = strconv.Quote(fields[i])
	}
	shared := map[string]string{}
	keep := func(v string) string {
		if v == "" {
			return ""
		}
		k, ok := shared[v]
		if !ok {
			k = strings.Clone(v)
			shared[k] = k
		}
		return k
	}
	s.hosts = map[string]string{}
	q := fmt.Sprintf(`{%q=%q} | fields %s`, record.FieldType, string(record.TypeSpan), strings.Join(fields, ", "))
	row := map[string]string{}
	first := func(names []string) string {
		for _, n := range names {
			if row[n] != "" {
				return keep(row[n])
			}
		}
		return ""
	}
	err = s.records.QueryRecords(s.ctx, store.RecordQuery{LogsQL: q, From: from.Add(-s.o.Context), To: s.report.To.Add(s.o.Context)}, func(fields []record.Field) error {
		clear(row)
		for _, f := range fields {
			row[f.Name] = f.Value
		}
		t, err := time.Parse(time.RFC3339Nano, row[record.FieldTime])
		if err != nil {
			return err
		}
		d, _ := strconv.ParseInt(row[record.FieldDuration], 10, 64) // none for a span without an end
		sp := span{
			start: t.UnixNano(), end: t.UnixNano() + max(d, 0),
			trace: keep(row[record.FieldTraceID]), id: strings.Clone(row[record.FieldSpanID]), parent: strings.Clone(row[record.FieldParentSpanID]),
			service: keep(row["service.name"]), name: keep(row[record.FieldName]), kind: keep(row[record.FieldSpanKind]),
		}
		if sp.isCall() || sp.isEntry() {
			sp.peer, sp.destination, sp.message, sp.task = first(peerFields), first(destinationFields), first(messageFields), first(taskFields)
		}
		for _, place := range []string{row["k8s.pod.name"], row["host.name"], row["service.instance.id"]} {
			s.lives(keep(place), sp.service)
		}
		s.spans = append(s.spans, sp)
		return nil
	})
	slices.SortFunc(s.spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.start, b.start), strings.Compare(a.trace, b.trace), strings.Compare(a.id, b.id))
	})
	return err
}

// lives notes that a service has a process at a place; a place with several
// services names none.
func (s *search) lives(place, service string) {
	if place == "" {
		return
	}
	if other, ok := s.hosts[place]; ok && other != service {
		service = ""
	}
	s.hosts[place] = service
}

// fits returns from when on the spans fit into memory.
func (s *search) fits() (time.Time, error) {
	counts := map[int64]int{}
	q := fmt.Sprintf(`{%q=%q} | stats by (_time:1m) count() n`, record.FieldType, string(record.TypeSpan))
	err := s.report.count(s.ctx, s.records, q, func(row map[string]string) {
		if t, err := time.Parse(time.RFC3339Nano, row[record.FieldTime]); err == nil {
			counts[t.UnixNano()] += number(row["n"])
		}
	})
	minutes := make([]int64, 0, len(counts))
	for m := range counts {
		minutes = append(minutes, m)
	}
	slices.Sort(minutes)
	from, n := s.report.From, 0
	for i, m := range slices.Backward(minutes) {
		if n += counts[m]; n > s.o.MaxSpans && i < len(minutes)-1 {
			if t := time.Unix(0, m).UTC().Add(time.Minute); t.After(from) {
				from = t
			}
			break
		}
	}
	return from, err
}

// within tells whether a span is judged, not just read as context.
func (s *search) within(i int32) bool {
	t := s.spans[i].start
	return t >= s.report.SearchedFrom.UnixNano() && t < s.report.To.UnixNano()
}

// join joins spans to their parents and sorts out what has none.
func (s *search) join() {
	s.byID = make(map[spanKey]int32, len(s.spans))
	s.joined, s.traces = map[edge]int{}, map[edge]map[string]bool{}
	s.called, s.callee = make([]bool, len(s.spans)), make([]string, len(s.spans))
	s.roots, s.orphans, s.entries = map[string][]int32{}, map[string][]int32{}, map[string]int{}
	s.begun = map[string][]int32{}
	began := map[string]bool{} // traces of which a span was seen
	s.torn, s.matched, s.taken = map[edge]string{}, map[int32]bool{}, map[callGroup]bool{}
	for i := range s.spans {
		s.byID[spanKey{s.spans[i].trace, s.spans[i].id}] = int32(i)
	}
	for i := range s.spans {
		s.joinOne(int32(i), !began[s.spans[i].trace])
		began[s.spans[i].trace] = true
	}
	for i := range s.spans {
		if s.spans[i].isCall() && !s.called[i] && s.within(int32(i)) {
			s.open = append(s.open, int32(i))
		}
	}
}

func (s *search) joinOne(i int32, first bool) {
	sp := &s.spans[i]
	p, known := s.byID[spanKey{sp.trace, sp.parent}]
	switch {
	case sp.parent == "":
		if s.within(i) {
			s.entries[sp.service]++
		}
		if sp.isEntry() || sp.kind == "" {
			s.roots[sp.service] = append(s.roots[sp.service], i)
		} else if first {
			// By itself, or because nothing told it of the message that it serves.
			s.begun[sp.service] = append(s.begun[sp.service], i)
		}
	case !known:
		if s.within(i) {
			s.entries[sp.service]++
			s.orphans[sp.service] = append(s.orphans[sp.service], i)
		}
	case s.spans[p].service != sp.service || s.spans[p].isCall() && sp.isEntry():
		s.called[p], s.callee[p] = true, sp.service
		if !s.within(i) {
			return
		}
		s.entries[sp.service]++
		e := edge{s.spans[p].service, sp.service}
		s.joined[e]++
		if s.traces[e] == nil {
			s.traces[e] = map[string]bool{}
		}
		s.traces[e][sp.trace] = true
	}
}

// example makes an example of a span.
func (s *search) example(i int32) Example {
	sp := &s.spans[i]
	return Example{Time: time.Unix(0, sp.start).UTC(), TraceID: sp.trace, SpanID: sp.id, Text: strings.TrimSpace(sp.kind + " span " + sp.name + " of " + quote(sp.service))}
}

func (s *search) examples(spans []int32) []Example {
	var out []Example
	for _, i := range spans[:min(len(spans), s.o.Examples)] {
		out = append(out, s.example(i))
	}
	return out
}
