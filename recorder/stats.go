package recorder

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"inquest/journal"
	"inquest/store"
)

type counters struct {
	acceptedLogs, acceptedSpans, acceptedPoints atomic.Uint64
	rejectedLogs, rejectedSpans, rejectedPoints atomic.Uint64

	refusedBatches  atomic.Uint64
	deadPoints      atomic.Uint64
	deadLetters     atomic.Uint64
	letterReasons   byReason
	missingPayloads atomic.Uint64
	expired         atomic.Uint64
	lostEntries     atomic.Uint64
	setAside        atomic.Uint64
	checkpoints     atomic.Uint64
}

// maxReasons bounds the reasons that are counted on their own.
const maxReasons = 256

// otherReasons counts letters for reasons beyond the bound.
const otherReasons = "other"

// byReason counts dead letters by reason.
type byReason struct {
	mu     sync.Mutex
	counts map[string]uint64
}

func (b *byReason) add(reason string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.counts == nil {
		b.counts = map[string]uint64{}
	}
	if _, ok := b.counts[reason]; !ok && len(b.counts) >= maxReasons {
		reason = otherReasons
	}
	b.counts[strings.Clone(reason)]++
}

func (b *byReason) get() map[string]uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.counts)
}

// Counts is one number for each signal.
type Counts struct {
	Logs   uint64 `json:"logs"`
	Spans  uint64 `json:"spans"`
	Points uint64 `json:"points"`
}

// Stats is a snapshot of a recorder's state and of its work since it started.
type Stats struct {
	Accepted Counts `json:"accepted"` // acknowledged records
	Rejected Counts `json:"rejected"` // records refused for good, each with a reason to its sender
	// RefusedBatches counts batches that the sender was told to send again.
	RefusedBatches uint64 `json:"refused_batches"`
	// DeadPoints counts acknowledged points that the store of samples could not
	// take; a dead letter says why.
	DeadPoints uint64 `json:"dead_points"`
	// DeadLetters counts what was refused and is kept whole.
	DeadLetters uint64 `json:"dead_letters"`
	// DeadLettersByReason are the same by reason; those past 256 reasons are
	// under "other".
	DeadLettersByReason map[string]uint64 `json:"dead_letters_by_reason,omitempty"`
	// MissingPayloads counts events that were recorded without the payload that
	// was to be kept of them.
	MissingPayloads uint64 `json:"missing_payloads"`
	// Expired counts records past the retention before they reached a store.
	Expired uint64 `json:"expired"`
	// LostEntries counts entries damaged in the journal by the disk.
	LostEntries uint64 `json:"lost_entries"`
	// SetAside counts entries that could not be applied and lie in files.
	SetAside    uint64 `json:"set_aside"`
	Checkpoints uint64 `json:"checkpoints"`

	Acknowledged uint64 `json:"acknowledged_seq"` // last entry acknowledged
	Applied      uint64 `json:"applied_seq"`      // last entry in the stores
	Synced       uint64 `json:"synced_seq"`       // last entry in the stores on disk
	// Stalled is true while the stores take nothing.
	Stalled bool `json:"stalled"`

	Journal journal.Stats     `json:"journal"`
	Records store.RecordStats `json:"records"`
	Samples store.SampleStats `json:"samples"`
}

// Stats tells about the recorder's state.
func (r *Recorder) Stats() Stats {
	c := &r.counts
	return Stats{
		Accepted:            Counts{c.acceptedLogs.Load(), c.acceptedSpans.Load(), c.acceptedPoints.Load()},
		Rejected:            Counts{c.rejectedLogs.Load(), c.rejectedSpans.Load(), c.rejectedPoints.Load()},
		RefusedBatches:      c.refusedBatches.Load(),
		DeadPoints:          c.deadPoints.Load(),
		DeadLetters:         c.deadLetters.Load(),
		DeadLettersByReason: c.letterReasons.get(),
		MissingPayloads:     c.missingPayloads.Load(),
		Expired:             c.expired.Load(),
		LostEntries:         c.lostEntries.Load(),
		SetAside:            c.setAside.Load(),
		Checkpoints:         c.checkpoints.Load(),
		Acknowledged:        r.queue.head(),
		Applied:             r.apply.done.get(),
		Synced:              r.apply.synced.get(),
		Stalled:             r.apply.stalled.Load(),
		Journal:             r.opts.Journal.Stats(),
		Records:             r.opts.Records.Stats(),
		Samples:             r.opts.Samples.Stats(),
	}
}
