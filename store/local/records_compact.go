package local

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
)

// maxCompact is the size of a day, in bytes on disk, up to which
// [Records.Compact] merges it. It takes a few seconds at most; of a larger day
// the parts that are left unmerged are a small share.
const maxCompact = 128 << 20

// Compact merges days that are small and lie in several parts: one part takes
// some percent less room than many. Rows may be appended meanwhile. It is meant
// for times when nothing comes in. It returns early, without an error, when ctx
// ends.
func (r *Records) Compact(ctx context.Context) error {
	leave, err := r.gate.enter()
	if err != nil {
		return fmt.Errorf("cannot compact records: %w", err)
	}
	defer leave()
	for _, name := range r.storage.PartitionList() {
		if ctx.Err() != nil {
			return nil
		}
		// Merging needs as much room again as the parts have.
		if err := r.guard.mayAppend(); err != nil {
			return fmt.Errorf("cannot compact records: %w", err)
		}
		dir := filepath.Join(r.opts.Dir, "logstorage", "partitions", name, "datadb")
		parts, err := countParts(filepath.Join(dir, "parts.json"))
		if err != nil {
			return fmt.Errorf("cannot compact records: %w", err)
		}
		if parts < 2 || folderSize(dir) > maxCompact {
			continue
		}
		r.storage.MustForceMerge(name)
	}
	return nil
}

// folderSize adds up the files below dir; those that go away meanwhile do not
// count.
func folderSize(dir string) int64 {
	var total int64
	// Files vanish while parts are merged, so errors say nothing.
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		if info, err := d.Info(); err == nil {
			total += info.Size()
		}
		return nil
	})
	return total
}
