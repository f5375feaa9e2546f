package local

import (
	"context"
	"crypto/rand"
	"fmt"
	"path/filepath"
	"time"

	"github.com/VictoriaMetrics/VictoriaLogs/lib/logstorage"

	"inquest/store"
)

// Delete removes the rows that a LogsQL filter takes, and returns when they are
// gone from the disk: the files that hold some of them are written again without
// them. In place of a row that was the first of its block the library leaves an
// empty one, of which only time and stream are known: queries that ask for any
// field do not see it. It is [store.ErrUnavailable] while there is no room to write
// a day again. Rows that are not synced MAY come back after a crash, and rows appended
// during the call MAY stay. Once begun it is completed, also when ctx ends first
// or the process does; it may be repeated.
func (r *Records) Delete(ctx context.Context, filter string) error {
	leave, err := r.gate.enter()
	if err != nil {
		return fmt.Errorf("cannot delete records: %w", err)
	}
	defer leave()
	// Above the clock: a row's time may be ahead of it.
	until := time.Now().Add(r.opts.FutureRetention).UnixNano()
	f, err := logstorage.ParseFilterAtTimestamp(filter, until)
	if err != nil {
		return fmt.Errorf("cannot delete records: %w: cannot parse LogsQL: %w", store.ErrQuery, err)
	}
	if err := r.roomToRewrite(); err != nil {
		return fmt.Errorf("cannot delete records: %w", err)
	}
	ctx, cancel := r.gate.whileOpen(ctx)
	defer cancel()
	id := rand.Text()
	if err := r.storage.DeleteRunTask(ctx, id, until, []logstorage.TenantID{{}}, f); err != nil {
		return fmt.Errorf("cannot delete records: %w", err)
	}
	// The library looks for tasks once a second.
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		running, err := r.deleting(ctx, id)
		if err != nil {
			return fmt.Errorf("cannot delete records: %w", err)
		}
		if !running {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("cannot wait for the deletion of records, which goes on: %w", context.Cause(ctx))
		}
	}
}

// roomToRewrite returns nil when a whole day can be written again. The library
// takes one day after the other, and ends the process when the disk is full.
func (r *Records) roomToRewrite() error {
	var largest int64
	for _, name := range r.storage.PartitionList() {
		largest = max(largest, folderSize(filepath.Join(r.opts.Dir, "logstorage", "partitions", name, "datadb")))
	}
	return r.guard.need(r.guard.min + uint64(largest))
}

func (r *Records) deleting(ctx context.Context, id string) (bool, error) {
	tasks, err := r.storage.DeleteActiveTasks(ctx)
	if err != nil {
		return false, err
	}
	for _, t := range tasks {
		if t.TaskID == id {
			return true, nil
		}
	}
	return false, nil
}
