package s3

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"inquest/store/payload"
)

// failing is a transport whose requests fail from the n-th on, after they were
// carried out or before, count of them.
type failing struct {
	http.RoundTripper
	seen, from, count atomic.Int64
	carried           bool
}

func (f *failing) RoundTrip(r *http.Request) (*http.Response, error) {
	n := f.seen.Add(1)
	if from := f.from.Load(); from == 0 || n < from || n >= from+f.count.Load() {
		return f.RoundTripper.RoundTrip(r)
	}
	if f.carried {
		if resp, err := f.RoundTripper.RoundTrip(r); err == nil {
			resp.Body.Close()
		}
	} else if r.Body != nil {
		r.Body.Close()
	}
	return nil, errors.New("connection reset by the test")
}

func (f *failing) set(from, count int64) {
	f.seen.Store(0)
	f.from.Store(from)
	f.count.Store(count)
}

// An erasure that fails at any request, whether the server carried it out or
// not, is completed by repeating it and by opening the store again.
func TestEraseFails(t *testing.T) {
	for from := int64(1); from <= 12; from++ {
		for _, carried := range []bool{false, true} {
			for _, again := range []bool{false, true} {
				t.Run(fmt.Sprint(from, carried, again), func(t *testing.T) {
					t.Parallel()
					eraseFails(t, from, carried, again)
				})
			}
		}
	}
}

func eraseFails(t *testing.T, from int64, carried, again bool) {
	c := serve(t, from%2 == 0)
	f := &failing{RoundTripper: c.Transport, carried: carried}
	c.Transport, c.Retries = f, 1
	open := func() payload.Store {
		s, err := Open(t.Context(), c, payload.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open()
	put := func(user, content string) payload.Sum {
		sum, err := s.Put(t.Context(), payload.Sum{}, payload.Meta{UserID: user, Time: time.Now()}, []byte(content))
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	own, shared := put("ann", "own"), put("ann", "shared")
	put("bob", "shared")
	f.set(from, 1<<30)
	_, err := s.EraseUser(t.Context(), "ann")
	f.set(0, 0)
	if err == nil && f.seen.Load() >= from {
		t.Fatal("no error")
	}
	noted := false
	b, errNew := New(t.Context(), c)
	if errNew != nil {
		t.Fatal(errNew)
	}
	if err := b.List(t.Context(), "erased", func(payload.Entry) error { noted = true; return nil }); err != nil {
		t.Fatal(err)
	}
	if again {
		if _, err := s.EraseUser(t.Context(), "ann"); err != nil {
			t.Fatal(err)
		}
		noted = true
	} else {
		s = open() // without a Close, as after a crash
	}
	_, err = s.Get(t.Context(), own)
	if errors.Is(err, payload.ErrNotFound) != noted {
		t.Fatalf("noted %v, got %v", noted, err)
	}
	info, err := s.Stat(t.Context(), shared)
	if want := map[bool]int{true: 1, false: 2}[noted]; err != nil || len(info.Refs) != want {
		t.Fatalf("noted %v, got %+v, %v", noted, info, err)
	}
}

// In a bucket with versions nothing of an erased payload is left.
func TestErasesVersions(t *testing.T) {
	c := serve(t, true)
	c.Prefix = "one"
	s, err := Open(t.Context(), c, payload.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 { // three versions of the references
		m := payload.Meta{UserID: "ann", RequestID: fmt.Sprint(i), Time: time.Now()}
		if _, err := s.Put(t.Context(), payload.Sum{}, m, []byte("own")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.EraseUser(t.Context(), "ann"); err != nil {
		t.Fatal(err)
	}
	b, err := New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	for o := range b.client.ListObjectsIter(t.Context(), bucket, minio.ListObjectsOptions{WithVersions: true, Recursive: true}) {
		if o.Err != nil || strings.HasPrefix(o.Key, "one/objects/") {
			t.Errorf("left: %s, version %s, %v", o.Key, o.VersionID, o.Err)
		}
	}
}

// Passing failures are repeated.
func TestRetries(t *testing.T) {
	c := serve(t, false)
	f := &failing{RoundTripper: c.Transport}
	c.Transport = f
	s, err := Open(t.Context(), c, payload.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f.set(1, 2)
	if _, err := s.Put(t.Context(), payload.Sum{}, payload.Meta{Time: time.Now()}, []byte("x")); err != nil {
		t.Fatal(err)
	}
}

func TestConfig(t *testing.T) {
	c := serve(t, false)
	f := func(change func(*Config), want string) {
		t.Helper()
		c := c
		change(&c)
		if _, err := New(t.Context(), c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	f(func(c *Config) { c.Endpoint = "" }, "endpoint is missing")
	f(func(c *Config) { c.Endpoint = "https://s3.example.com" }, "has a scheme")
	f(func(c *Config) { c.Bucket = "" }, "bucket is missing")
	f(func(c *Config) { c.Bucket = "other" }, "there is no bucket other")
	f(func(c *Config) { c.AccessKey = "" }, "belong together")
	f(func(c *Config) { c.Retries = -1 }, "below zero")
	f(func(c *Config) { c.Endpoint, c.Retries = "127.0.0.1:1", 1 }, "cannot reach bucket")
}

// Two prefixes in a bucket share nothing, and a leading slash makes no
// difference.
func TestPrefix(t *testing.T) {
	c := serve(t, false)
	var sums []payload.Sum
	for _, prefix := range []string{"a", "/b/", ""} {
		c.Prefix = prefix
		s, err := Open(t.Context(), c, payload.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if n := s.Usage().Payloads; n != 0 {
			t.Errorf("%q holds %d payloads", prefix, n)
		}
		sum, err := s.Put(t.Context(), payload.Sum{}, payload.Meta{Time: time.Now()}, []byte(prefix))
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, sum)
	}
	if sums[0] == sums[1] || sums[1] == sums[2] {
		t.Error(sums)
	}
}
