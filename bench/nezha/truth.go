package nezha

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Case is one injected fault.
type Case struct {
	Date string
	// At is when it was injected: to the second as the list says, but uncertain
	// by 90 s (see the data set's known traps).
	At      time.Time
	Pod     string
	Service string
	// Type is the injection: return, exception, cpu_contention, network_delay.
	Type string
	// After and Before are the ends of the code region, for code faults; Metric is
	// the telling metric of the others.
	After, Before, Metric string
}

// Minute is the minute of the injection, all that *given* mode is told.
func (c Case) Minute() time.Time { return c.At.Truncate(time.Minute) }

// ID names the case.
func (c Case) ID() string {
	return c.At.UTC().Format("2006-01-02T15:04") + " " + c.Service + " " + c.Type
}

// Load reads the list of injected faults, by time.
func Load(dir string) ([]Case, error) {
	regions, err := loadRegions(filepath.Join(dir, "construct_data", "root_cause_ts.json"))
	if err != nil {
		return nil, err
	}
	lists, err := filepath.Glob(filepath.Join(dir, "rca_data", "*", "*-fault_list.json"))
	if err != nil || len(lists) == 0 {
		return nil, fmt.Errorf("cannot find the lists of faults in %s: give the folder of the data set nezha-trainticket", dir)
	}
	var out []Case
	for _, path := range lists {
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("cannot read the list of faults: %w", err)
		}
		var hours map[string][]struct {
			Time string `json:"inject_time"`
			Pod  string `json:"inject_pod"`
			Type string `json:"inject_type"`
		}
		if err := json.Unmarshal(raw, &hours); err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", path, err)
		}
		for _, faults := range hours {
			for _, f := range faults {
				at, err := time.Parse(time.DateTime, f.Time)
				if err != nil {
					return nil, fmt.Errorf("cannot read %s: %w", path, err)
				}
				c := Case{Date: at.Format(time.DateOnly), At: at, Pod: f.Pod, Service: serviceOf(f.Pod), Type: f.Type}
				if r := regions[c.Service][f.Type]; f.Type == "return" || f.Type == "exception" {
					c.After, c.Before, _ = strings.Cut(r, "_")
				} else {
					c.Metric = r
				}
				out = append(out, c)
			}
		}
	}
	slices.SortFunc(out, func(a, b Case) int { return a.At.Compare(b.At) })
	return out, nil
}

func loadRegions(path string) (map[string]map[string]string, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the truth of the data set: %w", err)
	}
	var out map[string]map[string]string
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", path, err)
	}
	return out, nil
}

// unlisted are injections that no list names but the data shows. An alarm there
// is no false alarm.
var unlisted = []struct{ at, service string }{
	{"2023-01-29 13:58", "ts-basic-service"},
	{"2023-01-29 15:17", "ts-delivery-service"},
	{"2023-01-29 15:35", "ts-delivery-service"},
	{"2023-01-29 16:00", "ts-preserve-service"},
	{"2023-01-29 16:09", "ts-route-service"},
	{"2023-01-29 16:27", "ts-route-service"},
	{"2023-01-29 16:36", "ts-user-service"},
	{"2023-01-29 16:52", "ts-user-service"},
	{"2023-01-30 11:45", "ts-contacts-service"},
	{"2023-01-30 12:23", "ts-verification-code-service"},
	{"2023-01-30 13:37", "ts-preserve-service"},
}
