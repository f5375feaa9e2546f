package sensor

import (
	"strings"
	"testing"
)

// realNames are metrics under the names that their projects give them, each with
// its class; a unit or labels follow the name after a space.
const realNames = `
vllm:num_requests_running running
vllm:num_requests_waiting queue
vllm:num_requests_waiting_by_reason queue
vllm:kv_cache_usage_perc cache_usage
vllm:gpu_cache_usage_perc cache_usage
vllm:prefix_cache_queries_total cache_lookups
vllm:prefix_cache_hits_total cache_hits
vllm:gpu_prefix_cache_hits_total cache_hits
vllm:mm_cache_queries_total cache_lookups
vllm:external_prefix_cache_hits_total cache_hits
vllm:num_preemptions_total preemption
vllm:prompt_tokens_total tokens
vllm:generation_tokens_total tokens
vllm:prompt_tokens_cached_total cached_tokens
vllm:request_success_total throughput
vllm:request_success_total{finished_reason=abort} errors
vllm:request_success_total{finished_reason=length} throughput
vllm:corrupted_requests_total errors
vllm:request_prompt_tokens input_tokens
vllm:request_generation_tokens output_tokens
vllm:request_max_num_generation_tokens metric
vllm:request_params_max_tokens metric
vllm:iteration_tokens_total batch_size
vllm:time_to_first_token_seconds latency
vllm:inter_token_latency_seconds latency
vllm:request_time_per_output_token_seconds latency
vllm:e2e_request_latency_seconds latency
vllm:request_queue_time_seconds latency
vllm:lora_requests_info info
vllm:cache_config_info info
vllm:kv_block_idle_before_evict_seconds latency
vllm:nixl_num_failed_transfers_total errors
http_requests_total throughput
http_requests_total{status=500} errors
http_requests_total{code=200} throughput
http_request_duration_seconds latency
sglang:num_running_reqs running
sglang:num_queue_reqs queue
sglang:token_usage cache_usage
sglang:cache_hit_rate cache_hits
sglang:gen_throughput throughput
sglang:num_retracted_reqs preemption
sglang:num_retracted_requests_total preemption
sglang:cached_tokens_total cached_tokens
sglang:prompt_tokens_total tokens
sglang:num_aborted_requests_total errors
sglang:max_total_num_tokens limit
sglang:lora_pool_slots_used adapter
sglang:lora_pool_slots_total limit
sglang:cuda_graph_passes_total metric
sglang:num_prefill_retries_total retries
tgi_request_count throughput
tgi_request_success throughput
tgi_request_failure errors
tgi_request_duration latency
tgi_request_mean_time_per_token_duration latency
tgi_request_input_length input_tokens
tgi_request_generated_tokens output_tokens
tgi_queue_size queue
tgi_batch_current_size batch_size
nv_inference_request_success throughput
nv_inference_request_failure errors
nv_inference_count throughput
nv_inference_pending_request_count queue
nv_inference_queue_duration_us latency
nv_gpu_utilization gpu
nv_gpu_memory_used_bytes gpu_memory
nv_gpu_memory_total_bytes limit
nv_gpu_power_usage gpu_power
nv_gpu_power_limit limit
nv_energy_consumption gpu_power
nv_cache_num_hits_per_model cache_hits
nv_cache_num_misses_per_model cache_lookups
nv_cache_hit_duration_per_model latency
DCGM_FI_DEV_GPU_UTIL gpu
DCGM_FI_DEV_FB_USED gpu_memory
DCGM_FI_DEV_FB_FREE free
DCGM_FI_DEV_FB_RESERVED memory_reserved
DCGM_FI_DEV_XID_ERRORS gpu_error
DCGM_EXP_XID_ERRORS_COUNT gpu_error
DCGM_FI_DEV_ECC_DBE_VOL_TOTAL gpu_error
DCGM_FI_DEV_GPU_TEMP gpu_temperature
DCGM_FI_DEV_MEMORY_TEMP gpu_temperature
DCGM_FI_DEV_POWER_USAGE gpu_power
DCGM_FI_DEV_SM_CLOCK gpu_clock
DCGM_FI_DEV_MEM_CLOCK gpu_clock
DCGM_FI_DEV_THERMAL_VIOLATION gpu_throttling
DCGM_FI_DEV_CLOCKS_EVENT_REASONS gpu_throttling
DCGM_FI_DEV_ROW_REMAP_FAILURE gpu_error
DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL gpu_error
DCGM_FI_PROF_GR_ENGINE_ACTIVE gpu
ray_actors{State=PENDING_CREATION} queue
ray_actors{State=DEAD} restart
ray_actors{State=ALIVE_IDLE} metric
ray_object_store_memory memory
ray_memory_manager_worker_eviction_total oom_kill
ray_node_mem_used memory
ray_node_mem_total limit
ray_node_gram_used gpu_memory
ray_cluster_pending_nodes queue
ray_cluster_failed_nodes errors
Requests5XX errors
GPUMemoryUsed gpu_memory
CPUUtilization cpu
QueueTime latency
HandlerTime latency
milvus_proxy_req_latency latency
milvus_proxy_req_count throughput
milvus_proxy_req_count{status=fail} errors
milvus_proxy_cache_hit_count{cache_state=hit} cache_hits
milvus_proxy_cache_hit_count{cache_state=miss} cache_lookups
milvus_proxy_tt_lag_ms latency
milvus_proxy_retry_search_cnt retries
rest_responses_total throughput
collection_update_queue_length queue
memory_resident_bytes memory
redis_connected_clients connections
redis_blocked_clients queue
redis_config_maxclients limit
redis_max_clients limit
redis_rejected_connections_total errors
redis_memory_used_bytes memory
redis_memory_max_bytes limit
redis_mem_fragmentation_ratio fragmentation
redis_evicted_keys_total evictions
redis_keyspace_hits_total cache_hits
redis_keyspace_misses_total cache_lookups
redis_commands_total throughput
redis_uptime_in_seconds info
container_memory_working_set_bytes memory
container_memory_max_usage_bytes memory
container_memory_failures_total pressure
container_oom_events_total oom_kill
container_cpu_usage_seconds_total cpu
container_cpu_cfs_throttled_seconds_total cpu_throttling
container_pressure_cpu_waiting_seconds_total cpu_throttling
container_pressure_memory_stalled_seconds_total pressure
container_spec_memory_limit_bytes limit
container_network_receive_packets_dropped_total network_loss
container_network_receive_bytes_total network_io
container_fs_reads_bytes_total disk_io
container_fs_usage_bytes disk_usage
container_file_descriptors file_descriptors
container_start_time_seconds info
k8s.pod.cpu.usage cpu
k8s_pod_cpu_usage cpu
k8s.pod.cpu_limit_utilization cpu
k8s_pod_memory_limit_utilization_ratio memory
k8s.pod.memory.working_set memory
k8s.pod.network.io network_io
k8s.pod.network.errors network_loss
k8s.container.restarts restart
k8s.container.memory_limit limit
k8s.container.cpu_request limit
k8s.node.allocatable_memory limit
k8s.node.cpu.utilization cpu
kube_pod_container_status_restarts_total restart
kube_pod_container_status_last_terminated_reason{reason=OOMKilled} oom_kill
kube_pod_container_status_last_terminated_reason{reason=Error} restart
kube_pod_container_status_waiting_reason restart
kube_pod_container_resource_limits limit
kube_pod_status_phase{phase=Pending} queue
kube_pod_info info
kube_node_status_condition{condition=MemoryPressure,status=true} pressure
node_cpu_seconds_total{mode=user} cpu
node_cpu_seconds_total{mode=idle} free
node_load1 cpu
node_memory_MemAvailable_bytes free
node_memory_MemTotal_bytes limit
node_filesystem_avail_bytes free
node_filesystem_size_bytes limit
node_network_receive_drop_total network_loss
node_netstat_Tcp_RetransSegs network_loss
node_pressure_io_waiting_seconds_total pressure
node_vmstat_pgmajfault metric
node_time_seconds info
tcp.retransmits network_loss
tcp.resets network_loss
db.client.connection.count{db.client.connection.state=used} pool
db.client.connection.count{db.client.connection.state=idle} free
db_client_connection_count{db_client_connection_state=idle} free
db.client.connection.max limit
db.client.connection.pending_requests pool_wait
db.client.connection.timeouts pool_wait
db.client.connection.wait_time pool_wait
db_client_connection_wait_time_seconds pool_wait
db.client.connection.use_time outgoing_latency
db.client.operation.duration outgoing_latency
hikaricp_connections_active pool
hikaricp_connections_pending pool_wait
hikaricp_connections_max limit
jvm.gc.duration gc_time
jvm_gc_pause_seconds gc_time
jvm.memory.used memory
jvm.memory.limit limit
cpython.gc.collections gc_time
python_gc_collections_total gc_time
go_gc_duration_seconds gc_time
go_memstats_last_gc_time_seconds info
go_memstats_next_gc_bytes memory
go.memory.gc.goal memory
process_open_fds file_descriptors
process_max_fds limit
process_resident_memory_bytes memory
process_cpu_seconds_total cpu
process_start_time_seconds info
otelcol_exporter_send_failed_spans_total telemetry_loss
otelcol_exporter_enqueue_failed_log_records telemetry_loss
otelcol_receiver_refused_metric_points telemetry_loss
otelcol_processor_dropped_spans telemetry_loss
otelcol_receiver_accepted_spans telemetry
otelcol_exporter_queue_size queue
otelcol_exporter_queue_capacity limit
otel.sdk.processor.span.processed telemetry
otel.sdk.processor.span.processed{error.type=queue_full} telemetry_loss
otel_sdk_exporter_span_exported_total{error_type=timeout} telemetry_loss
otel.sdk.processor.span.queue.size queue
otel.sdk.processor.span.queue.capacity limit
gen_ai.client.operation.duration outgoing_latency
gen_ai.client.token.usage{gen_ai.token.type=input} input_tokens
gen_ai_client_token_usage{gen_ai_token_type=output} output_tokens
gen_ai.server.time_to_first_token latency
gen_ai.server.time_per_output_token latency
gen_ai.client.inference.usage.input_tokens_total tokens
gen_ai.client.inference.operation.output_tokens output_tokens
http.server.request.duration latency
http.client.request.duration outgoing_latency
http.server.active_requests running
hw.errors{hw.type=gpu} gpu_error
hw.gpu.utilization gpu
hw.gpu.memory.usage gpu_memory
hw.gpu.memory.limit limit
lmcache:num_hit_tokens cache_hits
lmcache:num_requested_tokens cache_lookups
lmcache:retrieve_hit_rate cache_hits
lmcache:local_cpu_evict_count evictions
litellm_request_total_latency_metric latency
litellm_deployment_successful_fallbacks fallbacks
litellm_proxy_failed_requests_metric errors
weaviate_queue_size queue
moe.top_share expert_skew
sglang:eplb_balancedness expert_skew
lora.active_adapters adapter
guardrail.refused refusals
model.confidence quality
llm.output.entropy quality
torch_cuda_memory_reserved_bytes memory_reserved
up telemetry
scrape_duration_seconds telemetry
foo metric
container.filesystem.syscalls disk_io
http.server.request.rate throughput
http.server.request.success_ratio success_rate
PodServerLatencyP99 latency
MemoryUsageRate memory
`

func TestClassifyRealNames(t *testing.T) {
	n := 0
	for line := range strings.Lines(realNames) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		n++
		text, want, _ := strings.Cut(line, " ")
		name, labels, _ := strings.Cut(strings.TrimSuffix(text, "}"), "{")
		s := Series{Name: name, Labels: map[string]string{"service.name": "x"}}
		for _, l := range strings.Split(labels, ",") {
			if k, v, ok := strings.Cut(l, "="); ok {
				s.Labels[k] = v
			}
		}
		if got := s.About().Class; got != Class(want) {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
	if n < 200 {
		t.Errorf("only %d names", n)
	}
	for unit, want := range map[string]Class{"s": ClassLatency, "By": ClassOther} {
		if got := Classify("thinking", unit); got != want {
			t.Errorf("an unknown name in %s is %s, want %s", unit, got, want)
		}
	}
}

func BenchmarkClassify(b *testing.B) {
	for b.Loop() {
		Classify("container_pressure_memory_stalled_seconds_total", "s")
	}
}
