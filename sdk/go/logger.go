package inquest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/trace"

	"inquest.dev/sdk/go/spool"
)

// ErrIncomplete is returned for an event that is written, but lacks something
// that the recorder demands: it will be a dead letter there unless the recorder
// can bind it. The error says what is missing and where to give it.
var ErrIncomplete = errors.New("the event is incomplete")

// scopeName is the instrumentation scope of what this package emits.
const scopeName = "inquest.dev/sdk/go"

// Config of a [Logger]. Service and one of Spool and Logs are required.
type Config struct {
	// Service is the service's name, as in the resource attribute service.name.
	Service string
	// Spool makes events durable. Open it with [Resource] as its resource.
	Spool *spool.Writer
	// Logs takes events over OpenTelemetry: all of them when there is no spool, and
	// otherwise those that the spool could not take.
	Logs log.LoggerProvider
	// System returns the state of the device. It is called for each event and
	// should return what was sampled lately. Default: a CPU.
	System func() System
	// CaptureInput writes the raw input into the ingress event. It may hold
	// personal data, so it is off by default; the hash is always there.
	CaptureInput bool
	// Tracer starts a span for an event outside of any. Default: otel's global one.
	Tracer trace.TracerProvider
	// OnEvent sees each event before it is written and may change it, for instance
	// to redact. It is called by the goroutine that logs.
	OnEvent func(context.Context, *Event)
}

// Counters count what a logger has done.
type Counters struct {
	Durable    uint64 // events that the spool holds
	Emitted    uint64 // events handed to OpenTelemetry
	Incomplete uint64 // of both: events that lack something required
	Failed     uint64 // events that the spool could not take
}

// Logger writes AI events. It is safe for concurrent use.
type Logger struct {
	cfg    Config
	logs   log.Logger
	tracer trace.Tracer

	durable, emitted, incomplete, failed atomic.Uint64
}

// NewLogger returns a logger for cfg.
func NewLogger(cfg Config) (*Logger, error) {
	if cfg.Service == "" {
		return nil, errors.New("cannot make an event logger: Config.Service is empty")
	}
	if cfg.Spool == nil && cfg.Logs == nil {
		return nil, errors.New("cannot make an event logger: want Config.Spool or Config.Logs")
	}
	if cfg.System == nil {
		cfg.System = func() System { return System{Device: "cpu"} }
	}
	if cfg.Tracer == nil {
		cfg.Tracer = otel.GetTracerProvider()
	}
	l := &Logger{cfg: cfg, tracer: cfg.Tracer.Tracer(scopeName)}
	if cfg.Logs != nil {
		l.logs = cfg.Logs.Logger(scopeName)
	}
	return l, nil
}

// Ingress logs the arrival of a request. See [Logger.Log].
func (l *Logger) Ingress(ctx context.Context, n Ingress) error { return l.Log(ctx, &n) }

// Preprocess logs the preparation of the input. See [Logger.Log].
func (l *Logger) Preprocess(ctx context.Context, n Preprocess) error { return l.Log(ctx, &n) }

// Feature logs the making of features. See [Logger.Log].
func (l *Logger) Feature(ctx context.Context, n Feature) error { return l.Log(ctx, &n) }

// ModelLoad logs the loading of a model. It belongs to no request: without one in
// ctx it gets a request id of its own, and its input is the configured path. See
// [Logger.Log].
func (l *Logger) ModelLoad(ctx context.Context, n ModelLoad) error { return l.Log(ctx, &n) }

// Inference logs a run of the model. See [Logger.Log].
func (l *Logger) Inference(ctx context.Context, n Inference) error { return l.Log(ctx, &n) }

// Postprocess logs the making of the answer. See [Logger.Log].
func (l *Logger) Postprocess(ctx context.Context, n Postprocess) error { return l.Log(ctx, &n) }

// Egress logs the answer's departure. See [Logger.Log].
func (l *Logger) Egress(ctx context.Context, n Egress) error { return l.Log(ctx, &n) }

// Decision logs that another way was taken than the usual one. See [Logger.Log].
func (l *Logger) Decision(ctx context.Context, n Decision) error { return l.Log(ctx, &n) }

// Log writes one event. With a spool it returns nil only when the event is
// durable. An [ErrIncomplete] is returned when it is written but lacks something.
// Any other error is the spool's; the event then went to Config.Logs, if there is
// one, which promises nothing. The logger never panics and never blocks for a
// server.
//
// Trace and span id are those of the span in ctx; without one, of a span that is
// started for the event. Request id, user and kind of business are those of the
// request in ctx.
func (l *Logger) Log(ctx context.Context, n Node) error {
	ctx, end := l.withSpan(ctx, n)
	defer end()
	e := l.template(ctx, n)
	if l.cfg.OnEvent != nil {
		l.cfg.OnEvent(ctx, e)
	}
	missing := e.missing()
	text, problem := e.encode()
	if text == nil {
		l.failed.Add(1)
		return problem
	}
	if problem != nil {
		missing = errors.Join(missing, fmt.Errorf("%w: %w", ErrIncomplete, problem))
	}
	if missing != nil {
		l.incomplete.Add(1)
	}
	return errors.Join(l.write(ctx, e, text), missing)
}

// Counters returns the counters so far.
func (l *Logger) Counters() Counters {
	return Counters{l.durable.Load(), l.emitted.Load(), l.incomplete.Load(), l.failed.Load()}
}

// withSpan sees to a span in ctx.
func (l *Logger) withSpan(ctx context.Context, n Node) (context.Context, func()) {
	if trace.SpanContextFromContext(ctx).IsValid() {
		return ctx, func() {}
	}
	if _, ok := n.(*ModelLoad); ok && RequestID(ctx) == "" {
		ctx = WithRequest(ctx, Request{})
	}
	var e Event
	n.fill(&e)
	ctx, span := l.tracer.Start(ctx, "inquest "+e.Event)
	return ctx, func() { span.End() }
}

// template makes the event that n stands in.
func (l *Logger) template(ctx context.Context, n Node) *Event {
	c := n.common()
	e := &Event{
		SchemaVersion: schemaVersion,
		Timestamp:     c.Time,
		Level:         LevelInfo,
		Service:       l.cfg.Service,
		Message:       c.Message,
		System:        l.cfg.System().complete(),
		Extra:         c.Extra,
	}
	if y := e.Timestamp.Year(); y < 1970 || y > 2261 { // what OTLP's nanoseconds can say
		e.oddTime = !e.Timestamp.IsZero()
		e.Timestamp = time.Now()
	}
	e.Timestamp = e.Timestamp.UTC()
	if s := trace.SpanContextFromContext(ctx); s.IsValid() {
		e.TraceID, e.SpanID = s.TraceID().String(), s.SpanID().String()
	}
	e.Computation.Input, e.Computation.Output = c.Input.complete(), c.Output.complete()
	n.fill(e)
	e.Computation.OpName = c.Op
	if c.Op == "" {
		e.Computation.OpName = e.Event
	}
	if e.Level == LevelInfo && (e.Computation.Input.HasNaN || e.Computation.Output.HasNaN) {
		e.Level = LevelWarn
	}
	if c.Level != "" {
		e.Level = c.Level
	}
	l.bind(ctx, e, n)
	return e
}

// bind writes the request into the event.
func (l *Logger) bind(ctx context.Context, e *Event, n Node) {
	r, ok := RequestOf(ctx)
	load, isLoad := n.(*ModelLoad)
	if !ok && isLoad {
		r.ID = NewRequestID()
	}
	e.RequestID = r.ID
	e.Business = business{BizType: r.BizType, UserID: r.UserID, InputHash: InputHash(ctx)}
	if in, ok := n.(*Ingress); ok {
		e.Business.InputHash = HashInput(in.Raw)
		SetInputHash(ctx, e.Business.InputHash)
		// JSON cannot hold other bytes, and what it made of them would not agree
		// with the hash.
		if l.cfg.CaptureInput && utf8.ValidString(in.Raw) {
			e.Business.Input = &in.Raw
		}
	}
	if isLoad && e.Business.InputHash == "" {
		e.Business.InputHash = HashInput(load.ConfiguredPath)
	}
}

// missing returns what the recorder will miss.
func (e *Event) missing() error {
	var errs []error
	say := func(bad bool, what string) {
		if bad {
			errs = append(errs, fmt.Errorf("%w: %s", ErrIncomplete, what))
		}
	}
	say(e.RequestID == "", "no request id; serve the request with inquesthttp.Handler or inquest.WithRequest")
	say(e.TraceID == "", "no span in the context and no tracer to start one; call setup.Start or set Config.Tracer")
	say(e.Business.InputHash == "", "no hash of the input; log the Ingress first, or call inquest.SetInput, within inquest.WithRequest")
	say(e.ModelLoad != nil && e.ModelLoad.FileSHA256 != "" && !isHash(e.ModelLoad.FileSHA256), "ModelLoad.FileSHA256 is no hash")
	if e.Decision != nil {
		switch e.Decision.Type {
		case DecisionCache, DecisionFallback, DecisionRetry, DecisionDegrade, DecisionSwitch:
		default:
			say(true, fmt.Sprintf("decision type %q; use one of the constants", e.Decision.Type))
		}
	}
	if t := e.Tokenization; t != nil && t.TruncationSide != "left" && t.TruncationSide != "right" && t.TruncationSide != "none" {
		say(true, fmt.Sprintf("truncation side %q; want left, right or none", t.TruncationSide))
	}
	say(e.oddTime, "the time is not between 1970 and 2261, it is replaced by now")
	say(severities[e.Level] == 0, fmt.Sprintf("level %q; use one of the constants", e.Level))
	return errors.Join(errs...)
}

// complete returns the state within the bounds of the schema.
func (s System) complete() System {
	s.GPUMemoryUsedMB = finite(max(0, s.GPUMemoryUsedMB))
	s.GPUUtilPercent = min(100, max(0, s.GPUUtilPercent))
	if s.GPUMemoryUsedMB != s.GPUMemoryUsedMB { // NaN: the sampler does not know
		s.GPUMemoryUsedMB = 0
	}
	if s.GPUUtilPercent != s.GPUUtilPercent {
		s.GPUUtilPercent = 0
	}
	if s.Device == "" {
		s.Device = "cpu"
	}
	return s
}

// write hands the event to the spool, or to OpenTelemetry.
func (l *Logger) write(ctx context.Context, e *Event, text []byte) error {
	var failed error
	if l.cfg.Spool != nil {
		line, err := spoolRecord(e, text, trace.SpanContextFromContext(ctx).TraceFlags())
		if err == nil {
			err = l.cfg.Spool.Append(line)
		}
		if err == nil {
			l.durable.Add(1)
			return nil
		}
		l.failed.Add(1)
		failed = fmt.Errorf("cannot make the event durable: %w", err)
	}
	if l.logs != nil {
		var r log.Record
		r.SetEventName("ai." + e.Event)
		r.SetTimestamp(e.Timestamp)
		r.SetSeverity(severities[e.Level])
		r.SetSeverityText(string(e.Level))
		r.SetBody(attribute.StringValue(string(text)))
		if e.RequestID != "" {
			r.AddAttributes(attribute.String(KeyRequestID, e.RequestID))
		}
		l.logs.Emit(ctx, r)
		l.emitted.Add(1)
	}
	return failed
}
