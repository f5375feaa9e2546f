package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// flushInterval is when the library writes rows to disk that no Sync has
// written before.
const flushInterval = 5 * time.Second

// Flush implements [store.Records].
func (r *Records) Flush(ctx context.Context) error {
	leave, err := r.gate.enter()
	if err != nil {
		return fmt.Errorf("cannot flush records: %w", err)
	}
	defer leave()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("cannot flush records: %w", err)
	}
	r.flush()
	return nil
}

// Sync implements [store.Records].
//
// The library has no call for it, but making a snapshot of a day does the work:
// it writes the parts in memory, first of the index, then of the rows, to files
// (filestream.Writer.MustClose syncs each, fs.MustSyncPathAndParentDir the
// folders), and enters them in parts.json, which is replaced atomically and
// synced. Hard links of the snapshot itself are deleted at once. Parts that are
// being merged in memory at that moment are passed over, so it is repeated until
// the library counts nothing in memory. Meanwhile nobody adds rows: the caller of
// Sync is the only one who could.
func (r *Records) Sync(ctx context.Context) error {
	leave, err := r.gate.enter()
	if err != nil {
		return fmt.Errorf("cannot sync records: %w", err)
	}
	defer leave()
	if len(r.app.unsynced) == 0 && !r.app.newIndex {
		return nil
	}
	r.flush()
	err = r.snapshotUntil(ctx, func() (bool, error) {
		s := r.stats()
		if s.InmemoryRowsCount > 0 || s.PendingRows > 0 {
			return false, nil
		}
		return r.indexOnDisk()
	})
	if err != nil {
		return fmt.Errorf("cannot sync records: %w", err)
	}
	clear(r.app.unsynced)
	r.app.row.known = false // the next row makes its day unsynced again
	return nil
}

// syncIndex makes the streams of rows appended before durable. A row whose
// stream is not in the index after a crash could not be found by it, and would
// not be appended again, since it is there. So the index should go first. What
// fails here, Sync does again: the rows are appended in any case.
func (r *Records) syncIndex(ctx context.Context) {
	if r.guard.mayFlush() != nil {
		return
	}
	// Waits for items on their way from the buffer to a part, which are not counted.
	r.flush()
	if err := r.snapshotUntil(ctx, r.indexOnDisk); err != nil {
		r.opts.Logger.Warn("cannot write the index of records yet", "error", err)
	}
}

// snapshotUntil makes snapshots of the unsynced days until done says so.
func (r *Records) snapshotUntil(ctx context.Context, done func() (bool, error)) error {
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		ok, err := done()
		if err != nil || ok {
			return err
		}
		if err := r.guard.mayFlush(); err != nil {
			return err
		}
		for d := range r.app.unsynced {
			name := time.Unix(0, d).UTC().Format(partitionFormat)
			for _, path := range r.storage.PartitionSnapshotMustCreate(name) {
				if err := r.storage.PartitionSnapshotDelete(path); err != nil && !r.gone(name) {
					return err
				}
			}
		}
		ok, err = done()
		if err != nil || ok {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// gone reports whether a day was deleted by retention.
func (r *Records) gone(name string) bool {
	for _, n := range r.storage.PartitionList() {
		if n == name {
			return false
		}
	}
	return true
}

// indexOnDisk reports whether all parts of the index are in files. The library
// counts parts in memory and in files together, so they are compared with the
// number of files. As nothing is added meanwhile, parts in memory can only
// become files, at most one each: equal numbers mean that none is left.
func (r *Records) indexOnDisk() (bool, error) {
	if !r.app.newIndex {
		return true, nil
	}
	s := r.stats()
	if s.IndexdbPendingItems > 0 {
		r.flush()
		return false, nil
	}
	files := uint64(0)
	for _, name := range r.storage.PartitionList() {
		n, err := countParts(filepath.Join(r.opts.Dir, "logstorage", "partitions", name, "indexdb", "parts.json"))
		if err != nil {
			return false, err
		}
		files += n
	}
	if files < s.IndexdbPartsCount {
		return false, nil
	}
	r.app.newIndex, r.app.newRows, r.app.lastIndex = false, 0, time.Now()
	return true, nil
}

// countParts returns how many parts a parts.json lists; without the file, none.
func countParts(path string) (uint64, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	var names []string
	if err := json.Unmarshal(data, &names); err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return uint64(len(names)), nil
}
