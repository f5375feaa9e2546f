package admit

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

func TestReport(t *testing.T) {
	f := func(fill func(r *Report), wantRejected int, want string) {
		t.Helper()
		ctx, r := WithReport(context.Background())
		if ReportFrom(ctx) != r {
			t.Fatal("the context carries another report")
		}
		fill(r)
		if got := r.Rejected(); got != wantRejected {
			t.Errorf("rejected %d, want %d", got, wantRejected)
		}
		if got := r.Message(); got != want {
			t.Errorf("message %q, want %q", got, want)
		}
	}
	f(func(*Report) {}, 0, "")
	f(func(r *Report) { r.Reject(2, "a"); r.Reject(1, "b"); r.Reject(1, "b") }, 4, "2 rejected: a; 2 rejected: b")
	f(func(r *Report) { r.Reject(1, "a"); r.Reject(2, "b"); r.Warn("w") }, 3, "2 rejected: b; 1 rejected: a; 1 noted: w")
	f(func(r *Report) { r.Reject(0, "a"); r.Reject(-1, "b") }, 0, "")
	f(func(r *Report) {
		for i := range maxReasons + 5 {
			r.Reject(1, fmt.Sprintf("%c", 'a'+i))
		}
	}, maxReasons+5, func() string {
		s := "5 rejected: other reasons"
		for i := range maxReasons {
			s += fmt.Sprintf("; 1 rejected: %c", 'a'+i)
		}
		return s
	}())
}

func TestNoReport(t *testing.T) {
	r := ReportFrom(context.Background())
	r.Reject(1, "x")
	r.Warn("x")
	if r != nil || r.Rejected() != 0 || r.Message() != "" {
		t.Error("a nil report says something")
	}
}

func TestReportIsShort(t *testing.T) {
	r := &Report{}
	for i := range 10 {
		r.Reject(1, strings.Repeat("é", 200+i))
	}
	if m := r.Message(); len(m) > maxMessage || !utf8.ValidString(m) || !strings.HasSuffix(m, "...") {
		t.Errorf("message of %d bytes: %q", len(m), m)
	}
}

func TestReportConcurrently(t *testing.T) {
	r := &Report{}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 100 {
				r.Reject(1, fmt.Sprint(i))
				r.Warn("w")
				_ = r.Message()
			}
		})
	}
	wg.Wait()
	if r.Rejected() != 800 {
		t.Errorf("rejected %d", r.Rejected())
	}
}
