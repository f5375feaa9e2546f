#!/usr/bin/env bash
# Starts a recorder on free ports and an empty folder, lets a small AI-serving
# system break in front of it, and asks what happened.
#
#   ./lab/demo.sh                    the processor of one model server is taken away
#   ./lab/demo.sh --fault kvcache    see bin/incident -h for the others
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
recorder=
cleanup() {
	if [[ -n $recorder ]] && kill -0 "$recorder" 2>/dev/null; then
		kill -TERM "$recorder"
		wait "$recorder" || true
	fi
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

say() { printf '\n== %s\n' "$*"; }

[[ -x bin/inquest ]] || { echo "bin/inquest is missing: run make build" >&2; exit 1; }
go build -trimpath -o bin/incident ./lab/incident/cmd

grpc=127.0.0.1:$(port 4317)
http=127.0.0.1:$(port 4318)
api=127.0.0.1:$(port 4319)

say "recording: OTLP on $grpc (gRPC) and $http (HTTP), questions on $api"
bin/inquest serve --data "$work/data" \
	--set "receivers::otlp::protocols::grpc::endpoint=$grpc" \
	--set "receivers::otlp::protocols::http::endpoint=$http" \
	--set "extensions::inquest::api::endpoint=$api" \
	--set "service::telemetry::metrics::level=none" \
	>"$work/recorder.log" 2>&1 &
recorder=$!
for _ in $(seq 150); do
	curl -fsS "http://$api/healthz" >/dev/null 2>&1 && ready=1 && break
	kill -0 "$recorder" 2>/dev/null || break
	sleep 0.2
done
if [[ -z ${ready:-} ]]; then
	echo "the recorder did not start:" >&2
	tail -n 20 "$work/recorder.log" >&2
	exit 1
fi

say "a question-answering service over documents breaks (fifteen minutes of telemetry, sent with the OpenTelemetry SDK)"
window=$(bin/incident --endpoint "$grpc" "$@")
read -r from to <<<"$window"

say "users: \"answers are slow or fail since $from\""
mkdir -p build
status=0
bin/inquest investigate --server "http://$api" --from "$from" --to "$to" \
	--service gateway --symptom "answers are slow or fail" | tee "$work/report.txt" || status=$?
id=$(sed -n 's/^Stored as \([^:]*\):.*/\1/p' "$work/report.txt")
if [[ -n $id ]]; then
	curl -fsS "http://$api/api/v1/investigations/$id?format=html" -o build/demo-report.html
	say "the same report for a browser: build/demo-report.html"
fi
# 0 confirmed, 3 suspected, 4 inconclusive, 1 no inquest could be held.
exit "$status"
