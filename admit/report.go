// Package admit decides what may enter the journal. What cannot be stored is
// taken out of its batch with a reason that the sender is told; the rest of the
// batch goes on.
package admit

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Report collects what was refused of one request, and why, on its way from
// the receiver to the journal and back. All methods may be called concurrently
// and on a nil Report, which ignores them.
type Report struct {
	mu       sync.Mutex
	rejected int
	reasons  map[string]int // records by reason
	warnings map[string]int // records by warning
	body     []byte
	source   string
	letters  []Letter
	size     int // of the letters' payloads
}

type reportKey struct{}

// WithReport returns a context that carries a new report.
func WithReport(ctx context.Context) (context.Context, *Report) {
	r := &Report{}
	return context.WithValue(ctx, reportKey{}, r), r
}

// ReportFrom returns the report that ctx carries, or nil.
func ReportFrom(ctx context.Context) *Report {
	r, _ := ctx.Value(reportKey{}).(*Report)
	return r
}

// SetBody keeps the request's encoding as it came: protobuf that decodes to just
// what is handed on. It must not change until the request is answered. Whoever
// changes the data on the way takes it away with nil.
func (r *Report) SetBody(body []byte) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.body = body
}

// Body returns the request's encoding as it came, or nil where the data is no
// longer just that: where it was changed, or anything was refused or noticed.
func (r *Report) Body() []byte {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rejected > 0 || len(r.warnings) > 0 {
		return nil
	}
	return r.body
}

// SetSource notes the way that the request took, such as "otlp/grpc".
func (r *Report) SetSource(source string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.source = source
}

// Source is the way that the request took, or "".
func (r *Report) Source() string {
	if r == nil {
		return ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.source
}

// Put keeps a refused record. It is counted by Reject, not here.
func (r *Report) Put(l Letter) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.letters = append(r.letters, l)
	r.size += len(l.Payload)
}

// TakeLetters returns the letters and forgets them: whoever takes them keeps them.
func (r *Report) TakeLetters() []Letter {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	letters := r.letters
	r.letters, r.size = nil, 0
	return letters
}

func (r *Report) lettersSize() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.size
}

// Letters are the records that were put so far.
func (r *Report) Letters() []Letter {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.letters
}

// maxReasons bounds the distinct reasons kept of one request.
const maxReasons = 16

// Reject notes n records as refused.
func (r *Report) Reject(n int, reason string) {
	if r == nil || n <= 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rejected += n
	add(&r.reasons, reason, n)
}

// Warn notes something about a record that was kept.
func (r *Report) Warn(msg string) { r.warn(1, msg) }

func (r *Report) warn(n int, msg string) {
	if r == nil || n <= 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	add(&r.warnings, msg, n)
}

func add(counts *map[string]int, text string, n int) {
	if *counts == nil {
		*counts = map[string]int{}
	}
	if _, ok := (*counts)[text]; !ok && len(*counts) >= maxReasons {
		text = "other reasons"
	}
	(*counts)[text] += n
}

// Rejected returns the number of refused records.
func (r *Report) Rejected() int {
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rejected
}

// maxMessage bounds the text of one answer, in bytes.
const maxMessage = 1024

// Message says what was refused and what was noticed, the most frequent first;
// it is empty when there is nothing to say and at most 1 KiB long.
func (r *Report) Message() string {
	if r == nil {
		return ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	parts := append(lines(r.reasons, "rejected"), lines(r.warnings, "noted")...)
	text := strings.Join(parts, "; ")
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage-3], "") + "..."
	}
	return text
}

func lines(counts map[string]int, verb string) []string {
	texts := make([]string, 0, len(counts))
	for text := range counts {
		texts = append(texts, text)
	}
	slices.SortFunc(texts, func(a, b string) int {
		if d := counts[b] - counts[a]; d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	for i, text := range texts {
		texts[i] = fmt.Sprintf("%d %s: %s", counts[text], verb, text)
	}
	return texts
}
