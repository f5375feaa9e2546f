package incident

import (
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/trace"
)

// statement is a place in the code that logs.
type statement struct {
	file, function string
	line           int
	severity       log.Severity
}

var (
	stAccepted  = statement{"gateway/handler.go", "gateway.(*Handler).Chat", 88, log.SeverityInfo}
	stAnswered  = statement{"gateway/handler.go", "gateway.(*Handler).Chat", 131, log.SeverityInfo}
	stUpstream  = statement{"gateway/handler.go", "gateway.(*Handler).Chat", 119, log.SeverityError}
	stAsk       = statement{"rag/answer.py", "answer", 52, log.SeverityInfo}
	stEmbedded  = statement{"rag/answer.py", "answer", 61, log.SeverityInfo}
	stRetry     = statement{"rag/retrieve.py", "search", 44, log.SeverityWarn}
	stRetrieved = statement{"rag/retrieve.py", "search", 57, log.SeverityInfo}
	stNoPassage = statement{"rag/retrieve.py", "search", 51, log.SeverityError}
	stReranked  = statement{"rag/rerank.py", "rerank", 38, log.SeverityInfo}
	stPrompt    = statement{"rag/prompt.py", "build", 73, log.SeverityInfo}
	stTimeout   = statement{"rag/answer.py", "generate", 104, log.SeverityError}
	stGenerated = statement{"rag/answer.py", "generate", 110, log.SeverityInfo}
	stCited     = statement{"rag/cite.py", "cite", 29, log.SeverityInfo}
	stUnhandled = statement{"rag/app.py", "handle_exception", 17, log.SeverityError}
	stEncoded   = statement{"embedder/server.py", "embed", 41, log.SeverityInfo}
	stAccess    = statement{"uvicorn/protocols/http/httptools_impl.py", "send", 484, log.SeverityInfo}
	stStats     = statement{"vllm/v1/metrics/loggers.py", "log", 248, log.SeverityInfo}
)

// path builds the spans and log records of one trace.
type path struct {
	s     *simulation
	ids   ids
	trace trace.TraceID
}

func (s *simulation) newPath(stream, index uint64) *path {
	p := &path{s: s, ids: ids{s.rng(stream, index)}}
	p.ids.fill(p.trace[:])
	return p
}

func (p *path) id() (id trace.SpanID) {
	p.ids.fill(id[:])
	return id
}

func (p *path) span(at *Pod, parent trace.SpanID, name string, kind trace.SpanKind, from, to float64, attrs ...attribute.KeyValue) *Span {
	p.s.spans = append(p.s.spans, Span{
		Pod: at, Name: name, Kind: kind, TraceID: p.trace, ID: p.id(), Parent: parent,
		Start: p.s.at(from), End: p.s.at(to), Attributes: attrs,
	})
	return &p.s.spans[len(p.s.spans)-1]
}

func (p *path) log(at *Pod, span trace.SpanID, t float64, st statement, body string, attrs ...attribute.KeyValue) {
	p.s.write(at, p.trace, span, t, st, body, attrs...)
}

func (s *simulation) write(at *Pod, id trace.TraceID, span trace.SpanID, t float64, st statement, body string, attrs ...attribute.KeyValue) {
	attrs = append(attrs,
		attribute.String("code.file.path", st.file), attribute.String("code.function.name", st.function), attribute.Int("code.line.number", st.line))
	s.logs = append(s.logs, Log{
		Pod: at, Time: s.at(t), Severity: st.severity, Body: body, TraceID: id, SpanID: span, Attributes: attrs,
	})
}

func httpServer(method, route string, status int) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("http.request.method", method), attribute.String("http.route", route),
		attribute.String("url.scheme", "http"), attribute.Int("http.response.status_code", status),
	}
}

func httpClient(method, host string, port, status int) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("http.request.method", method), attribute.String("server.address", host),
		attribute.Int("server.port", port), attribute.Int("http.response.status_code", status),
	}
}

// fail marks a span of server or client.
func fail(s *Span, errorType, text string) {
	s.Error = text
	s.Attributes = append(s.Attributes, attribute.String("error.type", errorType))
}

// trace writes down what a question did at the gateway and below.
func (s *simulation) trace(q *request) {
	p := s.newPath(streamIDs, q.index)
	q.status = 200
	switch {
	case q.vectorFailed():
		q.status = 503
	case q.fails:
		q.status = 500
	case q.timedOut():
		q.status = 504
	}
	call := q.arrive + q.gatewayPre + q.limiter
	end := p.orchestrate(q, call+q.net, func(orchestratorEnd float64) trace.SpanID {
		done := orchestratorEnd + q.net
		root := p.span(q.gateway, trace.SpanID{}, "POST /v1/chat", trace.SpanKindServer, q.arrive, done+q.gatewayPost,
			append(httpServer("POST", "/v1/chat", q.status), attribute.String("user_agent.original", "chat-web/5.2"))...)
		rootID := root.ID
		if q.status >= 500 {
			fail(root, fmt.Sprint(q.status), "")
		}
		p.span(q.gateway, rootID, "EVALSHA", trace.SpanKindClient, q.arrive+q.gatewayPre, call,
			attribute.String("db.system.name", "redis"), attribute.String("db.operation.name", "EVALSHA"),
			attribute.String("server.address", "redis-ratelimit"), attribute.Int("server.port", 6379))
		c := p.span(q.gateway, rootID, "POST", trace.SpanKindClient, call, done, httpClient("POST", svcOrchestrator, 8080, q.status)...)
		if q.status >= 400 {
			fail(c, fmt.Sprint(q.status), "")
		}
		p.log(q.gateway, rootID, q.arrive+q.gatewayPre*0.7, stAccepted, fmt.Sprintf("chat request accepted tenant=%s conversation=%s", q.tenant, q.conversation))
		if q.status >= 500 {
			p.log(q.gateway, rootID, done+q.gatewayPost*0.3, stUpstream,
				fmt.Sprintf("upstream %s answered %d after %.0f ms", svcOrchestrator, q.status, (done-call)*1e3))
		}
		p.log(q.gateway, rootID, done+q.gatewayPost*0.6, stAnswered,
			fmt.Sprintf("chat request finished status=%d duration_ms=%.0f", q.status, (done+q.gatewayPost-q.arrive)*1e3))
		return c.ID
	})
	total := end + q.net + q.gatewayPost - q.arrive
	s.spend(q.gateway, q.arrive, q.gatewayPre+q.gatewayPost)
	s.metrics.httpServer(q.gateway, "POST", "/v1/chat", q.status).observe(q.arrive+total, total)
	s.metrics.httpServer(q.orchestrator, "POST", "/answer", q.status).observe(end, end-call-q.net)
}

// orchestrate writes down the work of the orchestrator; above makes the caller's
// spans once the end is known and returns the one that called. It returns the end.
func (p *path) orchestrate(q *request, start float64, above func(end float64) trace.SpanID) float64 {
	o := q.orchestrator
	end := p.outcome(q)
	caller := above(end)
	span := p.span(o, caller, "POST /answer", trace.SpanKindServer, start, end, httpServer("POST", "/answer", q.status)...)
	self := span.ID
	if q.status >= 500 {
		fail(span, p.errorType(q), "")
	}
	p.log(o, self, start+q.orchestratorPre*0.4, stAsk, "answering question conversation="+q.conversation)
	p.s.spend(o, start, q.orchestratorPre)
	p.embed(q, self, start+q.orchestratorPre)
	p.log(o, self, q.embedEnd, stEmbedded, "question embedded, dimension 1024")
	if !p.retrieve(q, self) {
		return end
	}
	rerankEnd := q.vectorEnd + q.rerank
	if q.fails {
		rerankEnd = q.vectorEnd + q.rerank*0.4
	}
	p.s.spend(o, q.vectorEnd, rerankEnd-q.vectorEnd)
	r := p.span(o, self, "rerank", trace.SpanKindInternal, q.vectorEnd, rerankEnd, attribute.Int("rag.passages", q.passages))
	if q.fails {
		fail(r, "KeyError", "KeyError: 'published_at'")
		r.Exception = &Exception{"KeyError", "'published_at'", keyErrorStack}
		p.log(o, self, end-q.finish*0.1, stUnhandled, "unhandled exception in POST /answer: KeyError: 'published_at'",
			attribute.String("exception.type", "KeyError"), attribute.String("exception.message", "'published_at'"), attribute.String("exception.stacktrace", keyErrorStack))
		return end
	}
	p.log(o, self, rerankEnd, stReranked, fmt.Sprintf("reranked %d passages, kept %d", q.passages, min(4, q.passages)))
	p.log(o, self, rerankEnd+q.build*0.9, stPrompt, fmt.Sprintf("prompt built: %d tokens from %d passages", q.prompt, min(4, q.passages)))
	p.s.spend(o, rerankEnd, q.build+q.finish)
	p.generate(q, self)
	return end
}

const keyErrorStack = `Traceback (most recent call last):
  File "/app/rag/app.py", line 63, in answer_route
    return answer(question, conversation)
  File "/app/rag/answer.py", line 68, in answer
    kept = rerank(question, passages)
  File "/app/rag/rerank.py", line 31, in rerank
    age = now - passage.payload["published_at"]
KeyError: 'published_at'`

// outcome is when the orchestrator answers.
func (p *path) outcome(q *request) float64 {
	switch {
	case q.vectorFailed():
		return q.vectorEnd + q.finish*0.2
	case q.fails:
		return q.vectorEnd + q.rerank*0.4 + q.finish*0.2
	case q.timedOut():
		return q.modelEnd + q.finish*0.2
	default:
		return q.modelEnd + q.finish
	}
}

func (p *path) errorType(q *request) string {
	switch {
	case q.vectorFailed():
		return "ResponseHandlingException"
	case q.fails:
		return "KeyError"
	default:
		return "APITimeoutError"
	}
}
