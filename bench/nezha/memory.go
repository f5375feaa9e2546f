package nezha

import (
	"bytes"
	"os"
	"slices"
	"strconv"
)

// peakRSS returns the largest resident size of this process so far, MB; 0 where
// the system does not tell.
func peakRSS() float64 {
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(raw) {
		if rest, ok := bytes.CutPrefix(line, []byte("VmHWM:")); ok {
			kb, err := strconv.ParseFloat(string(bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(rest), []byte("kB")))), 64)
			if err == nil {
				return kb / 1024
			}
		}
	}
	return 0
}

func hasDay(rows []Row, date string) bool {
	return slices.ContainsFunc(rows, func(r Row) bool { return r.truth.Date == date })
}

func sortedDates(m map[string]*Source) []string {
	var out []string
	for d := range m {
		out = append(out, d)
	}
	slices.Sort(out)
	return out
}
