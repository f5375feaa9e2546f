package inquest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Stages measures the stages of a step. It is safe for concurrent use.
type Stages struct {
	mu    sync.Mutex
	times map[string]time.Duration
}

// Stage begins a stage, which ends when the returned function is called. A stage
// that comes again adds up.
func (s *Stages) Stage(name string) (end func()) {
	begin := time.Now()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.times == nil {
			s.times = map[string]time.Duration{}
		}
		s.times[name] += time.Since(begin)
	}
}

// Times returns the stages that have ended.
func (s *Stages) Times() map[string]time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[string]time.Duration, len(s.times))
	for k, v := range s.times {
		out[k] = v
	}
	return out
}

// LoadModel runs load within a span and logs the model load: the path with links
// resolved, the file's hash (of a file, not of a folder), the stages, and the
// error if there is one. load may set Device and Fallback in the event. The hash
// is taken before load runs and reads the file once more, as stage "hash".
//
// An error of load is returned as it is; an error of the logger is joined to it.
func LoadModel[M any](ctx context.Context, l *Logger, n ModelLoad, load func(context.Context, *Stages, *ModelLoad) (M, error)) (M, error) {
	if RequestID(ctx) == "" {
		ctx = WithRequest(ctx, Request{})
	}
	ctx, span := l.tracer.Start(ctx, "model load", trace.WithSpanKind(trace.SpanKindInternal))
	defer span.End()
	var stages Stages
	fingerprint(&n, &stages)
	endLoad := stages.Stage("load")
	m, err := load(ctx, &stages, &n)
	endLoad()
	if n.Stages == nil {
		n.Stages = stages.Times()
	}
	if err != nil {
		span.RecordError(err)
		span.SetStatus(codes.Error, err.Error())
		if n.Message == "" {
			n.Message = err.Error()
		}
		if n.Level == "" {
			n.Level = LevelError
		}
	}
	return m, errors.Join(err, l.ModelLoad(ctx, n))
}

// fingerprint fills in what the file system says of the configured path. What it
// does not say stays empty, and load will fail on it.
func fingerprint(n *ModelLoad, stages *Stages) {
	if n.ConfiguredPath == "" {
		return
	}
	defer stages.Stage("hash")()
	if n.RealPath == "" {
		if real, err := filepath.EvalSymlinks(n.ConfiguredPath); err == nil {
			n.RealPath, _ = filepath.Abs(real) // fails only without a working directory
		}
	}
	if n.FileSHA256 == "" && n.RealPath != "" {
		if hash, err := HashFile(n.RealPath); err == nil {
			n.FileSHA256 = hash
		}
	}
}

// HashFile returns the SHA-256 of a file in hexadecimal digits.
func HashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("cannot hash the file: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("cannot hash the file: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
