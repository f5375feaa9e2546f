# Targets: build, demo, test, lint, bench. Each works on a fresh clone.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
TOOL := go tool -modfile=internal/tools/go.mod

# Packages that are light enough for the race detector at every run: those that
# need no store. `make race` covers all.
RACE := ./admit/... ./journal/... ./record/... ./stats/... ./sensor ./sensor/flow/... ./verdict/...

.PHONY: build demo test race lint fmt bench fuzz clean

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

clean:
	rm -rf bin build
