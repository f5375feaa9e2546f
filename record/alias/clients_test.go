package alias

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"testing"
)

// attributes are those of one record: what was sent, and what is derived.
type attributes struct{ sent, derived map[string]string }

func (a attributes) Value(name string) string {
	if v, ok := a.sent[name]; ok {
		return v
	}
	return a.derived[name]
}

func (a attributes) Add(name, value string) { a.derived[name] = value }

// TestClients derives from spans that real clients emitted when lab/clients
// last met them: no more and no less than what the file says.
func TestClients(t *testing.T) {
	data, err := os.ReadFile("testdata/clients.json")
	if err != nil {
		t.Fatal(err)
	}
	var spans []struct {
		Client, Span string
		Sent         map[string]json.RawMessage
		Derived      map[string]string
	}
	if err := json.Unmarshal(data, &spans); err != nil {
		t.Fatal(err)
	}
	if len(spans) < 10 {
		t.Fatalf("%d spans", len(spans))
	}
	d := NewDeriver(Default())
	for _, s := range spans {
		a := attributes{map[string]string{}, map[string]string{}}
		d.Reset()
		for _, name := range slices.Sorted(maps.Keys(s.Sent)) {
			var text string
			isText := json.Unmarshal(s.Sent[name], &text) == nil
			if !isText {
				text = string(s.Sent[name])
			}
			a.sent[name] = text
			d.See(name, text, isText)
		}
		d.Derive(a)
		for name, want := range s.Derived {
			if got := a.derived[name]; got != want {
				t.Errorf("%s, %s: %s is %q, want %q", s.Client, s.Span, name, got, want)
			}
		}
		for name, got := range a.derived {
			if _, ok := s.Derived[name]; !ok {
				t.Errorf("%s, %s: %s is derived as %q", s.Client, s.Span, name, got)
			}
		}
	}
}

// TestClientMetrics leads the metrics of a scraped vLLM 0.32.0 to their
// canonical names. Those without one are of that engine alone, or of the Python
// client and of FastAPI's instrumentation.
func TestClientMetrics(t *testing.T) {
	f := func(name string, want ...string) {
		t.Helper()
		var got []string
		for _, target := range Default().Metric(name) {
			got = append(got, target.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s leads to %q, want %q", name, got, want)
		}
	}
	f("vllm:num_requests_running", "llm.engine.requests.running")
	f("vllm:num_requests_waiting", "llm.engine.requests.waiting")
	f("vllm:num_requests_waiting_by_reason", "llm.engine.requests.waiting_by_reason")
	f("vllm:kv_cache_usage_perc", "llm.kv_cache.usage")
	f("vllm:prefix_cache_queries_total", "llm.prefix_cache.queries")
	f("vllm:prefix_cache_hits_total", "llm.prefix_cache.hits")
	f("vllm:external_prefix_cache_queries_total", "llm.external_prefix_cache.queries")
	f("vllm:external_prefix_cache_hits_total", "llm.external_prefix_cache.hits")
	f("vllm:mm_cache_queries_total", "llm.multimodal_cache.queries")
	f("vllm:mm_cache_hits_total", "llm.multimodal_cache.hits")
	f("vllm:num_preemptions_total", "llm.preemptions")
	f("vllm:prompt_tokens_total", "llm.tokens.prompt")
	f("vllm:prompt_tokens_by_source_total", "llm.tokens.prompt.by_source")
	f("vllm:prompt_tokens_cached_total", "llm.tokens.prompt.cached")
	f("vllm:prompt_tokens_cached_by_source_total", "llm.tokens.prompt.cached.by_source")
	f("vllm:generation_tokens_total", "llm.tokens.generation")
	f("vllm:request_success_total", "llm.requests.succeeded", "llm.requests.failed")
	f("vllm:admission_rejections_total", "llm.requests.rejected")
	f("vllm:request_prompt_tokens", "llm.request.prompt_tokens")
	f("vllm:request_generation_tokens", "llm.request.generation_tokens")
	f("vllm:iteration_tokens_total", "llm.iteration.tokens")
	f("vllm:request_params_max_tokens", "llm.request.max_tokens")
	f("vllm:time_to_first_token_seconds", "gen_ai.server.time_to_first_token")
	f("vllm:inter_token_latency_seconds", "llm.inter_token_latency")
	f("vllm:request_time_per_output_token_seconds", "gen_ai.server.time_per_output_token")
	f("vllm:e2e_request_latency_seconds", "gen_ai.server.request.duration")
	f("vllm:request_queue_time_seconds", "llm.request.queue_time")
	f("vllm:request_inference_time_seconds", "llm.request.inference_time")
	f("vllm:request_prefill_time_seconds", "llm.request.prefill_time")
	f("vllm:request_decode_time_seconds", "llm.request.decode_time")
	f("vllm:request_num_preemptions", "llm.request.preemptions")
	f("vllm:request_prefill_kv_computed_tokens", "llm.request.prompt_tokens.computed")

	f("vllm:prompt_tokens_created") // when the counter began, not what it counts
	f("vllm:request_success_created")
	f("vllm:cache_config_info")
	f("vllm:engine_sleep_state")
	f("vllm:request_max_num_generation_tokens")
	f("vllm:request_params_n")
	f("vllm:estimated_flops_per_gpu_total")
	f("vllm:estimated_read_bytes_per_gpu_total")
	f("vllm:estimated_write_bytes_per_gpu_total")
	f("http_requests_total")
	f("http_request_duration_highr_seconds")
	f("process_resident_memory_bytes")
	f("python_gc_collections_total")
}
