// Package payloadtest checks that a payload store keeps the promises of package
// payload. Each place runs it:
//
//	func TestStore(t *testing.T) {
//		payloadtest.Store(t, func(t testing.TB, place string) payload.Blobs { … })
//	}
//
// The function opens the place, which may hold what an earlier call left.
// Places of different names share nothing.
package payloadtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"inquest/store/payload"
)

// OpenBlobs opens a place.
type OpenBlobs func(t testing.TB, place string) payload.Blobs

// Store checks a [payload.Store] over the places that open opens, and the
// places themselves.
func Store(t *testing.T, open OpenBlobs) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, s *suite)
	}{
		{"Blobs", testBlobs},
		{"RoundTrip", testRoundTrip},
		{"Mismatch", testMismatch},
		{"Limits", testLimits},
		{"KeepsNoReference", testKeepsNoReference},
		{"Idempotent", testIdempotent},
		{"LongNames", testLongNames},
		{"ManyRefs", testManyRefs},
		{"OldRefs", testOldRefs},
		{"Damaged", testDamaged},
		{"DamagedRefs", testDamagedRefs},
		{"Walk", testWalk},
		{"Delete", testDelete},
		{"Erase", testErase},
		{"EraseStays", testEraseStays},
		{"EraseInterrupted", testEraseInterrupted},
		{"EraseUnreadable", testEraseUnreadable},
		{"EraseFuture", testEraseFuture},
		{"EraseForgotten", testEraseForgotten},
		{"SweepAge", testSweepAge},
		{"SweepBounds", testSweepBounds},
		{"MakesRoom", testMakesRoom},
		{"Reopen", testReopen},
		{"LeftBehind", testLeftBehind},
		{"UserKey", testUserKey},
		{"Closed", testClosed},
		{"Context", testContext},
		{"Concurrent", testConcurrent},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &suite{
				t: t, ctx: t.Context(), openBlobs: open, place: strings.ToLower(c.name),
				now: time.Now().UTC().Truncate(time.Millisecond),
			}
			s.o.Now = func() time.Time { return s.now }
			s.open()
			defer s.close()
			c.run(t, s)
		})
	}
}

// suite is a store under test, with short ways of using it.
type suite struct {
	payload.Store
	t         *testing.T
	ctx       context.Context
	openBlobs OpenBlobs
	place     string
	o         payload.Options
	now       time.Time
}

func (s *suite) open() {
	s.t.Helper()
	store, err := payload.Open(s.ctx, s.openBlobs(s.t, s.place), s.o)
	if err != nil {
		s.t.Fatalf("Open: %v", err)
	}
	s.Store = store
}

func (s *suite) close() {
	s.t.Helper()
	if s.Store == nil {
		return
	}
	if err := s.Close(); err != nil {
		s.t.Errorf("Close: %v", err)
	}
	s.Store = nil
}

func (s *suite) reopen() {
	s.t.Helper()
	s.close()
	s.open()
}

// withBlobs closes the store, changes what lies in the place, and opens it again.
func (s *suite) withBlobs(change func(payload.Blobs)) {
	s.t.Helper()
	s.close()
	b := s.openBlobs(s.t, s.place)
	change(b)
	s.must(b.Close())
	s.open()
}

func (s *suite) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *suite) want(err, want error) {
	s.t.Helper()
	if !errors.Is(err, want) {
		s.t.Fatalf("got %v, want %v", err, want)
	}
}

// meta is of a minute ago.
func (s *suite) meta(user string) payload.Meta {
	return payload.Meta{
		Service: "chat-api", UserID: user, RequestID: "r-" + user,
		Time: s.now.Add(-time.Minute), ContentType: "text/plain",
	}
}

func (s *suite) put(user, content string) payload.Sum {
	s.t.Helper()
	sum, err := s.Put(s.ctx, payload.Sum{}, s.meta(user), []byte(content))
	s.must(err)
	return sum
}

func (s *suite) kept(sum payload.Sum, content string) {
	s.t.Helper()
	got, err := s.Get(s.ctx, sum)
	s.must(err)
	if string(got) != content {
		s.t.Fatalf("got %.60q, want %.60q", got, content)
	}
}

func (s *suite) gone(sums ...payload.Sum) {
	s.t.Helper()
	for _, sum := range sums {
		_, err := s.Get(s.ctx, sum)
		s.want(err, payload.ErrNotFound)
		_, err = s.Stat(s.ctx, sum)
		s.want(err, payload.ErrNotFound)
	}
}

func (s *suite) stat(sum payload.Sum) payload.Info {
	s.t.Helper()
	info, err := s.Stat(s.ctx, sum)
	s.must(err)
	return info
}

func (s *suite) usage(payloads int, size int64) {
	s.t.Helper()
	if got := s.Usage(); got.Payloads != payloads || got.Bytes != size {
		s.t.Fatalf("usage is %+v, want %d payloads, %d bytes", got, payloads, size)
	}
}

func testRoundTrip(t *testing.T, s *suite) {
	m := s.meta("ann")
	m.InputHash = payload.SumOf([]byte("raw"))
	for _, content := range []string{"hello", "", "\x00\xff\n", strings.Repeat("x", payload.DefaultMaxPayload)} {
		want := payload.SumOf([]byte(content))
		for _, expected := range []payload.Sum{{}, want} {
			got, err := s.Put(s.ctx, expected, m, []byte(content))
			s.must(err)
			if got != want {
				t.Fatalf("got %s, want %s", got, want)
			}
		}
		s.kept(want, content)
		info := s.stat(want)
		if info.Sum != want || info.Size != int64(len(content)) || !info.Newest.Equal(m.Time) || len(info.Refs) != 1 || info.More {
			t.Fatalf("got %+v", info)
		}
		r := info.Refs[0]
		if r.User == (payload.UserKey{}) || !r.Time.Equal(m.Time) {
			t.Fatalf("got %+v", r)
		}
		r.User, r.Time = payload.UserKey{}, m.Time
		if r != (payload.Ref{Service: m.Service, RequestID: m.RequestID, Time: m.Time, ContentType: m.ContentType, InputHash: m.InputHash}) {
			t.Fatalf("got %+v", r)
		}
	}
	s.gone(payload.SumOf([]byte("never put")))
	s.usage(4, 5+3+payload.DefaultMaxPayload)
}

func testMismatch(_ *testing.T, s *suite) {
	_, err := s.Put(s.ctx, payload.SumOf([]byte("a")), s.meta("ann"), []byte("b"))
	s.want(err, payload.ErrMismatch)
	s.gone(payload.SumOf([]byte("a")), payload.SumOf([]byte("b")))
}

func testLimits(t *testing.T, s *suite) {
	s.close()
	s.o.MaxPayload, s.o.MaxTotal = 100, 50
	s.open()
	_, err := s.Put(s.ctx, payload.Sum{}, s.meta("ann"), make([]byte, 51))
	s.want(err, payload.ErrTooLarge)
	s.put("ann", strings.Repeat("a", 50))
	if _, err := s.Put(s.ctx, payload.Sum{}, payload.Meta{}, nil); err == nil {
		t.Fatal("kept a payload without a time")
	}
	s.close()
	s.o.MaxTotal = 1000
	s.open()
	_, err = s.Put(s.ctx, payload.Sum{}, s.meta("ann"), make([]byte, 101))
	s.want(err, payload.ErrTooLarge)
}

func testKeepsNoReference(_ *testing.T, s *suite) {
	content := []byte("the caller's own")
	sum, err := s.Put(s.ctx, payload.Sum{}, s.meta("ann"), content)
	s.must(err)
	clear(content)
	s.kept(sum, "the caller's own")
	got, err := s.Get(s.ctx, sum)
	s.must(err)
	clear(got)
	s.kept(sum, "the caller's own")
}

func testIdempotent(t *testing.T, s *suite) {
	sum := s.put("ann", "shared")
	before := s.stat(sum)
	for range 3 {
		s.put("ann", "shared")
	}
	if after := s.stat(sum); !slices.Equal(after.Refs, before.Refs) {
		t.Fatalf("got %+v, before %+v", after, before)
	}
	s.put("bob", "shared")
	m := s.meta("ann")
	m.RequestID = "another"
	_, err := s.Put(s.ctx, sum, m, []byte("shared"))
	s.must(err)
	m.Time = m.Time.Add(time.Second) // the same reference, later
	_, err = s.Put(s.ctx, sum, m, []byte("shared"))
	s.must(err)
	info := s.stat(sum)
	if len(info.Refs) != 3 || !info.Newest.Equal(m.Time) || !info.Refs[2].Time.Equal(m.Time) {
		t.Fatalf("got %+v", info)
	}
	s.usage(1, 6)
}

func testLongNames(t *testing.T, s *suite) {
	m := s.meta("")
	m.Service = strings.Repeat("服", 1000)
	m.RequestID = "\xff" + strings.Repeat("r", 1000)
	m.UserID = strings.Repeat("u", 10000)
	for range 2 {
		_, err := s.Put(s.ctx, payload.Sum{}, m, []byte("x"))
		s.must(err)
	}
	info := s.stat(payload.SumOf([]byte("x")))
	if len(info.Refs) != 1 || info.Refs[0].Service != strings.Repeat("服", payload.MaxName/3) || len(info.Refs[0].RequestID) != payload.MaxName {
		t.Fatalf("got %+v", info)
	}
	e, err := s.EraseUser(s.ctx, m.UserID)
	s.must(err)
	if len(e.Removed) != 1 {
		t.Fatalf("got %+v", e)
	}
}

func testManyRefs(t *testing.T, s *suite) {
	s.close()
	s.o.MaxRefs = 3
	s.open()
	put := func(user, request string, seconds int) {
		m := s.meta(user)
		m.RequestID, m.Time = request, m.Time.Add(time.Duration(seconds)*time.Second)
		_, err := s.Put(s.ctx, payload.Sum{}, m, []byte("x"))
		s.must(err)
	}
	sum := payload.SumOf([]byte("x"))
	requests := func() (all []string) {
		for _, r := range s.stat(sum).Refs {
			all = append(all, r.RequestID)
		}
		return all
	}
	f := func(user, request string, seconds int, more bool, want ...string) {
		t.Helper()
		put(user, request, seconds)
		if got := requests(); !slices.Equal(got, want) || s.stat(sum).More != more {
			t.Fatalf("got %q, more %v; want %q, more %v", got, s.stat(sum).More, want, more)
		}
	}
	f("ann", "1", 1, false, "1")
	f("bob", "2", 2, false, "1", "2")
	f("bob", "3", 3, false, "1", "2", "3")
	f("bob", "4", 4, false, "1", "3", "4") // the oldest of a user with another
	f("cid", "5", 5, false, "1", "4", "5")
	f("dan", "6", 6, true, "4", "5", "6") // ann is not listed any more
	for _, user := range []string{"ann", "bob", "cid", "dan"} {
		_, err := s.EraseUser(s.ctx, user)
		s.must(err)
	}
	// Nobody can tell how many there were, so it stays until retention takes it.
	if info := s.stat(sum); len(info.Refs) != 0 || !info.More {
		t.Fatalf("got %+v", info)
	}
	s.reopen()
	s.now = s.now.Add(payload.DefaultMaxAge)
	_, err := s.Sweep(s.ctx)
	s.must(err)
	s.now = s.now.Add(time.Hour) // where a listing tells when the references were written
	_, err = s.Sweep(s.ctx)
	s.must(err)
	s.gone(sum)
}

func testOldRefs(t *testing.T, s *suite) {
	sum := s.put("ann", "x")
	s.now = s.now.Add(payload.DefaultMaxAge)
	s.put("bob", "x")
	if info := s.stat(sum); len(info.Refs) != 1 {
		t.Fatalf("a reference is kept beyond the age: %+v", info)
	}
}

func testWalk(t *testing.T, s *suite) {
	want := map[payload.Sum]int64{}
	for i := range 20 {
		content := strings.Repeat("w", i)
		want[s.put("ann", content)] = int64(i)
	}
	var last payload.Sum
	seen := 0
	s.must(s.Walk(s.ctx, func(info payload.Info) error {
		if size, known := want[info.Sum]; !known || size != info.Size || len(info.Refs) != 1 {
			t.Errorf("got %+v", info)
		}
		if seen > 0 && bytes.Compare(last[:], info.Sum[:]) >= 0 {
			t.Error("not sorted")
		}
		last = info.Sum
		seen++
		return s.Delete(s.ctx, info.Sum) // the store may be used
	}))
	if seen != 20 {
		t.Errorf("saw %d", seen)
	}
	s.put("ann", "one")
	stop := errors.New("stop")
	if err := s.Walk(s.ctx, func(payload.Info) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
}

func testDelete(_ *testing.T, s *suite) {
	sum := s.put("ann", "x")
	s.must(s.Delete(s.ctx, sum))
	s.gone(sum)
	s.must(s.Delete(s.ctx, sum))
	s.reopen()
	s.gone(sum)
	s.usage(0, 0)
	s.put("ann", "x")
	s.kept(sum, "x")
}

func testReopen(t *testing.T, s *suite) {
	sums := map[payload.Sum]string{}
	for i := range 40 {
		content := fmt.Sprint("content ", i)
		sums[s.put(fmt.Sprint("user", i%3), content)] = content
	}
	before := s.Usage()
	s.reopen()
	if s.Usage() != before {
		t.Fatalf("usage is %+v, was %+v", s.Usage(), before)
	}
	for sum, content := range sums {
		s.kept(sum, content)
		if info := s.stat(sum); len(info.Refs) != 1 || info.Size != int64(len(content)) {
			t.Fatalf("got %+v", info)
		}
	}
	e, err := s.EraseUser(s.ctx, "user1")
	s.must(err)
	if len(e.Removed) != 13 || e.References != 13 {
		t.Fatalf("got %+v", e)
	}
}

func testClosed(_ *testing.T, s *suite) {
	s.must(s.Close())
	sum := payload.SumOf(nil)
	_, err := s.Put(s.ctx, sum, s.meta("ann"), nil)
	s.want(err, payload.ErrClosed)
	_, err = s.Get(s.ctx, sum)
	s.want(err, payload.ErrClosed)
	_, err = s.Stat(s.ctx, sum)
	s.want(err, payload.ErrClosed)
	s.want(s.Walk(s.ctx, nil), payload.ErrClosed)
	s.want(s.Delete(s.ctx, sum), payload.ErrClosed)
	_, err = s.EraseUser(s.ctx, "ann")
	s.want(err, payload.ErrClosed)
	_, err = s.Sweep(s.ctx)
	s.want(err, payload.ErrClosed)
	s.want(s.Close(), payload.ErrClosed)
	s.Store = nil
}

func testContext(_ *testing.T, s *suite) {
	sum := s.put("ann", "x")
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	_, err := s.Put(ctx, sum, s.meta("bob"), []byte("x"))
	s.want(err, context.Canceled)
	_, err = s.Get(ctx, sum)
	s.want(err, context.Canceled)
	s.want(s.Delete(ctx, sum), context.Canceled)
	_, err = s.EraseUser(ctx, "ann")
	s.want(err, context.Canceled)
	s.kept(sum, "x")
}
