package decision

import (
	"testing"

	"go.opentelemetry.io/collector/pdata/plog"

	"inquest/record"
)

func TestRecognise(t *testing.T) {
	r := builtinRecogniser(t)
	f := func(body string, want Decision, ok bool, attrs ...string) {
		t.Helper()
		var fields []record.Field
		lr := plog.NewLogRecord()
		lr.Body().SetStr(body)
		for i := 0; i+1 < len(attrs); i += 2 {
			fields = append(fields, record.Field{Name: attrs[i], Value: attrs[i+1]})
			lr.Attributes().PutStr(attrs[i], attrs[i+1])
		}
		if got, is := r.Recognise(body, fields); is != ok || got != want {
			t.Errorf("%q %q: got %+v, %v, want %+v", body, attrs, got, is, want)
		}
		if got, is := r.RecogniseLog(lr); is != ok || got != want {
			t.Errorf("log %q %q: got %+v, %v, want %+v", body, attrs, got, is, want)
		}
	}
	no := Decision{}
	f("lookup", Decision{Type: Cache, Reason: "miss"}, true, "cache.hit", "false")
	f("lookup", Decision{Type: Cache, Reason: "hit"}, true, "cache_status", "HIT")
	f("lookup", Decision{Type: Cache, Reason: "bypass: size 2097152 above limit"}, true, "cache.status", "bypass", "cache.bypass_reason", "size 2097152 above limit")
	f("lookup", no, false, "cache.status", "enabled")
	f("lookup", no, false, "cache.hit", "17")
	f("done", Decision{Type: Retry}, true, "http.request.resend_count", "2")
	f("done", no, false, "http.request.resend_count", "0")
	f("done", no, false, "retry_count", "many")
	f("done", no, false, "retry_count", "NaN")
	f("done", Decision{Type: Fallback, Reason: "timeout", From: "a", To: "b"}, true,
		"decision.type", "fallback", "decision.reason", "timeout", "decision.from", "a", "decision.to", "b")
	f("done", Decision{Type: Switch, To: "b"}, true, "decision_type", "failover", "decision.to", "b")
	f("done", no, false, "decision.type", "approved")
	f("done", no, false, "decision.reason", "timeout")
	f("falling back to CPU", Decision{Type: Fallback, Reason: "no GPU", To: "CPU"}, true, "fallback", "true", "fallback.reason", "no GPU")
	f("falling back to CPU", Decision{Type: Fallback, Reason: "no GPU", To: "CPU"}, true, "fallback.reason", "no GPU")
	f("bypassing cache because too large", Decision{Type: Cache, Reason: "bypass: too large"}, true, "cache.status", "bypass")
	f("缓存未命中", Decision{Type: Degrade}, true, "degraded", "True")
	f("ok", no, false, "fallback", "false", "degraded", "no", "http.route", "/cache", "", "x")

	lr := plog.NewLogRecord()
	lr.Body().SetEmptyMap().PutBool("cache_hit", true)
	if d, ok := r.RecogniseLog(lr); !ok || d.Type != Cache || d.Reason != "hit" {
		t.Errorf("map body: %+v", d)
	}
	lr = plog.NewLogRecord()
	lr.Attributes().PutStr(AttributeReason, "own")
	Decision{Type: Retry, Reason: "r", To: "b"}.Put(lr.Attributes())
	if got := lr.Attributes().AsRaw(); len(got) != 3 || got[AttributeReason] != "own" || got[AttributeType] != "retry" || got[AttributeTo] != "b" {
		t.Errorf("attributes %v", got)
	}
}

func TestSpan(t *testing.T) {
	r := builtinRecogniser(t)
	f := func(name string, want Type) {
		t.Helper()
		if got, ok := r.Span(name); got != want || ok != (want != "") {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
	f("cache.get", Cache)
	f("redis_cache_lookup", Cache)
	f("SemanticCacheLookup", Cache)
	f("embedding-cache", Cache)
	f("查询缓存", Cache)
	f("fallback_to_rules", Fallback)
	f("FallbackChain.invoke", Fallback)
	f("模型兜底", Fallback)
	f("retry", Retry)
	f("RetryRequest 2", Retry)
	f("重试 embedding", Retry)
	f("degrade.decision", Degrade)
	f("降级处理", Degrade)
	f("failover", Switch)
	f("switch_model", Switch)
	f("切换备用模型", Switch)
	f("cache.fallback", Fallback)
	f("Allocate KV cache", "")
	f("init_cache", "")
	f("cache.flush", "")
	f("kv_cache.append", "")
	f("caching", "")
	f("retryable", "")
	f("POST /v1/chat/completions", "")
	f("SELECT orders", "")
	f("network switch", "")
	f("", "")
	f("\xff\xfe cache \xff", Cache)
}

func TestParseType(t *testing.T) {
	f := func(s string, want Type) {
		t.Helper()
		if got, _ := ParseType(s); got != want {
			t.Errorf("%q: got %q, want %q", s, got, want)
		}
	}
	f("Cache", Cache)
	f(" downgrade ", Degrade)
	f("failover", Switch)
	f("兜底", Fallback)
	f("accept", "")
	f("", "")
}
