package stats

import (
	"math"
	"slices"
)

func order(x []float64) []int {
	idx := make([]int, len(x))
	for i := range idx {
		idx[i] = i
	}
	slices.SortStableFunc(idx, func(a, b int) int {
		switch {
		case x[a] < x[b]:
			return -1
		case x[a] > x[b]:
			return 1
		default:
			return a - b
		}
	})
	return idx
}

// Change is where a series changes its level.
type Change struct {
	// Index is the first element of the new level.
	Index int
	// Score is the robust gain of the two-level over the one-level description,
	// in units of the series' noise; below about 3 it is no change.
	Score         float64
	Before, After float64 // medians of the levels
}

// ChangePoint finds the one split of x that best separates two levels: it
// minimises the sum of absolute distances from the medians of both sides
// (Laplace likelihood, so single outliers do not attract it). Each side has at
// least minSide elements. It returns false when x is too short or nothing
// separates.
func ChangePoint(x []float64, minSide int) (Change, bool) {
	if minSide < 1 {
		minSide = 1
	}
	n := len(x)
	if n < 2*minSide {
		return Change{}, false
	}
	whole := absoluteCost(x)
	if whole == 0 {
		return Change{}, false
	}
	best, at := math.Inf(1), -1
	for i := minSide; i <= n-minSide; i++ {
		if c := absoluteCost(x[:i]) + absoluteCost(x[i:]); c < best {
			best, at = c, i
		}
	}
	if at < 0 {
		return Change{}, false
	}
	before, after := Median(x[:at]), Median(x[at:])
	noise := best / float64(n)
	if noise == 0 {
		noise = whole / float64(n) / float64(n)
	}
	return Change{
		Index: at, Score: math.Abs(after-before) / noise,
		Before: before, After: after,
	}, before != after
}

func absoluteCost(x []float64) float64 {
	m := Median(x)
	c := 0.0
	for _, v := range x {
		c += math.Abs(v - m)
	}
	return c
}

// Runs joins the indexes at which flags is set to runs [from, to), bridging
// holes of at most gap elements.
func Runs(flags []bool, gap int) [][2]int {
	var runs [][2]int
	for i, f := range flags {
		if !f {
			continue
		}
		if k := len(runs) - 1; k >= 0 && i-runs[k][1] <= gap {
			runs[k][1] = i + 1
		} else {
			runs = append(runs, [2]int{i, i + 1})
		}
	}
	return runs
}
