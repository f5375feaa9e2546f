package recorder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"inquest/journal"
	"inquest/journal/vfs"
)

// checkpointFile says up to which journal entry the stores are durable.
const checkpointFile = "checkpoint.json"

type checkpointContent struct {
	Version int    `json:"version"`
	Applied uint64 `json:"applied"`
}

func readCheckpoint(fsys vfs.FS, dir string) (uint64, error) {
	path := filepath.Join(dir, checkpointFile)
	data, err := vfs.ReadFile(fsys, path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("cannot read the checkpoint: %w", err)
	}
	var c checkpointContent
	if err := json.Unmarshal(data, &c); err != nil || c.Version != 1 {
		return 0, fmt.Errorf("cannot read the checkpoint %s: it is damaged or from another version of inquest (%q); remove it to apply the journal again, which stores nothing twice", path, data)
	}
	return c.Applied, nil
}

// checkpoint makes the stores durable, notes how far they are, and lets go of
// the journal up to there.
func (a *applier) checkpoint(ctx context.Context) error {
	applied := a.done.get()
	if applied <= a.synced.get() {
		a.unsynced = 0
		return nil
	}
	if err := a.records.Sync(ctx); err != nil {
		return fmt.Errorf("cannot sync records: %w", err)
	}
	if err := a.samples.Sync(ctx); err != nil {
		return fmt.Errorf("cannot sync samples: %w", err)
	}
	data, err := json.Marshal(checkpointContent{Version: 1, Applied: applied})
	if err != nil {
		return err
	}
	if err := vfs.WriteFileAtomic(a.r.opts.FS, filepath.Join(a.r.opts.Dir, checkpointFile), data); err != nil {
		return fmt.Errorf("cannot write the checkpoint: %w", err)
	}
	a.unsynced = 0
	a.synced.raise(applied)
	a.r.counts.checkpoints.Add(1)
	if err := a.r.opts.Journal.Truncate(applied + 1); err != nil {
		return fmt.Errorf("cannot let go of the journal: %w", err)
	}
	return nil
}

// setAsidePrefix begins the names of files with entries that cannot be applied.
const setAsidePrefix = "set-aside-"

// setAside keeps an entry that can never be applied in a file of its own, so
// that the rest goes on and nothing is lost. With an error the file is not
// there, and the journal must keep the entry.
func (a *applier) setAside(e journal.Entry, cause error) error {
	path := filepath.Join(a.r.opts.Dir, fmt.Sprintf("%s%d-kind-%d.pb", setAsidePrefix, e.Seq, e.Kind))
	if err := vfs.WriteFileAtomic(a.r.opts.FS, path, e.Payload); err != nil {
		return fmt.Errorf("cannot apply an entry (%w) and cannot set it aside: %w", cause, err)
	}
	a.r.counts.setAside.Add(1)
	a.log.Error("an entry cannot be applied and was set aside", "seq", e.Seq, "file", path, "error", cause)
	return nil
}
