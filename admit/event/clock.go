package event

import (
	"math"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
)

// parseTime reads the usual forms of an RFC 3339 time between 1970 and 2262, in
// ns, without allocating. What it refuses may yet be a time; see slowTime.
func parseTime(s string) (ns int64, ok bool) {
	const date = "2006-01-02T15:04:05"
	if len(s) <= len(date) || s[4] != '-' || s[7] != '-' || s[10] != 'T' || s[13] != ':' || s[16] != ':' {
		return 0, false
	}
	year, ok1 := digits(s[0:4])
	month, ok2 := digits(s[5:7])
	day, ok3 := digits(s[8:10])
	hour, ok4 := digits(s[11:13])
	minute, ok5 := digits(s[14:16])
	second, ok6 := digits(s[17:19])
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || !ok6 || year < 1970 || year > 2261 ||
		month < 1 || month > 12 || day < 1 || day > daysOf(year, month) || hour > 23 || minute > 59 || second > 59 {
		return 0, false
	}
	ns, rest, ok := fraction(s[len(date):])
	if !ok {
		return 0, false
	}
	offset, ok := offsetOf(rest)
	if !ok {
		return 0, false
	}
	ns += ((daysSince1970(year, month, day)*24+hour)*60+minute-offset)*60e9 + second*1e9
	return ns, ns > 0
}

// fraction reads a point and up to nine digits at the start of s.
func fraction(s string) (ns int64, rest string, ok bool) {
	if s[0] != '.' {
		return 0, s, true
	}
	i, unit := 1, int64(1e9)
	for ; i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
		if unit /= 10; unit == 0 {
			return 0, "", false
		}
		ns += unit * int64(s[i]-'0')
	}
	return ns, s[i:], i > 1
}

// offsetOf reads an offset from UTC, in minutes.
func offsetOf(s string) (minutes int64, ok bool) {
	if s == "Z" {
		return 0, true
	}
	if len(s) != 6 || s[3] != ':' || s[0] != '+' && s[0] != '-' {
		return 0, false
	}
	h, ok1 := digits(s[1:3])
	m, ok2 := digits(s[4:6])
	if !ok1 || !ok2 || h > 23 || m > 59 {
		return 0, false
	}
	if s[0] == '-' {
		return -(h*60 + m), true
	}
	return h*60 + m, true
}

func digits(s string) (n int64, ok bool) {
	for i := range len(s) {
		c := s[i] - '0'
		if c > 9 {
			return 0, false
		}
		n = n*10 + int64(c)
	}
	return n, true
}

func daysOf(year, month int64) int64 {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}

// daysSince1970 counts days of the Gregorian calendar.
func daysSince1970(year, month, day int64) int64 {
	// Years begin in March, so that the leap day is the last of its year.
	if month <= 2 {
		year--
		month += 12
	}
	era := year / 400
	inEra := year - era*400
	inYear := (153*(month-3)+2)/5 + day - 1
	return era*146097 + inEra*365 + inEra/4 - inEra/100 + inYear - 719468
}

// slowTime reads any time that the schema's format date-time lets through: also
// with small letters, a leap second, or more digits than nanoseconds have.
func slowTime(s string) (time.Time, error) {
	s = strings.ToUpper(s)
	leap := len(s) > 19 && s[17:19] == "60"
	if leap {
		s = s[:17] + "59" + s[19:]
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err == nil && leap {
		t = t.Add(time.Second)
	}
	return t, err
}

// bounds of what a log record's time can be.
var (
	earliest = time.Unix(0, 1)
	latest   = time.Unix(0, math.MaxInt64)
)

// levels by severity number, four numbers each.
var levels = [...]string{"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"}

// numberOf returns the first severity number of a level, 0 if it is none.
func numberOf(level string) plog.SeverityNumber {
	for i, name := range levels {
		if name == level {
			return plog.SeverityNumber(1 + 4*i)
		}
	}
	return 0
}

// levelOf returns the level that a log record's severity amounts to. It is empty
// when the record has none, and the text as sent when that is no known one.
func levelOf(lr plog.LogRecord) string {
	if n := lr.SeverityNumber(); n >= 1 && n <= 24 {
		return levels[(n-1)/4]
	}
	text := lr.SeverityText()
	for _, name := range levels {
		if strings.EqualFold(text, name) {
			return name
		}
	}
	switch {
	case strings.EqualFold(text, "warning"):
		return "WARN"
	case strings.EqualFold(text, "critical"):
		return "FATAL"
	}
	return text
}
