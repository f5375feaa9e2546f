package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
)

const peerName = "victorialogs http"

// countQuery counts what the benchmark sent.
var countQuery = "?query=" + url.QueryEscape("* | stats count() n")

// startVictoriaLogs runs VictoriaLogs as it comes.
func startVictoriaLogs(ctx context.Context, o options, dir string) (*server, error) {
	addrs, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	base := "http://" + addrs[0]
	s := &server{
		dir: dir, records: ".", storage: ".",
		logsURL: base + "/insert/opentelemetry/v1/logs", api: base,
	}
	s.count = func(ctx context.Context) (int, error) { return countOf(ctx, base+"/select/logsql/query"+countQuery) }
	return s, s.start(ctx, base+"/health", o.victoriaLogs,
		"-storageDataPath="+dir, "-httpListenAddr="+addrs[0])
}

// startInquest runs inquest as it comes, but for the ports.
func startInquest(ctx context.Context, o options, dir string) (*server, error) {
	addrs, err := freePorts(4)
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(addrs[3])
	if err != nil {
		return nil, err
	}
	otlp, base := "http://"+addrs[1], "http://"+addrs[2]
	s := &server{
		dir: dir, records: "records", storage: filepath.Join("records", "logstorage"),
		logsURL: otlp + "/v1/logs", spanURL: otlp + "/v1/traces", grpc: addrs[0], api: base,
	}
	s.count = func(ctx context.Context) (int, error) { return countOf(ctx, base+"/api/v1/records/query"+countQuery) }
	s.settled = func(ctx context.Context) (bool, error) { return inquestSettled(ctx, base) }
	return s, s.start(ctx, base+"/healthz", o.inquest, "serve", "--data", dir,
		"--set", "receivers::otlp::protocols::grpc::endpoint="+addrs[0],
		"--set", "receivers::otlp::protocols::http::endpoint="+addrs[1],
		"--set", "extensions::inquest::api::endpoint="+addrs[2],
		"--set", fmt.Sprintf("service::telemetry::metrics::readers=[{pull: {exporter: {prometheus: {host: %q, port: %s}}}}]", host, port))
}

// inquestSettled tells whether a checkpoint covers all that was acknowledged.
func inquestSettled(ctx context.Context, base string) (bool, error) {
	body, err := get(ctx, base+"/api/v1/status")
	if err != nil {
		return false, err
	}
	var status struct {
		Data struct {
			Recorder struct {
				Acknowledged uint64 `json:"acknowledged_seq"`
				Synced       uint64 `json:"synced_seq"`
			} `json:"recorder"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &status); err != nil {
		return false, fmt.Errorf("cannot read the status: %w", err)
	}
	r := status.Data.Recorder
	return r.Synced > 0 && r.Synced >= r.Acknowledged, nil
}

// countOf asks for the answer to countQuery.
func countOf(ctx context.Context, url string) (int, error) {
	body, err := get(ctx, url)
	if err != nil {
		return 0, err
	}
	var row struct {
		N string `json:"n"`
	}
	if err := json.Unmarshal(body, &row); err != nil {
		return 0, fmt.Errorf("cannot read the number of records in %.100q: %w", body, err)
	}
	return strconv.Atoi(row.N)
}
