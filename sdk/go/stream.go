package inquest

import (
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/trace"
)

// Outcome is how a stream ended.
type Outcome string

// The outcomes of a stream.
const (
	OutcomeCompleted Outcome = "completed" // to its end
	OutcomePartial   Outcome = "partial"   // closed early, or ended without its end mark
	OutcomeCancelled Outcome = "cancelled" // its context has ended
	OutcomeError     Outcome = "error"
)

// Chunk is what one chunk of a stream says. What is not known stays zero.
type Chunk struct {
	Bytes        int
	Characters   int
	Tokens       int  // tokens in this chunk, where it lists them
	ServerTokens int  // the server's own count for the whole answer so far
	Last         bool // the protocol's end mark
}

// StreamOptions of a [Stream]. All may be left out.
type StreamOptions struct {
	// Name of the span. Default "stream".
	Name string
	// Detail is how many chunks have a span event of their own; later events cover
	// twice as many chunks each, so that their number stays below a span's limit
	// and their counts add up to the whole. Default 16.
	Detail int
	// LogChunks writes a log record for each chunk, with trace, span and request id.
	LogChunks bool
	// WantEnd says that the protocol has an end mark: a stream without one is partial.
	WantEnd bool
	// Tracer and Logs. Default: otel's global tracer, and no logs.
	Tracer trace.TracerProvider
	Logs   log.LoggerProvider
}

// firstGroup is how many chunks the first event after Detail covers.
const firstGroup = 2

// Stream records one stream of chunks as a span:
//
//	stream.outcome, stream.end_reason           how it ended
//	stream.chunks, stream.bytes, stream.characters
//	stream.time_to_first_chunk_ms
//	stream.gap_ms.p50, .p95, .max               between chunks; quantiles within 1 %
//	stream.tokens.client                        sum over the chunks
//	stream.tokens.server                        the server's own count
//	stream.tokens.mismatch                      server − client, where both are known
//
// It ends by [Stream.End], [Stream.Close], or when its context does. It is safe
// for concurrent use.
type Stream struct {
	ctx    context.Context
	opts   StreamOptions
	span   trace.Span
	logger log.Logger
	begin  time.Time
	unhook func() bool

	mu      sync.Mutex
	ended   bool
	outcome Outcome
	total   Chunk
	chunks  int
	told    bool // a chunk listed its tokens
	first   time.Duration
	last    time.Time
	gaps    gaps
	group   chunkGroup
}

// chunkGroup is the chunks that the next span event covers.
type chunkGroup struct {
	Chunk
	chunks, want int
}

// NewStream begins the record of a stream.
func NewStream(ctx context.Context, opts StreamOptions) *Stream {
	if opts.Name == "" {
		opts.Name = "stream"
	}
	if opts.Detail <= 0 {
		opts.Detail = 16
	}
	if opts.Tracer == nil {
		opts.Tracer = otel.GetTracerProvider()
	}
	s := &Stream{opts: opts, begin: time.Now()}
	s.ctx, s.span = opts.Tracer.Tracer(scopeName).Start(ctx, opts.Name)
	if opts.Logs != nil {
		s.logger = opts.Logs.Logger(scopeName)
	}
	s.group.want = 1
	s.unhook = context.AfterFunc(ctx, func() { s.finish(OutcomeCancelled, "the context ended: "+context.Cause(ctx).Error(), nil) })
	return s
}

// Context returns the context with the stream's span, for what serves the stream.
func (s *Stream) Context() context.Context { return s.ctx }

// Chunk records one chunk. After the end it does nothing.
func (s *Stream) Chunk(c Chunk) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	now := time.Now()
	if s.chunks == 0 {
		s.first = now.Sub(s.begin)
	} else {
		s.gaps.add(now.Sub(s.last))
	}
	s.last = now
	s.chunks++
	s.told = s.told || c.Tokens > 0
	add(&s.total, c)
	add(&s.group.Chunk, c)
	s.group.chunks++
	if s.group.chunks >= s.group.want {
		s.flush()
	}
	if s.opts.LogChunks && s.logger != nil {
		s.log(c, now)
	}
}

func add(sum *Chunk, c Chunk) {
	sum.Bytes += c.Bytes
	sum.Characters += c.Characters
	sum.Tokens += c.Tokens
	sum.ServerTokens = max(sum.ServerTokens, c.ServerTokens)
	sum.Last = sum.Last || c.Last
}

// flush writes the span event of the group.
func (s *Stream) flush() {
	if s.group.chunks == 0 {
		return
	}
	name := "stream.chunk"
	if s.chunks > s.opts.Detail {
		name = "stream.chunks"
	}
	s.span.AddEvent(name, trace.WithAttributes(
		attribute.Int("stream.index", s.chunks-s.group.chunks),
		attribute.Int("stream.chunks", s.group.chunks),
		attribute.Int("stream.bytes", s.group.Bytes),
		attribute.Int("stream.characters", s.group.Characters),
		attribute.Int("stream.tokens", s.group.Tokens),
		attribute.Float64("stream.since_start_ms", ms(s.last.Sub(s.begin))),
		attribute.String(KeyRequestID, RequestID(s.ctx)),
	))
	want := 1
	if s.chunks >= s.opts.Detail {
		want = max(firstGroup, 2*s.group.want)
	}
	s.group = chunkGroup{want: want}
}

func (s *Stream) log(c Chunk, now time.Time) {
	var r log.Record
	r.SetEventName("stream.chunk")
	r.SetTimestamp(now)
	r.SetSeverity(log.SeverityDebug)
	r.SetBody(attribute.StringValue("chunk of " + s.opts.Name))
	r.AddAttributes(
		attribute.Int("stream.index", s.chunks-1),
		attribute.Int("stream.bytes", c.Bytes),
		attribute.Int("stream.characters", c.Characters),
		attribute.Int("stream.tokens", c.Tokens),
		attribute.String(KeyRequestID, RequestID(s.ctx)),
	)
	s.logger.Emit(s.ctx, r)
}

// End ends the record: with nil or io.EOF as completed, with the error of a
// cancelled context as cancelled, with io.ErrUnexpectedEOF as partial, and with
// any other error as such. Only the first end counts.
func (s *Stream) End(err error) {
	switch {
	case err == nil || err == io.EOF: //nolint:errorlint // a wrapped end is an error
		s.mu.Lock()
		cut := s.opts.WantEnd && !s.total.Last
		s.mu.Unlock()
		if cut {
			s.finish(OutcomePartial, "ended without the end mark", nil)
			return
		}
		s.finish(OutcomeCompleted, "end", nil)
	case errors.Is(err, context.Canceled) || s.ctx.Err() != nil:
		s.finish(OutcomeCancelled, err.Error(), nil)
	case errors.Is(err, io.ErrUnexpectedEOF):
		s.finish(OutcomePartial, err.Error(), nil)
	default:
		s.finish(OutcomeError, err.Error(), err)
	}
}

// Close ends a stream that its consumer does not read to the end.
func (s *Stream) Close() {
	s.mu.Lock()
	whole := s.opts.WantEnd && s.total.Last
	s.mu.Unlock()
	switch {
	case whole:
		s.finish(OutcomeCompleted, "closed after the end mark", nil)
	case s.ctx.Err() != nil:
		s.finish(OutcomeCancelled, "closed after its context had ended", nil)
	default:
		s.finish(OutcomePartial, "closed early", nil)
	}
}

// Outcome returns how the stream ended, or "" while it has not.
func (s *Stream) Outcome() Outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.outcome
}

func (s *Stream) finish(o Outcome, reason string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	s.ended, s.outcome = true, o
	s.unhook()
	s.flush()
	s.span.SetAttributes(
		attribute.String("stream.outcome", string(o)),
		attribute.String("stream.end_reason", reason),
		attribute.Int("stream.chunks", s.chunks),
		attribute.Int("stream.bytes", s.total.Bytes),
		attribute.Int("stream.characters", s.total.Characters),
	)
	if s.chunks > 0 {
		s.span.SetAttributes(attribute.Float64("stream.time_to_first_chunk_ms", ms(s.first)))
	}
	if s.chunks > 1 {
		s.span.SetAttributes(
			attribute.Float64("stream.gap_ms.p50", s.gaps.quantile(0.5)),
			attribute.Float64("stream.gap_ms.p95", s.gaps.quantile(0.95)),
			attribute.Float64("stream.gap_ms.max", ms(s.gaps.max)),
		)
	}
	s.tokens()
	if err != nil {
		s.span.RecordError(err)
	}
	if o == OutcomeError {
		s.span.SetStatus(codes.Error, reason)
	}
	s.span.End()
}

// tokens compares what the chunks listed with what the server counted.
func (s *Stream) tokens() {
	if s.told {
		s.span.SetAttributes(attribute.Int("stream.tokens.client", s.total.Tokens))
	}
	if s.total.ServerTokens > 0 {
		s.span.SetAttributes(attribute.Int("stream.tokens.server", s.total.ServerTokens))
	}
	if s.told && s.total.ServerTokens > 0 {
		s.span.SetAttributes(attribute.Int("stream.tokens.mismatch", s.total.ServerTokens-s.total.Tokens))
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// gaps is a histogram of times with buckets of 2 %, so that a stream of any
// length takes little memory.
type gaps struct {
	buckets map[int]int
	n       int
	max     time.Duration
}

const gapBase = 1.02

func (g *gaps) add(d time.Duration) {
	if g.buckets == nil {
		g.buckets = map[int]int{}
	}
	g.buckets[int(math.Floor(math.Log(max(1, float64(d)))/math.Log(gapBase)))]++
	g.n++
	g.max = max(g.max, d)
}

// quantile returns the middle of the bucket that holds the quantile, in
// milliseconds.
func (g *gaps) quantile(q float64) float64 {
	keys := make([]int, 0, len(g.buckets))
	for k := range g.buckets {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	rank, seen := int(math.Ceil(q*float64(g.n))), 0
	for _, k := range keys {
		if seen += g.buckets[k]; seen >= rank {
			return min(ms(time.Duration(math.Pow(gapBase, float64(k)+0.5))), ms(g.max))
		}
	}
	return ms(g.max)
}

// Text is the chunk of a piece of text.
func Text(b []byte) Chunk { return Chunk{Bytes: len(b), Characters: utf8.RuneCount(b)} }
