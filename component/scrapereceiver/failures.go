package scrapereceiver

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// remindAfter is how often a failure that lasts is logged.
const remindAfter = 10 * time.Minute

// failures knows which targets cannot be scraped, and why. Prometheus shows it
// on its page of targets; here it is logged, once for each failure.
type failures struct {
	log *slog.Logger

	mu    sync.Mutex
	byURL map[string]failure
}

type failure struct {
	text string
	at   time.Time
}

// hints say what to do about the scraper's errors.
var hints = []struct{ text, hint string }{
	{"body size limit exceeded", "the exposition is larger than body_size_limit: raise it, or have the target tell less"},
	{"sample limit exceeded", "the target has more samples than sample_limit: raise it, or drop series with metric_relabel_configs"},
	{"label_limit exceeded", "raise label_limit, or drop labels with metric_relabel_configs"},
	{"label_name_length_limit exceeded", "raise label_name_length_limit, or drop the label with metric_relabel_configs"},
	{"label_value_length_limit exceeded", "raise label_value_length_limit, or drop the label with metric_relabel_configs"},
	{"non-compliant scrape target", "set fallback_scrape_protocol for the target under scrape_configs"},
	{"connection refused", "is the target running, and is the port right?"},
	{"404 Not Found", "is the path right? Set it with path, or with a URL as target"},
}

// down notes that a target cannot be scraped.
func (f *failures) down(url, text string) {
	for _, h := range hints {
		if strings.Contains(text, h.text) {
			text += ": " + h.hint
			break
		}
	}
	if f.note(url, text) {
		f.log.Warn("target cannot be scraped, its up is 0", "target", url, "error", text)
	}
}

// refused notes that points of a target became dead letters.
func (f *failures) refused(url, text string, points int) {
	if f.note(url+" refused", text) {
		f.log.Warn("points of a target cannot be stored; they are dead letters", "target", url, "points", points, "reason", text)
	}
}

// note tells whether something is to be logged: it is new, or old again.
func (f *failures) note(key, text string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.byURL[key]
	if old.text == text && time.Since(old.at) < remindAfter {
		return false
	}
	if f.byURL == nil {
		f.byURL = map[string]failure{}
	}
	for k, o := range f.byURL { // of targets that are gone
		if time.Since(o.at) > 2*remindAfter {
			delete(f.byURL, k)
		}
	}
	f.byURL[key] = failure{text, time.Now()}
	return true
}

// up notes that a target was scraped.
func (f *failures) up(url string) {
	f.mu.Lock()
	_, was := f.byURL[url]
	delete(f.byURL, url)
	f.mu.Unlock()
	if was {
		f.log.Info("target can be scraped again", "target", url)
	}
}

// scraperLog passes the scraper's log on, and takes out of it why scrapes
// failed, which the scraper says at the level debug only.
type scraperLog struct {
	slog.Handler
	failures *failures
	target   string
}

func (h scraperLog) Enabled(ctx context.Context, level slog.Level) bool {
	return level == slog.LevelDebug || h.Handler.Enabled(ctx, level)
}

func (h scraperLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		if a.Key == "target" {
			h.target = a.Value.Resolve().String()
		}
	}
	h.Handler = h.Handler.WithAttrs(attrs)
	return h
}

func (h scraperLog) WithGroup(name string) slog.Handler {
	h.Handler = h.Handler.WithGroup(name)
	return h
}

func (h scraperLog) Handle(ctx context.Context, r slog.Record) error {
	if h.target != "" && (r.Message == "Scrape failed" || r.Message == "Append failed") {
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == "err" {
				h.failures.down(h.target, a.Value.String())
			}
			return true
		})
	}
	if !h.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}
