package recorder

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"inquest/admit"
	"inquest/admit/decision"
	"inquest/journal"
	"inquest/journal/segment"
	"inquest/journal/vfs"
	"inquest/record/alias"
	"inquest/store/local"
)

// Config says where an embedded recorder keeps its data and how much of it.
type Config struct {
	// Dir is the data folder; it is created when it does not exist.
	Dir string
	// Retention is how long records and samples are kept.
	Retention time.Duration
	// MaxRecordBytes and MaxSampleBytes bound the stores on disk; the oldest
	// data goes first. 0 means no bound.
	MaxRecordBytes, MaxSampleBytes int64
	// MaxJournalBytes bounds what is acknowledged and not yet in the stores.
	// Beyond it senders are told to retry.
	MaxJournalBytes int64
	// MinFreeBytes is the room left free on the disk. Below it senders are told
	// to retry, until there is room again.
	MinFreeBytes int64
	// SyncInterval is the longest time between two checkpoints.
	SyncInterval time.Duration
	// Aliases is a file that adds to the table of aliases; none when empty.
	Aliases string
	// Policy, Decisions, Payloads and OnLetters are as in [Options].
	Policy    *admit.Policy
	Decisions *decision.Recogniser
	Payloads  *Payloads
	OnLetters func([]admit.Letter)
	Logger    *slog.Logger
}

// journalDir is the folder of the journal in the data folder.
const journalDir = "journal"

// DefaultConfig is what a recorder uses when nothing is set.
func DefaultConfig() Config {
	return Config{
		Dir:             "data",
		Retention:       30 * 24 * time.Hour,
		MaxRecordBytes:  20 << 30,
		MaxSampleBytes:  10 << 30,
		MaxJournalBytes: 4 << 30,
		MinFreeBytes:    512 << 20,
		SyncInterval:    30 * time.Second,
	}
}

// Open opens or creates the embedded journal and stores below cfg.Dir and
// starts a recorder on them.
func Open(cfg Config) (*Recorder, error) {
	aliases, err := alias.Load(cfg.Aliases)
	if err != nil {
		return nil, err
	}
	fsys := vfs.OS{}
	if err := fsys.MkdirAll(cfg.Dir); err != nil {
		return nil, fmt.Errorf("cannot create the data folder: %w", err)
	}
	// The journal comes first: it holds the lock on the folder.
	j, err := segment.Open(segment.Options{
		Dir:          filepath.Join(cfg.Dir, journalDir),
		FS:           fsys,
		MaxBytes:     cfg.MaxJournalBytes,
		MinFreeBytes: cfg.MinFreeBytes,
		Logger:       cfg.Logger,
	})
	if err != nil {
		return nil, err
	}
	r, err := openOn(cfg, fsys, j, aliases)
	if err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return r, nil
}

// openOn opens the stores and starts a recorder on them and j.
func openOn(cfg Config, fsys vfs.FS, j journal.Journal, aliases *alias.Table) (*Recorder, error) {
	// The stores may use the last half of the free room: they empty the journal.
	storeFree := cfg.MinFreeBytes / 2
	records, err := local.OpenRecords(local.RecordsOptions{
		Dir:          filepath.Join(cfg.Dir, "records"),
		Retention:    cfg.Retention,
		MaxDiskBytes: cfg.MaxRecordBytes,
		MinFreeBytes: storeFree,
		Logger:       cfg.Logger,
	})
	if err != nil {
		return nil, err
	}
	samples, err := local.OpenSamples(local.SamplesOptions{
		Dir:          filepath.Join(cfg.Dir, "samples"),
		Retention:    cfg.Retention,
		MaxDiskBytes: cfg.MaxSampleBytes,
		MinFreeBytes: storeFree,
		Logger:       cfg.Logger,
	})
	if err != nil {
		return nil, errors.Join(err, records.Close())
	}
	r, err := New(Options{
		Journal: j, Records: records, Samples: samples,
		Dir: cfg.Dir, FS: fsys, SyncInterval: cfg.SyncInterval, Aliases: aliases, Logger: cfg.Logger,
		Policy: cfg.Policy, Decisions: cfg.Decisions, Payloads: cfg.Payloads, OnLetters: cfg.OnLetters,
	})
	if err != nil {
		return nil, errors.Join(err, records.Close(), samples.Close())
	}
	return r, nil
}
