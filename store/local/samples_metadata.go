package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"strings"
	"sync"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/metadata"

	"inquest/store"
)

// Limits on what is kept about metrics. Beyond them the samples are stored all
// the same, without a description.
const (
	maxMetadata = 200_000 // metrics
	maxHelp     = 4 << 10 // bytes
)

// metadataFile is type, unit and help of each metric, kept as one JSON file that
// is replaced as a whole. The database can keep them in its log, but drops them
// when it is cut.
type metadataFile struct {
	path string

	mu     sync.RWMutex
	byName map[string]store.Metadata
	dirty  bool
}

func openMetadata(path string) (*metadataFile, error) {
	m := &metadataFile{path: path, byName: map[string]store.Metadata{}}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &m.byName); err != nil {
		return nil, fmt.Errorf("cannot read %s: %w: remove it to go on without descriptions of metrics", path, err)
	}
	return m, nil
}

func (m *metadataFile) set(name string, v store.Metadata) {
	m.mu.Lock()
	defer m.mu.Unlock()
	old, ok := m.byName[name]
	if ok && old == v || !ok && len(m.byName) >= maxMetadata {
		return
	}
	m.byName[name] = v
	m.dirty = true
}

// save makes the present state durable. One goroutine calls it.
func (m *metadataFile) save() error {
	m.mu.Lock()
	if !m.dirty {
		m.mu.Unlock()
		return nil
	}
	data, err := json.Marshal(m.byName)
	m.dirty = false
	m.mu.Unlock()
	if err == nil {
		err = replaceFile(m.path, data)
	}
	if err != nil {
		m.mu.Lock()
		m.dirty = true
		m.mu.Unlock()
		return fmt.Errorf("cannot save descriptions of metrics: %w", err)
	}
	return nil
}

// Metadata implements [store.SampleReader].
func (s *Samples) Metadata(ctx context.Context, names ...string) (map[string]store.Metadata, error) {
	leave, err := s.gate.enter()
	if err != nil {
		return nil, fmt.Errorf("cannot read metadata: %w", err)
	}
	defer leave()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("cannot read metadata: %w", err)
	}
	s.meta.mu.RLock()
	defer s.meta.mu.RUnlock()
	if len(names) == 0 {
		return maps.Clone(s.meta.byName), nil
	}
	out := map[string]store.Metadata{}
	for _, name := range names {
		if v, ok := s.meta.byName[name]; ok {
			out[name] = v
		}
	}
	return out, nil
}

func metadataOf(m metadata.Metadata) store.Metadata {
	v := store.Metadata{Unit: m.Unit, Help: m.Help}
	if len(v.Help) > maxHelp {
		v.Help = strings.ToValidUTF8(v.Help[:maxHelp], "")
	}
	switch m.Type {
	case model.MetricTypeCounter, model.MetricTypeGauge, model.MetricTypeHistogram, model.MetricTypeSummary:
		v.Type = string(m.Type)
	case model.MetricTypeGaugeHistogram:
		v.Type = string(model.MetricTypeHistogram)
	case model.MetricTypeInfo, model.MetricTypeStateset:
		v.Type = string(model.MetricTypeGauge)
	default:
		v.Type = string(model.MetricTypeUnknown)
	}
	return v
}
