package folder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"inquest/journal/vfs"
	"inquest/store/payload"
)

const root = "/data/payloads"

// presence is what is known about a user's reference to a payload.
type presence int

const (
	not  presence = iota // it must be gone
	may                  // the call that adds or removes it failed
	must                 // it must be there
)

// world is a store with faults, and what must be in it.
type world struct {
	t     *testing.T
	rng   *rand.Rand
	m     *vfs.Mem
	s     payload.Store
	now   time.Time
	refs  map[string]map[string]presence // by content, by user
	doubt map[string]bool                // users whose erasure failed: all or nothing
	log   []string
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{
		t: t, rng: rand.New(rand.NewPCG(seed, 7)), m: vfs.NewMem(seed), now: time.Unix(1.8e9, 0),
		refs: map[string]map[string]presence{}, doubt: map[string]bool{},
	}
	w.open()
	return w
}

func (w *world) options() payload.Options {
	return payload.Options{Now: func() time.Time { return w.now }}
}

func (w *world) open() {
	w.t.Helper()
	s, err := Open(context.Background(), w.m, root, w.options())
	if err != nil {
		w.fatal("Open: %v", err)
	}
	w.s = s
}

func (w *world) fatal(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("%s\nafter:\n%s", fmt.Sprintf(format, args...), strings.Join(w.log, "\n"))
}

func (w *world) step() {
	w.now = w.now.Add(time.Second)
	user, content := fmt.Sprint("user", w.rng.IntN(4)), fmt.Sprint("content ", w.rng.IntN(6))
	if w.rng.IntN(3) == 0 {
		content += strings.Repeat(".", 3000) // more than a sector
	}
	switch w.rng.IntN(10) {
	case 0, 1:
		w.erase(user)
	case 2:
		w.delete(content)
	case 3:
		// The answer may be an error of a fault, or a payload that a failed call left.
		_, err := w.s.Get(context.Background(), payload.SumOf([]byte(content)))
		w.note("get %.12s: %v", content, err)
	default:
		w.put(user, content)
	}
}

func (w *world) note(format string, args ...any) { w.log = append(w.log, fmt.Sprintf(format, args...)) }

func (w *world) put(user, content string) {
	_, err := w.s.Put(context.Background(), payload.Sum{}, payload.Meta{UserID: user, Time: w.now}, []byte(content))
	if err != nil && w.rng.IntN(2) == 0 { // the same again, as an applier does
		w.note("put %s %.12s failed once: %v", user, content, err)
		_, err = w.s.Put(context.Background(), payload.Sum{}, payload.Meta{UserID: user, Time: w.now}, []byte(content))
	}
	w.note("put %s %.12s: %v", user, content, err)
	if w.refs[content] == nil {
		w.refs[content] = map[string]presence{}
	}
	switch {
	case errors.Is(err, payload.ErrErased):
		w.fatal("a payload of now counts as erased")
	case err == nil:
		w.refs[content][user] = must
	case w.refs[content][user] == not:
		w.refs[content][user] = may
	}
	// What comes after a failed erasure is not covered by it.
	if w.doubt[user] && err == nil {
		delete(w.doubt, user)
		for c := range w.refs {
			if c != content && w.refs[c][user] == must {
				w.refs[c][user] = may
			}
		}
	}
}

func (w *world) erase(user string) {
	_, err := w.s.EraseUser(context.Background(), user)
	w.note("erase %s: %v", user, err)
	if err != nil {
		w.doubt[user] = true
		return
	}
	delete(w.doubt, user)
	for _, users := range w.refs {
		users[user] = not
	}
}

func (w *world) delete(content string) {
	err := w.s.Delete(context.Background(), payload.SumOf([]byte(content)))
	w.note("delete %.12s: %v", content, err)
	for user, p := range w.refs[content] {
		if err == nil {
			w.refs[content][user] = not
		} else if p == must {
			w.refs[content][user] = may
		}
	}
}

// crash loses power and opens the store again.
func (w *world) crash() {
	w.note("crash")
	w.m = w.m.CrashClone(w.rng)
	w.onDisk()
	w.open()
}

// onDisk checks, before anything is repaired, that what was erased or deleted
// left no file.
func (w *world) onDisk() {
	w.t.Helper()
	for content, users := range w.refs {
		if w.most(users) != not {
			continue
		}
		name := filepath.Join(root, contentPath(content))
		for _, suffix := range []string{"", ".tmp", ".refs", ".refs.tmp"} {
			if _, err := w.m.Stat(name + suffix); !errors.Is(err, fs.ErrNotExist) {
				w.fatal("%s%s of %.12s is on the disk again (%v)", name, suffix, content, err)
			}
		}
	}
}

func (w *world) most(users map[string]presence) presence {
	most := not
	for user, p := range users {
		if p == must && w.doubt[user] {
			p = may
		}
		most = max(most, p)
	}
	return most
}

func contentPath(content string) string {
	sum := payload.SumOf([]byte(content)).String()
	return "objects/" + sum[:2] + "/" + sum[2:4] + "/" + sum
}

// check compares the store with what must be in it, and learns what was open.
func (w *world) check() {
	w.t.Helper()
	keys := w.keys()
	kept := map[string]map[string]bool{}
	for content, users := range w.refs {
		sum := payload.SumOf([]byte(content))
		got, err := w.s.Get(context.Background(), sum)
		if most := w.most(users); errors.Is(err, payload.ErrNotFound) && most == must || err == nil && most == not {
			w.fatal("%.12s: %v, want presence %d (%v)", content, err, most, users)
		}
		kept[content] = map[string]bool{}
		if errors.Is(err, payload.ErrNotFound) {
			continue
		}
		if err != nil || string(got) != content {
			w.fatal("%.12s: %v, %q", content, err, got)
		}
		info, err := w.s.Stat(context.Background(), sum)
		if err != nil || len(info.Refs) == 0 {
			w.fatal("%.12s: %v, %+v", content, err, info)
		}
		for _, r := range info.Refs {
			kept[content][keys[r.User]] = true
		}
	}
	w.compare(kept)
}

func (w *world) compare(kept map[string]map[string]bool) {
	w.t.Helper()
	for i := range 4 {
		user := fmt.Sprint("user", i)
		there, lost := 0, 0
		for content, users := range w.refs {
			p, is := users[user], kept[content][user]
			if p == not && is || p == must && !is && !w.doubt[user] {
				w.fatal("%.12s of %s: there is %v, want presence %d", content, user, is, p)
			}
			if p == must && is {
				there++
			}
			if p == must && !is {
				lost++
			}
			users[user] = not
			if is {
				users[user] = must
			}
		}
		if there > 0 && lost > 0 {
			w.fatal("the erasure of %s was done by half: %d are left, %d are gone", user, there, lost)
		}
	}
	clear(w.doubt)
}

// keys tells whose references are whose.
func (w *world) keys() map[payload.UserKey]string {
	keys := map[payload.UserKey]string{}
	for i := range 4 {
		user := fmt.Sprint("user", i)
		sum, err := w.s.Put(context.Background(), payload.Sum{}, payload.Meta{UserID: user, Time: w.now.Add(time.Second)}, []byte("probe of "+user))
		if err != nil {
			w.fatal("cannot put a probe: %v", err)
		}
		info, err := w.s.Stat(context.Background(), sum)
		if err != nil {
			w.fatal("cannot see a probe: %v", err)
		}
		keys[info.Refs[0].User] = user
		if err := w.s.Delete(context.Background(), sum); err != nil {
			w.fatal("cannot delete a probe: %v", err)
		}
	}
	return keys
}

// A crash anywhere, after a fault or not, several times in a row: what was
// acknowledged is there, what was erased or deleted is not, and an erasure is
// done wholly or not at all.
func TestCrash(t *testing.T) {
	seeds := uint64(600)
	if testing.Short() {
		seeds = 100
	}
	for seed := range seeds {
		w := newWorld(t, seed)
		w.note("seed %d", seed)
		for range 4 {
			for range w.rng.IntN(12) {
				w.step()
			}
			// The machine stops at one call, or a call fails and work goes on.
			at, count := 1+w.rng.IntN(60), 1<<30
			if w.rng.IntN(2) == 0 {
				count = 1 + w.rng.IntN(3)
			}
			w.note("calls from %d on fail, %d of them", at, count)
			w.m.SetFault(vfs.FailNth(at, count, syscall.EIO))
			for range 2 + w.rng.IntN(8) {
				w.step()
			}
			w.m.SetFault(nil)
			w.crash()
			w.check()
		}
	}
}

// A full disk is told as such, harms nothing, and can be tried again.
func TestNoRoom(t *testing.T) {
	w := newWorld(t, 1)
	w.put("user0", "content 0")
	for room := int64(0); room < 6000; room += 500 {
		w.m.SetRoom(w.m.Used() + room)
		_, err := w.s.Put(context.Background(), payload.Sum{}, payload.Meta{UserID: "user1", Time: w.now}, make([]byte, 5000))
		if room >= 5000 && err == nil {
			break
		}
		if !errors.Is(err, payload.ErrUnavailable) || !vfs.IsNoSpace(err) {
			t.Fatalf("with %d bytes: %v", room, err)
		}
		if _, err := w.s.Get(context.Background(), payload.SumOf(make([]byte, 5000))); !errors.Is(err, payload.ErrNotFound) {
			t.Fatalf("got %v", err)
		}
	}
	w.m.SetRoom(-1)
	w.put("user1", "content 1")
	w.crash()
	w.check()
}

// While the store is open nobody else can open it.
func TestLock(t *testing.T) {
	w := newWorld(t, 1)
	if _, err := New(w.m, root); !errors.Is(err, vfs.ErrLocked) {
		t.Fatalf("got %v", err)
	}
	if err := w.s.Close(); err != nil {
		t.Fatal(err)
	}
	w.open()
}

// A bit that flips on the disk is seen.
func TestBitRot(t *testing.T) {
	w := newWorld(t, 1)
	w.put("user0", "content 0")
	if err := w.m.FlipBit(filepath.Join(root, contentPath("content 0")), 3, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := w.s.Get(context.Background(), payload.SumOf([]byte("content 0"))); !errors.Is(err, payload.ErrDamaged) {
		t.Fatalf("got %v", err)
	}
}

// Files of others in the folder are named, not touched.
func TestForeignFile(t *testing.T) {
	w := newWorld(t, 1)
	if err := errors.Join(w.s.Close(), w.m.MkdirAll(root+"/objects/00")); err != nil {
		t.Fatal(err)
	}
	if err := vfs.WriteFileAtomic(w.m, root+"/objects/00/notes.txt", []byte("mine")); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(context.Background(), w.m, root, w.options()); err == nil || !strings.Contains(err.Error(), "notes.txt") {
		t.Fatalf("got %v", err)
	}
}

// Without the key in the format, users could not be found.
func TestFormatLost(t *testing.T) {
	w := newWorld(t, 1)
	w.put("user0", "content 0")
	if err := errors.Join(w.s.Close(), w.m.Remove(root+"/format")); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(context.Background(), w.m, root, w.options()); err == nil || !strings.Contains(err.Error(), `not "format"`) {
		t.Fatalf("got %v", err)
	}
}

// After a failed sync it is not enough that the files look right.
func TestPutAgainAfterFailedSync(t *testing.T) {
	for seed := range uint64(20) {
		w := newWorld(t, seed)
		w.put("user0", "shared")
		put := func() error {
			_, err := w.s.Put(context.Background(), payload.Sum{}, payload.Meta{UserID: "user1", Time: w.now}, []byte("shared"))
			return err
		}
		w.m.SetFault(vfs.FailNth(1, 1, syscall.EIO, vfs.OpSyncDir))
		if err := put(); !errors.Is(err, payload.ErrUnavailable) {
			t.Fatalf("got %v", err)
		}
		if err := put(); err != nil {
			t.Fatal(err)
		}
		w.refs["shared"]["user1"] = must
		w.crash()
		w.check()
	}
}
