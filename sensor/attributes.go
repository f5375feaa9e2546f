package sensor

import "strings"

// Attributes names the span and log attributes that sensors read, by their
// canonical names; an entry that ends in * stands for all that begin so. A source
// may leave out all others. Lists come as JSON.
//
// Members of AI events (see schema/ai-event.schema.json) are stored with the
// prefix "ai."; both forms are among them.
var Attributes = append(prefixed(EventPrefix,
	"business.biz_type", "system.model_version", "system.device",
	"tokenization.length", "tokenization.truncated", "tokenization.max_length",
	"features.unseen", "features.out_of_range", "features.deviations.*",
	"model_load.configured_version", "model_load.real_path", "model_load.file_sha256",
	"model_load.device", "model_load.fallback",
	"computation.input_stats.has_nan", "computation.input_stats.min_val",
	"computation.input_stats.max_val", "computation.input_stats.mean_val",
	"computation.output_stats.has_nan", "computation.output_stats.min_val",
	"computation.output_stats.max_val", "computation.output_stats.mean_val",
	"decision.type", "decision.from", "decision.to", "decision.reason",
),
	"decision_type",
	"peer.service", "server.address", "db.system", "db.system.name", "db.namespace",
	"messaging.system", "rpc.system",
	"http.response.status_code", "http.status_code", "error.type", "exception.type",
	"http.route", "url.path", "http.target",
	"http.server.request.duration", "duration_ms", "duration", "request_time", "response_time_ms", "latency_ms", "elapsed_ms",
	"k8s.event.reason", "k8s.object.kind", "k8s.object.name",
	"http.request.resend_count", "http.request.body.size", "http.request.size",
	"http.request_content_length", "messaging.message.body.size", "input.size",
	"gen_ai.request.model", "gen_ai.response.model", "model_version", "model.version",
	"gen_ai.request.temperature", "gen_ai.request.top_p", "gen_ai.request.top_k",
	"gen_ai.request.max_tokens", "gen_ai.request.frequency_penalty",
	"gen_ai.request.presence_penalty", "gen_ai.request.stream",
	"gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens",
	"gen_ai.usage.cache_read.input_tokens", "gen_ai.response.finish_reasons",
	"llm.request.queue_time", "llm.output.entropy", "llm.output.repetition",
	"batch.size", "llm.batch.size", "cache.hit", "lora.adapter", "moe.top_share",
	"model.confidence", "guardrail.refused",
	"user.segment", "cloud.region",
	"code.function", "code.function.name", "code.lineno", "code.line.number", "code.namespace",
)

// EventPrefix begins the names of an AI event's members where they are stored as
// attributes.
const EventPrefix = "ai."

func prefixed(prefix string, names ...string) []string {
	out := make([]string, 0, 2*len(names))
	for _, n := range names {
		out = append(out, n, prefix+n)
	}
	return out
}

// wanted are the names of [Attributes], wantedBegin the beginnings of those that
// end in *.
var wanted, wantedBegin = index(Attributes)

func index(names []string) (map[string]bool, []string) {
	exact, begin := make(map[string]bool, len(names)), []string(nil)
	for _, n := range names {
		if b, ok := strings.CutSuffix(n, "*"); ok {
			begin = append(begin, b)
		} else {
			exact[n] = true
		}
	}
	return exact, begin
}

// Wanted reports whether sensors read the attribute.
func Wanted(name string) bool {
	if wanted[name] {
		return true
	}
	for _, b := range wantedBegin {
		if strings.HasPrefix(name, b) {
			return true
		}
	}
	return false
}

// Attribute returns an attribute by its canonical name, of a span or log record or
// of the AI event that the log record is.
func Attribute(attrs map[string]string, name string) string {
	if len(attrs) == 0 {
		return ""
	}
	if v := attrs[name]; v != "" {
		return v
	}
	return attrs[EventPrefix+name]
}
