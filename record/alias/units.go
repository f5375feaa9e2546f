package alias

import "fmt"

// unitSize says what a unit is worth in the first unit of its kind.
type unitSize struct {
	kind string
	size float64
}

// unitSizes are the units that are converted into each other. All others only
// equal themselves.
var unitSizes = map[string]unitSize{
	"s": {"time", 1}, "ms": {"time", 1e-3}, "us": {"time", 1e-6}, "ns": {"time", 1e-9}, "min": {"time", 60}, "h": {"time", 3600},

	"By": {"data", 1}, "kBy": {"data", 1e3}, "MBy": {"data", 1e6}, "GBy": {"data", 1e9},
	"KiBy": {"data", 1 << 10}, "MiBy": {"data", 1 << 20}, "GiBy": {"data", 1 << 30},

	"By/s": {"rate", 1}, "MBy/s": {"rate", 1e6}, "GBy/s": {"rate", 1e9},

	"1": {"ratio", 1}, "%": {"ratio", 1e-2},

	"J": {"energy", 1}, "mJ": {"energy", 1e-3}, "W": {"power", 1}, "mW": {"power", 1e-3},

	"Hz": {"frequency", 1}, "MHz": {"frequency", 1e6}, "GHz": {"frequency", 1e9},
}

// unitScale returns the factor from one unit to another.
func unitScale(from, to string) (float64, error) {
	if from == to {
		return 1, nil
	}
	a, b := unitSizes[from], unitSizes[to]
	if a.kind == "" || a.kind != b.kind {
		return 0, fmt.Errorf("unit %q cannot be converted to %q: give a scale instead", from, to)
	}
	return a.size / b.size, nil
}
