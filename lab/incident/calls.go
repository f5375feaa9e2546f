package incident

import (
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// embed writes down the call to the embedding service.
func (p *path) embed(q *request, self trace.SpanID, from float64) {
	c := p.span(q.orchestrator, self, "embeddings "+embedModel, trace.SpanKindClient, from, q.embedEnd,
		attribute.String("gen_ai.operation.name", "embeddings"), attribute.String("gen_ai.request.model", embedModel),
		attribute.String("server.address", svcEmbedder), attribute.Int("server.port", 8080),
		attribute.Int("gen_ai.usage.input_tokens", 12+q.passages))
	at, end := from+q.net, q.embedEnd-q.net
	srv := p.span(q.embedder, c.ID, "POST /embed", trace.SpanKindServer, at, end, httpServer("POST", "/embed", 200)...)
	id := srv.ID
	p.span(q.embedder, id, "encode", trace.SpanKindInternal, at+(end-at)*0.12, end-(end-at)*0.05,
		attribute.String("gen_ai.request.model", embedModel))
	p.log(q.embedder, id, end-(end-at)*0.04, stEncoded, fmt.Sprintf("encoded 1 text in %.1f ms", (end-at)*830))
	p.s.spend(q.embedder, at, (end-at)*2.5)
	p.s.metrics.httpServer(q.embedder, "POST", "/embed", 200).observe(end, end-at)
}

// retrieve writes down the search in the vector database and reports whether it
// gave an answer.
func (p *path) retrieve(q *request, self trace.SpanID) bool {
	query := func(from, took float64) {
		c := p.span(q.orchestrator, self, "query documents", trace.SpanKindClient, from, from+took,
			attribute.String("db.system.name", "qdrant"), attribute.String("db.operation.name", "query"),
			attribute.String("db.collection.name", "documents"), attribute.String("server.address", svcVector),
			attribute.Int("server.port", 6334))
		status := "OK"
		if took >= vectorTimeout {
			fail(c, "timeout", "DEADLINE_EXCEEDED")
			status = "DEADLINE_EXCEEDED"
		}
		p.s.metrics.database(q.orchestrator, status).observe(from+took, took)
		p.s.metrics.vector(p.s.sys.vector).observe(from+took, took*0.94)
		p.s.spend(p.s.sys.vector, from, 0.008)
	}
	query(q.embedEnd, q.vector)
	if q.vectorRetry > 0 {
		p.log(q.orchestrator, self, q.embedEnd+q.vector, stRetry, fmt.Sprintf("vector search gave no answer within %.1f s, trying again", vectorTimeout))
		query(q.embedEnd+q.vector, q.vectorRetry)
	}
	if q.vectorFailed() {
		p.log(q.orchestrator, self, q.vectorEnd, stNoPassage, "vector search failed: ResponseHandlingException: timed out",
			attribute.String("exception.type", "ResponseHandlingException"), attribute.String("exception.message", "timed out"))
		return false
	}
	p.log(q.orchestrator, self, q.vectorEnd, stRetrieved, fmt.Sprintf("retrieved %d passages from documents in %.0f ms", q.passages, (q.vector+q.vectorRetry)*1e3))
	return true
}

// generate writes down the call to the model server.
func (p *path) generate(q *request, self trace.SpanID) {
	j, o := q.job, q.orchestrator
	said := q.output
	if j.aborted {
		said = 0
	}
	c := p.span(o, self, "chat "+modelName, trace.SpanKindClient, q.modelStart, q.modelEnd,
		attribute.String("gen_ai.operation.name", "chat"), attribute.String("gen_ai.provider.name", "openai"),
		attribute.String("gen_ai.request.model", modelName), attribute.String("gen_ai.conversation.id", q.conversation),
		attribute.Int("gen_ai.request.max_tokens", 600), attribute.Float64("gen_ai.request.temperature", 0.2),
		attribute.String("server.address", svcModel), attribute.Int("server.port", 8000))
	errorType := ""
	if j.aborted {
		errorType = "APITimeoutError"
		fail(c, errorType, "Request timed out.")
	} else {
		c.Attributes = append(c.Attributes, attribute.String("gen_ai.response.model", modelName),
			attribute.StringSlice("gen_ai.response.finish_reasons", []string{"stop"}),
			attribute.Int("gen_ai.usage.input_tokens", q.prompt), attribute.Int("gen_ai.usage.output_tokens", said))
	}
	p.s.metrics.client(o, errorType).observe(q.modelEnd, q.modelEnd-q.modelStart)
	caller := c.ID
	p.serve(q, caller)
	if j.aborted {
		p.log(o, self, q.modelEnd, stTimeout, fmt.Sprintf("no answer of %s within %.0f s: APITimeoutError: Request timed out.", modelName, modelTimeout),
			attribute.String("exception.type", errorType), attribute.String("exception.message", "Request timed out."))
		return
	}
	p.log(o, self, q.modelEnd, stGenerated, fmt.Sprintf("answer generated: %d tokens finish_reason=stop", said))
	p.log(o, self, q.modelEnd+q.finish*0.8, stCited, fmt.Sprintf("answer cites %d passages", min(3, q.passages)))
	p.s.metrics.tokens(o, "input").observe(q.modelEnd, float64(q.prompt))
	p.s.metrics.tokens(o, "output").observe(q.modelEnd, float64(said))
}

// serve writes down the model server's side. The engine makes its span when a
// request finishes; of an aborted one only the web server's remains.
func (p *path) serve(q *request, caller trace.SpanID) {
	j, m := q.job, q.model
	from, end := q.modelStart+q.net, q.modelEnd-q.net
	status := 200
	if j.aborted {
		status = 499
	}
	srv := p.span(m, caller, "POST /v1/chat/completions", trace.SpanKindServer, from, end, httpServer("POST", "/v1/chat/completions", status)...)
	id := srv.ID
	p.s.spend(m, from, 0.02)
	p.s.metrics.aborts(m, j.aborted).observe(end, 1)
	if j.aborted {
		return
	}
	p.log(m, id, end-q.render*0.2, stAccess, `10.42.7.19:0 - "POST /v1/chat/completions HTTP/1.1" 200 OK`)
	p.span(m, id, "llm_request", trace.SpanKindServer, j.arrive, j.end,
		attribute.String("gen_ai.response.model", modelName), attribute.String("gen_ai.request.id", fmt.Sprintf("chatcmpl-%x", p.trace[:8])),
		attribute.Int("gen_ai.request.max_tokens", 600), attribute.Int("gen_ai.usage.prompt_tokens", q.prompt),
		attribute.Int("gen_ai.usage.completion_tokens", q.output),
		attribute.Float64("gen_ai.latency.time_in_queue", j.scheduled-j.arrive),
		attribute.Float64("gen_ai.latency.time_to_first_token", j.first-j.arrive),
		attribute.Float64("gen_ai.latency.e2e", j.end-j.arrive))
	v := p.s.metrics
	v.engine(m, "vllm:request_queue_time_seconds").observe(j.end, j.scheduled-j.arrive)
	v.engine(m, "vllm:time_to_first_token_seconds").observe(j.first, j.first-j.arrive)
	v.engine(m, "vllm:e2e_request_latency_seconds").observe(j.end, j.end-j.arrive)
	v.engine(m, "vllm:request_time_per_output_token_seconds").observe(j.end, (j.end-j.first)/float64(max(1, q.output-1)))
}
