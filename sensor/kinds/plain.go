package kinds

import (
	"inquest/record"
	"inquest/sensor/attributes"
	"inquest/sensor/flow"
	"inquest/sensor/logs"
	"inquest/sensor/metrics"
	"inquest/sensor/resources"
	"inquest/sensor/segments"
	"inquest/sensor/traces"
)

// What the kinds below need.
const (
	needSpans    = "spans"
	needCalls    = "spans of both ends of a call, in one trace"
	needExternal = "client spans of calls to what sends no telemetry: `db.system`, `peer.service` or `server.address`"
	needLogs     = "log records"
	needJoined   = "log records with the trace id of their request"
	needSegments = "spans with what tells requests apart: version, pod, region, user segment, model"
	needAccess   = "access logs with status and duration"
	needDecision = "log records with `decision.type`, or decision logs that are recognised (docs/binding.md)"
	needChange   = "Kubernetes events, or log records that tell of a rollout, an image, a setting, a flag or a model"
	needVersion  = "`service.version` of what sends them"
	needTokens   = "token counts of client and server"
)

// plain are the kinds of sensors that work by no table.
var plain = []Kind{
	{Name: traces.KindSelfTime, Quadrant: record.QuadrantTraces, Text: "time a request spends in a service's own code, ms", Needs: needSpans},
	{Name: traces.KindGhostTime, Quadrant: record.QuadrantTraces, Text: "time of a span before, between or after its children that none of them explains, ms", Needs: needSpans},
	{Name: traces.KindSpanTime, Quadrant: record.QuadrantTraces, Text: "time of an internal span, its children not counted, ms", Needs: "internal spans"},
	{Name: traces.KindLoadTime, Quadrant: record.QuadrantTraces, Text: "time to load, initialise or warm up a model, ms", Needs: "internal spans named after loading"},
	{Name: traces.KindQueueTime, Quadrant: record.QuadrantTraces, Text: "time of waiting for a turn, a worker or a connection, ms", Needs: "internal spans named after waiting, or `llm.request.queue_time`"},
	{Name: traces.KindConnectTime, Quadrant: record.QuadrantTraces, Ways: true, Text: "time to open a connection: dns, connect or tls, ms", Needs: "spans of connecting, as HTTP clients write them"},
	{Name: traces.KindLatency, Quadrant: record.QuadrantTraces, Text: "whole time of an operation, callees included, ms", Needs: needSpans},
	{Name: traces.KindErrorRate, Quadrant: record.QuadrantTraces, Text: "share of requests that end in error although no call below them did", Needs: "spans with their status"},
	{Name: traces.KindGap, Quadrant: record.QuadrantTraces, Ways: true, Text: "time that a call spends on the way between two services, ms", Needs: needCalls},
	{Name: traces.KindCallCount, Quadrant: record.QuadrantTraces, Ways: true, Text: "number of calls that one request makes to a peer", Needs: needCalls},
	{Name: traces.KindDependencyTime, Quadrant: record.QuadrantTraces, Ways: true, Text: "time of a call to what sends no spans, ms", Needs: needExternal},
	{Name: traces.KindDependencyErrors, Quadrant: record.QuadrantTraces, Ways: true, Text: "share of calls to what sends no spans that fail", Needs: needExternal},
	{Name: traces.KindLostSpans, Quadrant: record.QuadrantTraces, Ways: true, Text: "share of successful calls that left no span at the callee", Needs: needCalls},
	{Name: traces.KindOrphanSpans, Quadrant: record.QuadrantTraces, Text: "share of requests whose parent span was never seen", Needs: needCalls},
	{Name: traces.KindBrokenContext, Quadrant: record.QuadrantTraces, Text: "share of requests that begin a trace of their own, where calls usually come in with one", Needs: needCalls},
	{Name: traces.KindTraffic, Quadrant: record.QuadrantTraces, Text: "number of requests that reach a service", Needs: needSpans},
	{Name: traces.KindPause, Quadrant: record.QuadrantTraces, Text: "how often several requests of one pod stand still together, and for how long, ms", Needs: "spans with their pod"},
	{Name: traces.KindStall, Quadrant: record.QuadrantTraces, Text: "share of successful requests that take many times as long as most of the same operation", Needs: needSpans},
	{Name: traces.KindGatewayTimeout, Quadrant: record.QuadrantTraces, Text: "share of requests that fail because time ran out", Needs: "spans with status and `http.response.status_code` or `error.type`"},
	{Name: traces.KindTokenMismatch, Quadrant: record.QuadrantTraces, Text: "share of calls of a model for which client and server count different tokens", Needs: "`gen_ai.usage` attributes of client and server spans"},
	{Name: traces.KindClockOffset, Quadrant: record.QuadrantTraces, Text: "how far the clock of a node (else pod, else service) is from the middle of all, 0 within its error, ms", Needs: "calls that cross hosts"},
	{Name: flow.KindBrokenSpans, Quadrant: record.QuadrantTraces, Text: "share of requests that leave the usual path of spans and calls, and nothing they called accounts for it", Needs: needSpans},
	{Name: flow.KindCut, Quadrant: record.QuadrantTraces, Text: "share of requests that broke here and lack spans of the services that called", Needs: needCalls},
	{Name: flow.KindLost, Quadrant: record.QuadrantTraces, Ways: true, Text: "share of calls that do not reach the entity, or fail with an error that names it", Needs: needCalls},
	{Name: segments.KindErrors, Quadrant: record.QuadrantTraces, Text: "share of requests of the worst segment that fail", Needs: needSegments},
	{Name: segments.KindLatency, Quadrant: record.QuadrantTraces, Text: "share of requests of the worst segment that are slow", Needs: needSegments},
	{Name: segments.KindQuality, Quadrant: record.QuadrantTraces, Text: "share of requests of the worst segment with poor answers", Needs: needSegments + ", and a measure of quality"},
	{Name: attributes.KindChange, Quadrant: record.QuadrantTraces, Text: "another version carries requests than before", Needs: needVersion},

	{Name: flow.KindBrokenLogs, Quadrant: record.QuadrantLogs, Text: "share of requests that stop reaching statements or log new errors, and nothing they called accounts for it", Needs: needJoined},
	{Name: flow.KindAborts, Quadrant: record.QuadrantLogs, Text: "share of requests that end where they leave the usual path, or report an exception there", Needs: needJoined},
	{Name: flow.KindGoesOn, Quadrant: record.QuadrantLogs, Text: "share of requests that leave the usual path and go on", Needs: needJoined},
	{Name: logs.KindLogRate, Quadrant: record.QuadrantLogs, Text: "how often records of one template come that belong to no request", Needs: needLogs},
	{Name: logs.KindErrorLogs, Quadrant: record.QuadrantLogs, Text: "how often records of severity error or above of one template come that belong to no request", Needs: needLogs + " with their severity"},
	{Name: logs.KindSilence, Quadrant: record.QuadrantLogs, Text: "how long the log stands still, s", Needs: needLogs},
	{Name: logs.KindFirstSeen, Quadrant: record.QuadrantLogs, Text: "templates that the baseline never shows", Needs: needLogs},
	{Name: logs.KindVanished, Quadrant: record.QuadrantLogs, Text: "templates that are missing though the requests came that wrote them", Needs: needJoined},
	{Name: logs.KindChange, Quadrant: record.QuadrantLogs, Text: "something was changed at the entity, in the incident or just before", Needs: needChange},
	{Name: attributes.KindChange, Quadrant: record.QuadrantLogs, Text: "another version writes records than before", Needs: needVersion},
	{Name: logs.KindDecisionRate, Quadrant: record.QuadrantLogs, Text: "share of requests in which a service takes another way: cache, fallback, retry, degrade, switch", Needs: needDecision},
	{Name: logs.KindDecisionMix, Quadrant: record.QuadrantLogs, Text: "which decisions a service takes, why, and what for", Needs: needDecision},
	{Name: logs.KindStall, Quadrant: record.QuadrantLogs, Text: "share of successful answers of an access log that took many times as long as most of the route", Needs: needAccess},
	{Name: logs.KindGatewayTimeout, Quadrant: record.QuadrantLogs, Text: "share of answers of an access log that tell that time ran out", Needs: needAccess},

	{Name: metrics.KindChange, Quadrant: record.QuadrantMetrics, Text: "a version, setting or limit that metrics tell is another", Needs: "metrics whose names end in `info`, of limits, or with a version among their labels"},
	{Name: metrics.KindStalled, Quadrant: record.QuadrantMetrics, Text: "share of points at which requests run and nothing is generated", Needs: "metrics of running requests and of generated tokens"},
	{Name: metrics.KindInversion, Quadrant: record.QuadrantMetrics, Text: "share of intervals in which a client sees a shorter time between tokens than the server that makes them", Needs: "the time between tokens of client and server"},
	{Name: metrics.KindMismatch, Quadrant: record.QuadrantMetrics, Text: "larger of the sums of tokens that clients and servers count, as a share of the smaller", Needs: needTokens},
	{Name: metrics.KindGrowth, Quadrant: record.QuadrantMetrics, Text: "number of series of a service", Needs: "any metric series"},

	{Name: resources.KindGap, Quadrant: record.QuadrantResources, Text: "share of scrapes without an answer, or how long a sender was silent, s", Needs: "a target that is scraped, or metrics sent at a steady pace"},
}
