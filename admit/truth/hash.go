package truth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// hasher reads files at a limited rate. It is shared by all services.
type hasher struct {
	rate  int64 // bytes a second
	slots chan struct{}
	mu    sync.Mutex
	next  time.Time // when the next byte may be read
}

func newHasher(rate int64, atOnce int) *hasher {
	return &hasher{rate: rate, slots: make(chan struct{}, atOnce)}
}

// hashed is what came of hashing one file.
type hashed struct {
	sum string
	err error
	// young is set where the file changed so shortly before that its times may
	// not show a further change: such a hash is used, and made again later.
	young bool
}

// settled is the age from which the times of a file tell every later change:
// file systems count in ticks, some in seconds.
const settled = 2 * time.Second

var errChanging = errors.New("it changed while it was read")

// all hashes files one after the other. It returns what it has when ctx ends.
func (h *hasher) all(ctx context.Context, files []file) map[fileID]hashed {
	out := make(map[fileID]hashed, len(files))
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	case <-ctx.Done():
		return out
	}
	buf := make([]byte, 1<<20)
	for _, f := range files {
		if _, done := out[f.id]; done { // a hard link
			continue
		}
		begin := time.Now()
		sum, err := h.file(ctx, f, buf)
		if ctx.Err() != nil {
			return out
		}
		out[f.id] = hashed{sum: sum, err: err, young: err != nil || begin.Sub(f.id.newest()) < settled}
	}
	return out
}

// file hashes one file. Its identity is that of f before and after, or it is changing.
func (h *hasher) file(ctx context.Context, f file, buf []byte) (string, error) {
	in, err := os.OpenFile(f.path, os.O_RDONLY|openFlags, 0)
	if errors.Is(err, os.ErrNotExist) {
		return "", errChanging
	}
	if err != nil {
		return "", err
	}
	defer in.Close()
	same := func() bool {
		fi, err := in.Stat()
		return err == nil && fi.Mode().IsRegular() && identity(fi) == f.id
	}
	if !same() {
		return "", errChanging
	}
	sum := sha256.New()
	for {
		n, err := in.Read(buf)
		sum.Write(buf[:n])
		if !h.pace(ctx, n) {
			return "", ctx.Err()
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", fmt.Errorf("cannot read it: %w", err)
		}
	}
	if !same() {
		return "", errChanging
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// pace waits so that n bytes more do not exceed the rate. It returns false when
// ctx ends.
func (h *hasher) pace(ctx context.Context, n int) bool {
	h.mu.Lock()
	now := time.Now()
	if h.next.Before(now) {
		h.next = now
	}
	h.next = h.next.Add(time.Duration(float64(n) / float64(h.rate) * float64(time.Second)))
	wait := h.next.Sub(now)
	h.mu.Unlock()
	if wait < time.Millisecond { // timers are not finer; what is left adds up in next
		return ctx.Err() == nil
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// sums returns the hash of each file by name. Where one is missing it returns
// how many, and where one could not be made, the problem.
func (t *tree) sums(cache map[fileID]hashed) (map[string]string, int, *Problem) {
	out := make(map[string]string, len(t.files))
	missing := 0
	var problem *Problem
	for _, f := range t.files {
		switch h, ok := cache[f.id]; {
		case !ok:
			missing++
		case h.err == nil:
			out[f.name] = h.sum
		case problem != nil:
		case errors.Is(h.err, errChanging):
			problem = pathProblem(ReasonFileChanging, f.path, "%s changed or vanished while it was read", f.path)
		default:
			problem = pathError(f.path, h.err, false)
		}
	}
	return out, missing, problem
}

// digest is the hash of the model as a whole, see [Facts.SHA256].
func (t *tree) digest(sums map[string]string) string {
	if !t.folder {
		return sums[t.files[0].name]
	}
	all := sha256.New()
	for _, f := range t.files {
		fmt.Fprintf(all, "%s  %s\n", sums[f.name], f.name)
	}
	return hex.EncodeToString(all.Sum(nil))
}
