package stack

import (
	"errors"
	"fmt"
	"time"

	"inquest/lab/sim"
	"inquest/lab/telemetry"
)

// Ctx is where a request is: the process that serves it, in a pod, under a span.
type Ctx struct {
	P     *sim.Proc
	Pod   *Pod
	Trace telemetry.TraceID
	Span  telemetry.SpanID
	// RequestID goes with the request through all services.
	RequestID string
	// Deadline is when nobody waits for the answer any more; 0 for never.
	Deadline time.Duration
	// Baggage is what else goes along.
	Baggage map[string]string
}

// Left is the time until the deadline, [sim.Forever] without one, and never
// below zero.
func (c *Ctx) Left() time.Duration {
	if c.Deadline == 0 {
		return sim.Forever
	}
	return max(0, c.Deadline-c.P.Now())
}

// limit is the shorter of the deadline and a time limit of its own.
func (c *Ctx) limit(own time.Duration) time.Duration {
	left := c.Left()
	switch {
	case own == 0 || own == sim.Forever:
		return left
	case left == sim.Forever:
		return own
	}
	return min(own, left)
}

// Errors that callers see.
var (
	ErrTimeout = errors.New("deadline exceeded")
	ErrRefused = errors.New("connection refused")
	ErrReset   = errors.New("connection reset by peer")
)

// SpanOf is a span under way. Attributes may be added until it ends.
type SpanOf struct {
	Attributes telemetry.Attributes
	events     []telemetry.Event
	ctx        *Ctx
}

// Set adds attributes, as name, value, name, value.
func (s *SpanOf) Set(pairs ...any) { s.Attributes = s.Attributes.With(pairs...) }

// Event adds an event.
func (s *SpanOf) Event(name string, pairs ...any) {
	s.events = append(s.events, telemetry.Event{Time: s.ctx.P.Now(), Name: name, Attributes: telemetry.Attributes(nil).With(pairs...)})
}

// In runs fn under a new span of the pod. Where the pod has no tracing it runs fn
// all the same.
func (c *Ctx) In(name string, kind telemetry.Kind, fn func(*Ctx, *SpanOf) error) error {
	inner := *c
	s := &SpanOf{ctx: &inner}
	if c.Pod.Untraced {
		return fn(&inner, s)
	}
	if inner.Trace == (telemetry.TraceID{}) {
		inner.Trace = c.Pod.world.Rec.NewTrace()
	}
	inner.Span = c.Pod.world.Rec.NewSpan()
	start := c.P.Now()
	done := false
	var err error
	end := func() {
		span := telemetry.Span{
			Source: c.Pod.Source, Trace: inner.Trace, ID: inner.Span, Parent: c.Span, Name: name, Kind: kind,
			Start: start, End: c.P.Now(), Attributes: s.Attributes, Events: s.events,
		}
		if err != nil {
			span.Failed, span.Message = true, err.Error()
			span.Attributes = span.Attributes.With("error.type", errorType(err))
		}
		if c.Pod.dropSpan == nil || !c.Pod.dropSpan() {
			c.Pod.world.Rec.Span(span)
		}
	}
	// A process that is killed leaves no span: nobody is there to end it.
	defer func() {
		if done {
			end()
		}
	}()
	err = fn(&inner, s)
	done = true
	return err
}

func errorType(err error) string {
	switch {
	case errors.Is(err, ErrTimeout):
		return "timeout"
	case errors.Is(err, ErrRefused):
		return "connection_refused"
	case errors.Is(err, ErrReset):
		return "connection_reset"
	}
	var status StatusError
	if errors.As(err, &status) {
		return fmt.Sprint(int(status))
	}
	return "error"
}

// StatusError is an HTTP status that says no.
type StatusError int

// Error names the status.
func (e StatusError) Error() string { return fmt.Sprintf("HTTP status %d", int(e)) }

// Logf writes a log record of the pod, with the ids that its logger knows.
func (c *Ctx) Logf(severity telemetry.Severity, format string, args ...any) {
	l := telemetry.Log{Source: c.Pod.Source, Time: c.P.Now(), Severity: severity, Body: fmt.Sprintf(format, args...)}
	if !c.Pod.NoLogContext && !c.Pod.Untraced {
		l.Trace, l.Span = c.Trace, c.Span
	}
	if c.RequestID != "" && !c.Pod.NoLogContext {
		l.Attributes = telemetry.Attributes(nil).With("request.id", c.RequestID)
	}
	c.Pod.world.Rec.Log(l)
}

// Logf writes a log record of the pod that belongs to no request.
func (p *Pod) Logf(severity telemetry.Severity, format string, args ...any) {
	p.world.Rec.Log(telemetry.Log{Source: p.Source, Time: p.world.Sim.Now(), Severity: severity, Body: fmt.Sprintf(format, args...)})
}

// Log writes a log record of the pod with attributes, as name, value, name, value.
func (p *Pod) Log(severity telemetry.Severity, body string, pairs ...any) {
	p.world.Rec.Log(telemetry.Log{
		Source: p.Source, Time: p.world.Sim.Now(), Severity: severity, Body: body, Attributes: telemetry.Attributes(nil).With(pairs...),
	})
}

// Compute uses the pod's processor for so many core-seconds.
func (c *Ctx) Compute(work time.Duration) { c.Pod.CPU.Run(c.P, work) }

// Handler serves requests of one kind. What it returns as an error is the answer.
type Handler func(*Ctx, *SpanOf) error

// Serve runs a handler in the pod for a request that has arrived there: it waits
// for a worker, and runs under a server span that joins the caller's trace.
func (p *Pod) Serve(c *Ctx, route string, h Handler) error {
	if p.down {
		return ErrRefused
	}
	in := *c
	in.Pod = p
	if p.Untraced {
		// It passes nothing on: what it calls begins anew.
		in.Trace, in.Span = telemetry.TraceID{}, telemetry.SpanID{}
	}
	p.serial++
	p.procs[c.P] = p.serial
	defer delete(p.procs, c.P)
	p.allocate()
	return in.In(route, telemetry.Server, func(c *Ctx, s *SpanOf) error {
		s.Set("http.request.method", "POST", "http.route", route)
		if !p.Workers.Acquire(c.P, c.Left()) {
			s.Set("http.response.status_code", 503)
			return StatusError(503)
		}
		defer p.Workers.Release()
		err := h(c, s)
		s.Set("http.response.status_code", statusOf(err))
		return err
	})
}

func statusOf(err error) int {
	var status StatusError
	switch {
	case err == nil:
		return 200
	case errors.As(err, &status):
		return int(status)
	case errors.Is(err, ErrTimeout):
		return 504
	}
	return 502
}

// Access writes the line of an access log, with its fields.
func (p *Pod) Access(c *Ctx, route string, status int, d time.Duration) {
	l := telemetry.Log{
		Source: p.Source, Time: c.P.Now(), Severity: telemetry.Info, Trace: c.Trace, Span: c.Span,
		Body: fmt.Sprintf(`"POST %s HTTP/1.1" %d %dms`, route, status, d.Milliseconds()),
		Attributes: telemetry.Attributes(nil).With("http.request.method", "POST", "http.route", route,
			"http.response.status_code", status, "duration_ms", float64(d.Microseconds())/1000, "request.id", c.RequestID),
	}
	p.world.Rec.Log(l)
}

// Counter has the pod tell of a counter, which begins at nought.
func (p *Pod) Counter(name string) *telemetry.Series {
	if p.counters == nil {
		p.counters = map[string]*telemetry.Series{}
	}
	if p.counters[name] == nil {
		p.counters[name] = p.Meter.Counter(name, "1")
	}
	return p.counters[name]
}

// Count raises a counter of the pod by one.
func (p *Pod) Count(name string) { p.Counter(name).Add(1) }
