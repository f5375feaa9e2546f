package incident

import (
	"fmt"
	"math"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/trace"
)

var (
	stExport   = statement{"com/example/billing/Exporter.java", "com.example.billing.Exporter.run", 71, log.SeverityInfo}
	stDeferred = statement{"com/example/billing/Exporter.java", "com.example.billing.Exporter.row", 118, log.SeverityWarn}
	stSyncing  = statement{"docsync/job.py", "run", 33, log.SeverityInfo}
	stSynced   = statement{"docsync/job.py", "run", 58, log.SeverityInfo}
	stSegment  = statement{"lib/collection/src/update_workers/optimization_worker.rs", "optimization_loop", 212, log.SeverityInfo}
	stStarted  = statement{"rag/app.py", "startup", 88, log.SeverityInfo}
	stShutdown = statement{"rag/app.py", "shutdown", 97, log.SeverityInfo}
)

// background writes what goes on beside the questions, whatever breaks: the
// engines' lines of statistics, a job that copies documents each four minutes,
// and a billing exporter that warns in bursts about rows it will send later.
func (s *simulation) background() {
	for _, e := range s.engines {
		s.engineStats(e)
	}
	s.syncDocuments()
	s.exportBilling()
	if s.opt.Fault == FaultVectorDB {
		for t, n := s.onset+0.4, 0; t < s.end; t, n = t+70, n+1 {
			s.write(s.sys.vector, trace.TraceID{}, trace.SpanID{}, t, stSegment,
				fmt.Sprintf("Optimizer 'merge' running on segments: [%d, %d, %d]", 3*n+4, 3*n+5, 3*n+6))
		}
	}
	if s.opt.Fault == FaultBadDeploy {
		for _, p := range s.sys.orchestratorsNext {
			s.write(p, trace.TraceID{}, trace.SpanID{}, p.from+6, stStarted, "rag-orchestrator 2.5.0 ready")
		}
		for _, p := range s.sys.orchestrators {
			s.write(p, trace.TraceID{}, trace.SpanID{}, p.to-2, stShutdown, "rag-orchestrator 2.4.1 shutting down")
		}
	}
}

// engineStats writes the line that a model server logs each ten seconds.
func (s *simulation) engineStats(e *engine) {
	for t := 10.0; t <= s.end; t += 10 {
		now, before := e.at(t), e.at(t-10)
		s.write(e.pod, trace.TraceID{}, trace.SpanID{}, t, stStats, fmt.Sprintf(
			"Engine 000: Avg prompt throughput: %.1f tokens/s, Avg generation throughput: %.1f tokens/s, Running: %d reqs, Waiting: %d reqs, GPU KV cache usage: %.1f%%, Prefix cache hit rate: 0.0%%",
			float64(now.prompt-before.prompt)/10, float64(now.generated-before.generated)/10, now.running, now.waiting, now.cache*100))
	}
}

func (s *simulation) syncDocuments() {
	pod := s.sys.cron
	for t, n := 35.0, uint64(0); t+30 < s.end; t, n = t+240, n+1 {
		r := s.rng(streamNoise, n)
		p := s.newPath(streamIDs, 1<<40+n)
		took := around(r, 18, 0.1)
		root := p.span(pod, trace.SpanID{}, "sync documents", trace.SpanKindInternal, t, t+took).ID
		p.log(pod, root, t+0.1, stSyncing, "synchronising 3 sources")
		s.spend(pod, t, took*0.9)
		for k := range 3 {
			from := t + 0.2 + float64(k)*took*0.3
			end := from + took*0.28
			status := 200
			c := p.span(pod, root, "embeddings "+embedModel, trace.SpanKindClient, from, from+0.12,
				attribute.String("gen_ai.operation.name", "embeddings"), attribute.String("gen_ai.request.model", embedModel),
				attribute.String("server.address", svcEmbedder), attribute.Int("server.port", 8080)).ID
			p.span(s.sys.embedders[k%2], c, "POST /embed", trace.SpanKindServer, from+0.001, from+0.119, httpServer("POST", "/embed", status)...)
			p.span(pod, root, "upsert documents", trace.SpanKindClient, from+0.15, end,
				attribute.String("db.system.name", "qdrant"), attribute.String("db.operation.name", "upsert"),
				attribute.String("db.collection.name", "documents"), attribute.String("server.address", svcVector))
		}
		p.log(pod, root, t+took*0.99, stSynced, fmt.Sprintf("synchronised %d documents", 40+r.IntN(30)))
	}
}

// exportBilling writes a line a few times a minute and, at random moments all
// along, a burst of harmless warnings.
func (s *simulation) exportBilling() {
	pod := s.sys.billing
	r := s.rng(streamNoise, 1<<20)
	for t := 4.0; t < s.end; t += around(r, 12, 0.1) {
		s.write(pod, trace.TraceID{}, trace.SpanID{}, t, stExport, fmt.Sprintf("exported %d usage rows", 60+r.IntN(40)))
		s.spend(pod, t, around(r, 0.3, 0.2))
	}
	for t := 20 + r.Float64()*60; t < s.end; t += 30 - 75*math.Log(1-r.Float64()) {
		at := t
		for range 15 + r.IntN(20) {
			s.write(pod, trace.TraceID{}, trace.SpanID{}, at, stDeferred,
				fmt.Sprintf("usage row %d has no price yet, deferred to the next run", 100000+r.IntN(900000)))
			at += around(r, 0.15, 0.5)
		}
	}
}
