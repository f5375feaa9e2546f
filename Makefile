# Targets: build, demo, test, lint, bench, clients. Each works on a fresh clone.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
TOOL := go tool -modfile=internal/tools/go.mod

# Packages that are light enough for the race detector at every run: those that
# need no store. `make race` covers all.
RACE := ./admit/... ./journal/... ./record/... ./stats/... ./sensor ./sensor/flow/... ./verdict/...

.PHONY: build demo test race lint fmt bench fuzz clients clean

build:
	go build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o bin/inquest ./cmd/inquest

demo: build
	./lab/demo.sh

test:
	go vet ./...
	go test -timeout 15m ./...
	go test -race -short -timeout 15m $(RACE)
	cd sdk/go && go vet ./... && go test -timeout 10m ./...
	./sdk/python/test.sh -q

race:
	go test -race -timeout 40m ./...

lint:
	$(TOOL) golangci-lint run ./...

fmt:
	$(TOOL) gofumpt -l -w $$(git ls-files '*.go')

bench: build
	./bench/run.sh

# Each fuzz test of the module for FUZZTIME.
FUZZTIME ?= 20s
fuzz:
	./internal/tools/fuzz.sh $(FUZZTIME)

# vLLM and LangChain, as they are, against the recorder: docs/clients.md. The
# first run installs 5.7 GB under build/.
clients: build
	./lab/clients/run.sh

clean:
	rm -rf bin build
