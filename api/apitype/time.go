package apitype

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// ParseTime reads a point in time: RFC 3339 (2026-01-02T15:04:05Z), Unix time
// as a number (seconds with fraction; 12 digits and more are taken as
// milliseconds, microseconds or nanoseconds by their size), "now", a duration
// that lies back ("15m"), or "now-15m" and "now+15m".
func ParseTime(s string, now time.Time) (time.Time, error) {
	s = strings.TrimSpace(s)
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return inRange(s, t)
	}
	if t, ok := unixTime(s); ok {
		return t, nil
	}
	if t, ok := relativeTime(s, now); ok {
		return inRange(s, t)
	}
	return time.Time{}, fmt.Errorf("cannot read %q as a time: write it like 2026-01-02T15:04:05Z, 1767366245, now, or 15m for 15 minutes ago", s)
}

// inRange refuses what nanoseconds since the epoch cannot hold.
func inRange(s string, t time.Time) (time.Time, error) {
	if t.Before(MinTime) || t.After(MaxTime) {
		return time.Time{}, fmt.Errorf("the time %q is outside of the years 1678 to 2262 that can be stored", s)
	}
	return t.UTC(), nil
}

// MinTime and MaxTime are the first and the last time that a query can name.
var (
	MinTime = time.Unix(0, math.MinInt64).UTC()
	MaxTime = time.Unix(0, math.MaxInt64).UTC()
)

func relativeTime(s string, now time.Time) (time.Time, bool) {
	rest, fromNow := strings.CutPrefix(s, "now")
	if fromNow && rest == "" {
		return now, true
	}
	sign := time.Duration(-1)
	switch {
	case strings.HasPrefix(rest, "-"):
		rest = rest[1:]
	case fromNow && strings.HasPrefix(rest, "+"):
		rest, sign = rest[1:], 1
	case fromNow:
		return time.Time{}, false
	}
	d, err := model.ParseDuration(rest)
	if err != nil || rest == "" {
		return time.Time{}, false
	}
	return now.Add(sign * time.Duration(d)), true
}

// unixTime reads a decimal number exactly: a float64 cannot hold today's
// nanoseconds.
func unixTime(s string) (time.Time, bool) {
	whole, fraction, _ := strings.Cut(s, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || strings.HasPrefix(s, "+") || len(fraction) > 0 && !allDigits(fraction) {
		return unixFloat(s)
	}
	unit := unixUnit(math.Abs(float64(n)))
	if n > math.MaxInt64/unit || n < math.MinInt64/unit {
		return time.Time{}, false
	}
	ns := n * unit
	if fraction = fraction[:min(len(fraction), 9)]; fraction != "" {
		f, _ := strconv.ParseInt(fraction+strings.Repeat("0", 9-len(fraction)), 10, 64)
		f = f * unit / int64(time.Second)
		if strings.HasPrefix(whole, "-") {
			f = -f
		}
		ns += f
		if (f > 0 && ns < 0 && n > 0) || (f < 0 && ns > 0 && n < 0) {
			return time.Time{}, false
		}
	}
	return time.Unix(0, ns).UTC(), true
}

// unixFloat reads what only a float can be, as 1.7e9.
func unixFloat(s string) (time.Time, bool) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(f) || math.Abs(f) > 9.2e18 {
		return time.Time{}, false
	}
	ns := f * float64(unixUnit(math.Abs(f)))
	if math.Abs(ns) > 9.2e18 {
		return time.Time{}, false
	}
	return time.Unix(0, int64(ns)).UTC(), true
}

// unixUnit is how many nanoseconds one unit of a Unix time of this size has.
// 1e11 s lies in the year 5138, so nothing real is ambiguous.
func unixUnit(abs float64) int64 {
	switch {
	case abs >= 1e17:
		return 1
	case abs >= 1e14:
		return 1e3
	case abs >= 1e11:
		return 1e6
	default:
		return 1e9
	}
}

func allDigits(s string) bool {
	return strings.Trim(s, "0123456789") == ""
}

// ParseDuration reads a duration: a number of seconds ("30", "0.5") or a
// Prometheus duration ("30s", "1h30m"). It is never negative.
func ParseDuration(s string) (time.Duration, error) {
	s = strings.TrimSpace(s)
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		ns := f * float64(time.Second)
		if math.IsNaN(ns) || ns < 0 || ns >= math.MaxInt64 {
			return 0, fmt.Errorf("the duration %q is out of range", s)
		}
		return time.Duration(ns), nil
	}
	if d, err := model.ParseDuration(s); err == nil && s != "" {
		return time.Duration(d), nil
	}
	return 0, fmt.Errorf("cannot read %q as a duration: write it like 30s, 5m or 1h30m", s)
}
