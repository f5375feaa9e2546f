#!/usr/bin/env bash
# All benchmarks; `make bench` builds bin/inquest first. Results go to build/bench.
#
#   INQUEST_DATA   folder of the public data sets (default ../shared/data)
#   BENCH_ROUNDS   rounds of the ingest benchmark (default 5)
#   BENCH_KILLS    kills of the crash test (default 100)
set -euo pipefail
cd "$(dirname "$0")/.."

data=${INQUEST_DATA:-../shared/data}
if [[ -d $data ]]; then
	data=$(cd "$data" && pwd)
fi
out=build/bench
mkdir -p "$out"

if [[ ! -x bin/inquest ]]; then
	echo "bin/inquest is missing: run make build" >&2
	exit 1
fi

echo "== Ingest next to VictoriaLogs"
(cd bench/ingest/peer && go build -trimpath -ldflags '-s -w' -o ../../../build/victoria-logs \
	github.com/VictoriaMetrics/VictoriaLogs/app/victoria-logs)
go build -trimpath -o build/ingest ./bench/ingest
mkdir -p build/work
build/ingest -inquest bin/inquest -victorialogs build/victoria-logs -work build/work \
	-rounds "${BENCH_ROUNDS:-5}" -data "$data" -json "$out/ingest.json" | tee "$out/ingest.txt"

echo
echo "== AI events: cost of validation, exactness, re-driving"
go run ./bench/events -inquest bin/inquest | tee "$out/events.txt"

echo
echo "== Scraping 100 targets with 1,000 series each"
go run ./bench/scrape -inquest bin/inquest | tee "$out/scrape.txt"

echo
echo "== Kills under load"
INQUEST_TEST_KILLS=${BENCH_KILLS:-100} go test ./recorder -run 'TestKill$' -count 1 -v -timeout 20m | tee "$out/kill.txt"

echo
echo "== Go benchmarks, six runs each"
# The storage library does not sync in tests unless it is told to.
DISABLE_FSYNC_FOR_TESTING=false go test ./journal/segment ./record ./admit ./store/local \
	-run '^$' -bench . -benchmem -count 6 -timeout 60m >"$out/go.txt"
go tool -modfile=internal/tools/go.mod benchstat "$out/go.txt" | tee "$out/benchstat.txt"

echo
echo "== Verdicts on Nezha TrainTicket"
if [[ -d $data/nezha-trainticket ]]; then
	bin/inquest bench nezha "$data/nezha-trainticket" | tee "$out/nezha.txt"
else
	echo "skipped: $data/nezha-trainticket is missing; set INQUEST_DATA to the folder that holds it"
fi
