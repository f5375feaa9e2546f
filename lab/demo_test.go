// Package lab_test lets the incidents happen before a recorder and asks the
// engine about them.
package lab_test

import (
	"context"
	"net"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"

	"inquest/lab/incident"
	"inquest/record"
	"inquest/recorder"
	"inquest/sensor/stored"
	"inquest/verdict"
)

type logServer struct {
	plogotlp.UnimplementedGRPCServer
	rec *recorder.Recorder
}

func (s *logServer) Export(ctx context.Context, r plogotlp.ExportRequest) (plogotlp.ExportResponse, error) {
	return plogotlp.NewExportResponse(), s.rec.Logs(ctx, r.Logs())
}

type traceServer struct {
	ptraceotlp.UnimplementedGRPCServer
	rec *recorder.Recorder
}

func (s *traceServer) Export(ctx context.Context, r ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	return ptraceotlp.NewExportResponse(), s.rec.Traces(ctx, r.Traces())
}

type metricServer struct {
	pmetricotlp.UnimplementedGRPCServer
	rec *recorder.Recorder
}

func (s *metricServer) Export(ctx context.Context, r pmetricotlp.ExportRequest) (pmetricotlp.ExportResponse, error) {
	return pmetricotlp.NewExportResponse(), s.rec.Metrics(ctx, r.Metrics())
}

// recorderOf sends an incident over OTLP into a recorder of its own.
func recorderOf(t *testing.T, x *incident.Telemetry) *recorder.Recorder {
	t.Helper()
	cfg := recorder.DefaultConfig()
	cfg.Dir = t.TempDir()
	cfg.MinFreeBytes = 64 << 20
	rec, err := recorder.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rec.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := grpc.NewServer()
	plogotlp.RegisterGRPCServer(srv, &logServer{rec: rec})
	ptraceotlp.RegisterGRPCServer(srv, &traceServer{rec: rec})
	pmetricotlp.RegisterGRPCServer(srv, &metricServer{rec: rec})
	go srv.Serve(l)
	defer srv.Stop()
	e, err := incident.Dial(t.Context(), l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Send(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := rec.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	return rec
}

// TestVerdicts checks that the engine names what broke, from what the SDKs sent,
// and nothing where nothing broke.
func TestVerdicts(t *testing.T) {
	if testing.Short() {
		t.Skip("records fifteen minutes of telemetry five times")
	}
	f := func(fault incident.Fault, kind string, causes ...record.Entity) {
		t.Helper()
		x := incident.Generate(incident.Options{End: time.Now().Truncate(time.Second), Fault: fault, Seed: 1})
		rec := recorderOf(t, x)
		gateway := record.Entity{Kind: record.EntityService, Name: "gateway"}
		v, err := verdict.Investigate(t.Context(), stored.New(rec.Records(), rec.Samples()), verdict.Question{
			From: x.Onset, To: x.End, Symptom: &verdict.Symptom{Entity: &gateway, Text: "answers are slow or fail"},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %s", fault, v.Summary)
		switch {
		case len(v.NotExamined) > 0:
			t.Errorf("%s: not examined: %v", fault, v.NotExamined)
		case len(causes) == 0:
			if v.State != verdict.StateInconclusive {
				t.Errorf("%s: %s, want inconclusive", fault, v.Summary)
			}
		case v.State != verdict.StateConfirmed || !slices.Contains(causes, v.Cause.Entity):
			t.Errorf("%s: %s, want a confirmed cause among %v", fault, v.Summary, causes)
		case kind != "" && v.Cause.Fault != kind:
			t.Errorf("%s: %s, want the kind %s", fault, v.Summary, kind)
		case len(v.Quadrants) < 2:
			t.Errorf("%s: confirmed on %v", fault, v.Quadrants)
		}
	}
	service := func(name string) record.Entity {
		return record.Entity{Kind: record.EntityService, Name: name}
	}
	pod := func(name string) record.Entity { return record.Entity{Kind: record.EntityPod, Name: name} }
	f(incident.FaultNone, "")
	f(incident.FaultCPU, "cpu-contention", service("vllm"), pod("vllm-1"))
	// The kind is not yet right: given-up requests look like an exception.
	f(incident.FaultKVCache, "", service("vllm"), record.Entity{Kind: record.EntityModel, Name: "llama-3.1-8b-instruct"})
	f(incident.FaultVectorDB, "slow-dependency", service("qdrant"), pod("qdrant-0"), record.Entity{Kind: record.EntityDependency, Name: "qdrant"})
	f(incident.FaultBadDeploy, "code-exception", service("rag-orchestrator"))
}
