package truth

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"inquest/record"
)

// fileID tells whether a file is still the one that was hashed.
type fileID struct {
	dev, ino     uint64
	size         int64
	mtime, ctime int64 // ns
}

func (id fileID) newest() time.Time { return time.Unix(0, max(id.mtime, id.ctime)) }

// file is one file of a model.
type file struct {
	name string // below the model's folder, with slashes
	path string
	id   fileID
}

// tree is a model as it lies on the disk.
type tree struct {
	real string // the configured path with all links resolved
	// near is the real path of the folder with the configured last name: a file
	// may be a link into a store of blobs, whose names tell no version.
	near   string
	linked bool
	since  time.Time // of the link, where the path itself is one
	folder bool
	files  []file // sorted by name
	bytes  int64
}

// maxDepth bounds how deep folders may lie in one another.
const maxDepth = 64

func pathProblem(r Reason, subject, format string, args ...any) *Problem {
	return &Problem{Reason: r, Detail: fmt.Sprintf(format, args...), Quadrant: record.QuadrantResources, Subject: subject}
}

// readTree resolves a path and lists its files without reading them. It returns
// a problem where it cannot.
func readTree(configured string, maxFiles int, ignore []string) (*tree, *Problem) {
	t := &tree{}
	var err error
	if t.real, err = filepath.EvalSymlinks(configured); err != nil {
		return nil, pathError(configured, err, true)
	}
	clean := filepath.Clean(configured)
	t.linked = t.real != clean
	if dir, err := filepath.EvalSymlinks(filepath.Dir(clean)); err == nil {
		t.near = filepath.Join(dir, filepath.Base(clean))
	}
	if fi, err := os.Lstat(clean); err == nil && fi.Mode()&fs.ModeSymlink != 0 {
		t.since = fi.ModTime()
	}
	fi, err := os.Stat(t.real)
	switch {
	case err != nil:
		return nil, pathError(configured, err, true)
	case fi.Mode().IsRegular():
		t.files = []file{{name: filepath.Base(clean), path: t.real, id: identity(fi)}}
		t.bytes = fi.Size()
		return t, nil
	case !fi.IsDir():
		return nil, pathProblem(ReasonPathUnreadable, configured, "%s is neither a file nor a folder: set path to the model", configured)
	}
	t.folder = true
	w := walk{tree: t, max: maxFiles, ignore: ignore, inside: map[fileID]bool{}}
	if p := w.dir(t.real, "", fi, 0); p != nil {
		return nil, p
	}
	if len(t.files) == 0 {
		return nil, pathProblem(ReasonPathMissing, configured, "%s holds no file", configured)
	}
	slices.SortFunc(t.files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return t, nil
}

// walk lists a folder. Links are followed, since caches of models are made of them.
type walk struct {
	tree   *tree
	max    int
	ignore []string
	inside map[fileID]bool // folders that are being listed, against circles of links
}

func (w *walk) dir(dir, name string, fi fs.FileInfo, depth int) *Problem {
	id := identity(fi)
	key := fileID{dev: id.dev, ino: id.ino}
	if key.ino == 0 { // a system that tells no inodes; maxDepth ends circles
		key = fileID{size: int64(depth), mtime: id.mtime}
	}
	if w.inside[key] {
		return nil
	}
	if depth > maxDepth {
		return pathProblem(ReasonPathUnreadable, dir, "%s has folders more than %d deep: set path to the model's own folder", w.tree.real, maxDepth)
	}
	w.inside[key] = true
	defer delete(w.inside, key)
	d, err := os.Open(dir)
	if err != nil {
		return pathError(dir, err, depth == 0)
	}
	defer d.Close()
	for {
		// In parts, so that a folder of millions of names is given up early.
		entries, err := d.ReadDir(1024)
		for _, e := range entries {
			if p := w.entry(dir, name, e.Name(), depth); p != nil {
				return p
			}
		}
		if len(entries) == 0 || err != nil {
			break
		}
	}
	return nil
}

func (w *walk) entry(dir, prefix, base string, depth int) *Problem {
	for _, p := range w.ignore {
		if ok, err := path.Match(p, base); ok && err == nil {
			return nil
		}
	}
	full, name := filepath.Join(dir, base), path.Join(prefix, base)
	fi, err := os.Stat(full)
	if err != nil {
		return pathError(full, err, false)
	}
	switch {
	case fi.IsDir():
		return w.dir(full, name, fi, depth+1)
	case fi.Mode().IsRegular():
		if len(w.tree.files) >= w.max {
			return pathProblem(ReasonPathUnreadable, w.tree.real,
				"%s has more than %d files: set path to the model's own folder, name what is no part of it in ignore, or raise max_files", w.tree.real, w.max)
		}
		w.tree.files = append(w.tree.files, file{name: name, path: full, id: identity(fi)})
		w.tree.bytes += fi.Size()
	}
	return nil // pipes, sockets and devices hold no model
}

// pathError says what is wrong with a path, where it is the configured one or a
// part of it.
func pathError(p string, err error, whole bool) *Problem {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return pathProblem(ReasonPathUnreadable, p, "%s cannot be read: %s; give inquest the right to read it", p, err)
	case errors.Is(err, fs.ErrNotExist) && whole:
		return pathProblem(ReasonPathMissing, p, "%s does not exist, or a link on it leads nowhere", p)
	case errors.Is(err, fs.ErrNotExist):
		return pathProblem(ReasonFileChanging, p, "%s is a link that leads nowhere, or it vanished while it was looked at", p)
	default:
		return pathProblem(ReasonPathUnreadable, p, "%s cannot be read: %s", p, err)
	}
}
