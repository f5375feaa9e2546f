// Package folder keeps payloads as files in a local folder. The layout is in
// docs/payloads.md.
package folder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"

	"inquest/journal/vfs"
	"inquest/store/payload"
)

// Folder is a [payload.Blobs] in a folder. A second process cannot open it.
type Folder struct {
	fsys vfs.FS
	root string
	lock io.Closer

	made sync.Map // folders whose names are durable
}

var _ payload.Blobs = (*Folder)(nil)

const (
	lockName   = "LOCK"
	tempSuffix = ".tmp"
)

// New takes the folder, which it makes when it is missing. Only files that it
// made should lie there.
func New(fsys vfs.FS, root string) (*Folder, error) {
	root = filepath.Clean(root)
	f := &Folder{fsys: fsys, root: root}
	if err := f.makeDir(root); err != nil {
		return nil, fmt.Errorf("cannot make the folder of payloads: %w", err)
	}
	lock, err := fsys.Lock(filepath.Join(root, lockName))
	if err != nil {
		return nil, fmt.Errorf("cannot take the folder of payloads: %w", err)
	}
	f.lock = lock
	// List covers the folders below; here lies only the format.
	if err := f.removeTemps(root, nil); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot take the folder of payloads: %w", err), lock.Close())
	}
	return f, nil
}

// Open opens the payload store in a folder, or makes one.
func Open(ctx context.Context, fsys vfs.FS, root string, o payload.Options) (payload.Store, error) {
	f, err := New(fsys, root)
	if err != nil {
		return nil, err
	}
	return payload.Open(ctx, f, o)
}

func (f *Folder) path(name string) string { return filepath.Join(f.root, filepath.FromSlash(name)) }

// Write implements [payload.Blobs]: every file under a temporary name, synced,
// then renamed; the names are durable after one sync of the folder.
func (f *Folder) Write(ctx context.Context, blobs ...payload.Blob) error {
	if len(blobs) == 0 {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	dir := filepath.Dir(f.path(blobs[0].Name))
	if err := f.makeDir(dir); err != nil {
		return err
	}
	for i, b := range blobs {
		if err := f.writeTemp(f.path(b.Name)+tempSuffix, b.Data); err != nil {
			return errors.Join(err, f.dropTemps(blobs[:i+1]))
		}
	}
	for i, b := range blobs {
		name := f.path(b.Name)
		if err := f.fsys.Rename(name+tempSuffix, name); err != nil {
			return errors.Join(err, f.dropTemps(blobs[i:]))
		}
	}
	if err := f.fsys.SyncDir(dir); err != nil {
		return fmt.Errorf("cannot make the names in %s durable: %w", dir, err)
	}
	return nil
}

// makeDir makes a folder below the root, and the root itself. That a folder is
// there does not say that its name is durable: another call, or a process that
// ended early, may have made it and not synced. So the first use syncs.
func (f *Folder) makeDir(dir string) error {
	if _, made := f.made.Load(dir); made {
		return nil
	}
	if dir != f.root {
		if err := f.makeDir(filepath.Dir(dir)); err != nil {
			return err
		}
	}
	if err := f.fsys.MkdirAll(dir); err != nil {
		return err
	}
	if err := f.fsys.SyncDir(filepath.Dir(dir)); err != nil {
		return fmt.Errorf("cannot make the folder %s durable: %w", dir, err)
	}
	f.made.Store(dir, true)
	return nil
}

func (f *Folder) writeTemp(temp string, data []byte) error {
	if err := f.removeOne(temp); err != nil {
		return err
	}
	file, err := f.fsys.Create(temp)
	if err != nil {
		return err
	}
	if _, err := file.WriteAt(data, 0); err != nil {
		return errors.Join(err, file.Close())
	}
	if err := file.Sync(); err != nil {
		return errors.Join(fmt.Errorf("cannot make %s durable: %w", temp, err), file.Close())
	}
	return file.Close()
}

func (f *Folder) dropTemps(blobs []payload.Blob) error {
	var err error
	for _, b := range blobs {
		err = errors.Join(err, f.removeOne(f.path(b.Name)+tempSuffix))
	}
	return err
}

// removeOne takes a name away, if it is there. It is not durable.
func (f *Folder) removeOne(path string) error {
	if err := f.fsys.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Read implements [payload.Blobs].
func (f *Folder) Read(ctx context.Context, name string, limit int64) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	file, err := f.fsys.Open(f.path(name))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	size, err := file.Size()
	if err != nil {
		return nil, err
	}
	data := make([]byte, min(size, limit+1))
	if len(data) == 0 {
		return data, nil
	}
	n, err := file.ReadAt(data, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return data[:n], nil
}

// Remove implements [payload.Blobs]. Files under temporary names go too.
func (f *Folder) Remove(ctx context.Context, names ...string) error {
	if len(names) == 0 {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, name := range names {
		for _, path := range []string{f.path(name), f.path(name) + tempSuffix} {
			if err := f.removeOne(path); err != nil {
				return err
			}
		}
	}
	err := f.fsys.SyncDir(filepath.Dir(f.path(names[0])))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // no such folder, so nothing was in it
	}
	return err
}

// List implements [payload.Blobs].
func (f *Folder) List(ctx context.Context, dir string, fn func(payload.Entry) error) error {
	return f.list(ctx, dir, 2, fn)
}

// list lists a folder and, levels deep, those below. It tries the 256 possible
// names instead of asking which there are: [vfs.FS] lists names without saying
// which are folders.
func (f *Folder) list(ctx context.Context, dir string, levels int, fn func(payload.Entry) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := f.removeTemps(f.path(dir), func(base string) error {
		if levels > 0 && isFan(base) {
			return nil // some file systems list folders
		}
		return fn(payload.Entry{Name: dir + "/" + base, Size: -1})
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if levels == 0 {
		return nil
	}
	for i := range 256 {
		if err := f.list(ctx, fmt.Sprintf("%s/%02x", dir, i), levels-1, fn); err != nil {
			return err
		}
	}
	return nil
}

func isFan(base string) bool {
	return len(base) == 2 && strings.Trim(base, "0123456789abcdef") == ""
}

// removeTemps calls fn for each file in a folder that is not what an
// interrupted write has left; those go, durably.
func (f *Folder) removeTemps(dir string, fn func(base string) error) error {
	names, err := f.fsys.List(dir)
	if err != nil {
		return err
	}
	removed := false
	for _, base := range names {
		switch {
		case strings.HasSuffix(base, tempSuffix):
			if err := f.removeOne(filepath.Join(dir, base)); err != nil {
				return err
			}
			removed = true
		case fn != nil:
			if err := fn(base); err != nil {
				return err
			}
		}
	}
	if removed {
		return f.fsys.SyncDir(dir)
	}
	return nil
}

// Close implements [payload.Blobs].
func (f *Folder) Close() error { return f.lock.Close() }
