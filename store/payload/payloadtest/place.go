package payloadtest

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"inquest/store/payload"
)

// contentName and refsName are the documented names.
func contentName(s payload.Sum) string {
	t := s.String()
	return "objects/" + t[:2] + "/" + t[2:4] + "/" + t
}

func refsName(s payload.Sum) string { return contentName(s) + ".refs" }

func testBlobs(t *testing.T, s *suite) {
	s.close()
	s.place += "alone"
	b := s.openBlobs(t, s.place)
	defer func() { s.must(b.Close()) }()
	read := func(name, want string) {
		t.Helper()
		got, err := b.Read(s.ctx, name, 100)
		if err != nil || string(got) != want {
			t.Fatalf("%s holds %q, %v", name, got, err)
		}
	}
	list := func(want ...string) {
		t.Helper()
		var got []string
		s.must(b.List(s.ctx, "objects", func(e payload.Entry) error {
			if e.Size > 5 {
				t.Errorf("%s has %d bytes", e.Name, e.Size)
			}
			got = append(got, e.Name)
			return nil
		}))
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
	list()
	_, err := b.Read(s.ctx, "objects/ab/cd/x", 100)
	s.want(err, fs.ErrNotExist)
	s.must(b.Remove(s.ctx, "objects/ab/cd/x"))
	s.must(b.Write(s.ctx))
	s.must(b.Remove(s.ctx))
	s.must(b.Write(s.ctx, payload.Blob{Name: "objects/ab/cd/x", Data: []byte("one")}, payload.Blob{Name: "objects/ab/cd/y"}))
	s.must(b.Write(s.ctx, payload.Blob{Name: "objects/00/ff/x", Data: []byte("two")}))
	s.must(b.Write(s.ctx, payload.Blob{Name: "outside", Data: []byte("three")}))
	read("objects/ab/cd/x", "one")
	read("objects/ab/cd/y", "")
	read("outside", "three")
	s.must(b.Write(s.ctx, payload.Blob{Name: "objects/ab/cd/x", Data: []byte("anew")}))
	read("objects/ab/cd/x", "anew")
	if got, err := b.Read(s.ctx, "objects/ab/cd/x", 2); err != nil || len(got) != 3 {
		t.Fatalf("beyond the limit: %q, %v", got, err)
	}
	list("objects/00/ff/x", "objects/ab/cd/x", "objects/ab/cd/y")
	s.must(b.Remove(s.ctx, "objects/ab/cd/x", "objects/ab/cd/none", "objects/ab/cd/y"))
	list("objects/00/ff/x")
	stop := errors.New("stop")
	s.want(b.List(s.ctx, "objects", func(payload.Entry) error { return stop }), stop)
}

// Damage is told from absence, never returned, and mended by the same content.
func testDamaged(t *testing.T, s *suite) {
	changed, missing := s.put("ann", "the truth"), s.put("ann", "soon gone")
	b := s.reach()
	s.must(b.Write(s.ctx, payload.Blob{Name: contentName(changed), Data: []byte("the trush")}))
	s.must(b.Remove(s.ctx, contentName(missing)))
	for _, sum := range []payload.Sum{changed, missing} {
		_, err := s.Get(s.ctx, sum)
		s.want(err, payload.ErrDamaged)
		if !strings.Contains(err.Error(), sum.String()) {
			t.Fatalf("the error does not name the payload: %v", err)
		}
		s.stat(sum)
	}
	s.put("ann", "the truth")
	s.put("bob", "soon gone")
	s.kept(changed, "the truth")
	s.kept(missing, "soon gone")
	if info := s.stat(missing); len(info.Refs) != 2 {
		t.Fatalf("got %+v", info)
	}
}

func testDamagedRefs(t *testing.T, s *suite) {
	sum := s.put("ann", "x")
	s.must(s.reach().Write(s.ctx, payload.Blob{Name: refsName(sum), Data: []byte("nonsense")}))
	_, err := s.Stat(s.ctx, sum)
	s.want(err, payload.ErrDamaged)
	s.put("bob", "x")
	if info := s.stat(sum); len(info.Refs) != 1 || !info.More {
		t.Fatalf("got %+v", info)
	}
	s.reopen()
	s.kept(sum, "x")
}

// reach gives access to what lies in the place behind the store's back.
func (s *suite) reach() payload.Blobs {
	s.t.Helper()
	s.close()
	shared := sharedBlobs{s.openBlobs(s.t, s.place)}
	store, err := payload.Open(s.ctx, shared.Blobs, s.o)
	s.must(err)
	s.Store = store
	return shared
}

// sharedBlobs is closed with the store only.
type sharedBlobs struct{ payload.Blobs }

func (sharedBlobs) Close() error { return nil }

// What a Put or a removal that did not return has left is no payload.
func testLeftBehind(_ *testing.T, s *suite) {
	kept := s.put("ann", "kept")
	a, b := payload.SumOf([]byte("a")), payload.SumOf([]byte("b"))
	s.withBlobs(func(p payload.Blobs) {
		s.must(p.Write(s.ctx, payload.Blob{Name: contentName(a), Data: []byte("a")}))
		s.must(p.Write(s.ctx, payload.Blob{Name: refsName(b), Data: []byte("?")}))
	})
	s.gone(a, b)
	s.kept(kept, "kept")
	s.usage(1, 4)
	s.close()
	p := s.openBlobs(s.t, s.place)
	for _, name := range []string{contentName(a), refsName(b)} {
		_, err := p.Read(s.ctx, name, 10)
		s.want(err, fs.ErrNotExist)
	}
	s.must(p.Close())
	s.open()
}

func testSweepAge(t *testing.T, s *suite) {
	old, renewed := s.put("ann", "old"), s.put("ann", "renewed")
	s.now = s.now.Add(payload.DefaultMaxAge - 2*time.Minute)
	young := s.put("bob", "young")
	s.put("bob", "renewed")
	swept, err := s.Sweep(s.ctx)
	s.must(err)
	if swept != (payload.Swept{}) {
		t.Fatalf("swept too early: %+v", swept)
	}
	s.now = s.now.Add(2 * time.Minute)
	swept, err = s.Sweep(s.ctx)
	s.must(err)
	if swept != (payload.Swept{Expired: 1, Bytes: 3}) {
		t.Fatalf("got %+v", swept)
	}
	s.gone(old)
	s.kept(young, "young")
	s.kept(renewed, "renewed")
	s.reopen()
	s.gone(old)
	s.usage(2, 12)
}

func testSweepBounds(t *testing.T, s *suite) {
	var sums []payload.Sum
	for i := range 10 {
		s.now = s.now.Add(time.Second)
		sums = append(sums, s.put("ann", strings.Repeat("x", 10+i)))
	}
	s.close()
	s.o.MaxTotal = 19 + 18 + 17
	s.open()
	for _, sum := range sums { // times of writing are equal where listings tell them
		s.stat(sum)
	}
	swept, err := s.Sweep(s.ctx)
	s.must(err)
	if swept.Evicted < 7 || swept.Expired != 0 || s.Usage().Bytes > s.o.MaxTotal || s.Usage().Payloads < 2 {
		t.Fatalf("got %+v, holds %+v", swept, s.Usage())
	}
}

// Put keeps to the bounds, and what goes is the oldest.
func testMakesRoom(t *testing.T, s *suite) {
	s.close()
	s.o.MaxTotal, s.o.MaxPayloads = 1000, 15
	s.open()
	put := func(i, size int) payload.Sum {
		s.now = s.now.Add(time.Second)
		sum := s.put("ann", fmt.Sprintf("%0*d", size, i))
		if u := s.Usage(); u.Bytes > 1000 || u.Payloads > 15 {
			t.Fatalf("holds %+v", u)
		}
		return sum
	}
	var sums []payload.Sum
	for i := range 40 {
		sums = append(sums, put(i, 100))
	}
	s.gone(sums[:30]...)
	s.kept(sums[39], fmt.Sprintf("%0100d", 39))
	s.kept(sums[35], fmt.Sprintf("%0100d", 35))
	for i := range 40 {
		sums = append(sums, put(i, 10))
	}
	s.gone(sums[:60]...)
	if u := s.Usage(); u.Payloads < 13 {
		t.Fatalf("holds %+v", u)
	}
}

func testConcurrent(t *testing.T, s *suite) {
	const workers, rounds = 6, 25
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(w), 1))
			user := fmt.Sprint("user", w%3)
			for range rounds {
				content := fmt.Sprint("content ", rng.IntN(10))
				sum := payload.SumOf([]byte(content))
				var err error
				switch rng.IntN(6) {
				case 0:
					err = s.Delete(s.ctx, sum)
				case 1:
					var got []byte
					if got, err = s.Get(s.ctx, sum); err == nil && string(got) != content {
						t.Errorf("got %q", got)
					}
				case 2:
					_, err = s.EraseUser(s.ctx, fmt.Sprint("user", 3+rng.IntN(3)))
				default:
					_, err = s.Put(s.ctx, sum, s.meta(user), []byte(content))
				}
				if err != nil && !errors.Is(err, payload.ErrNotFound) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	before := s.Usage()
	s.reopen()
	if s.Usage() != before {
		t.Errorf("holds %+v, before %+v", s.Usage(), before)
	}
	s.must(s.Walk(s.ctx, func(info payload.Info) error {
		_, err := s.Get(s.ctx, info.Sum)
		return err
	}))
}
