package inquest

import (
	"fmt"
	"math"
	"unicode/utf8"
)

// Stats are the statistics of a tensor.
type Stats struct {
	Shape  []int    `json:"shape"` // elements in each dimension
	DType  string   `json:"dtype"` // as the framework names it
	HasNaN bool     `json:"has_nan"`
	Min    *float64 `json:"min_val"` // least element that is a finite number, or nil
	Max    *float64 `json:"max_val"`
}

// Number is what [StatsOf] can look at.
type Number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 |
		~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 |
		~float32 | ~float64
}

// StatsOf returns the statistics of values, which are the elements of a tensor of
// that shape; without a shape, of a vector. Infinite elements are no extremes. It
// looks at each element once: pass a sample of what is large.
func StatsOf[T Number](values []T, shape ...int) *Stats {
	if len(shape) == 0 {
		shape = []int{len(values)}
	}
	var zero T
	s := &Stats{Shape: shape, DType: fmt.Sprintf("%T", zero)}
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		f := float64(v)
		switch {
		case math.IsNaN(f):
			s.HasNaN = true
		case !math.IsInf(f, 0):
			lo, hi = min(lo, f), max(hi, f)
		}
	}
	if lo <= hi {
		s.Min, s.Max = &lo, &hi
	}
	return s
}

// StatsOfText returns the statistics of a text: its length in characters.
func StatsOfText(text string) *Stats {
	return &Stats{Shape: []int{utf8.RuneCountInString(text)}, DType: "str"}
}

// complete returns s as it can be written, which nil and negative sizes are not.
func (s *Stats) complete() Stats {
	if s == nil {
		return Stats{Shape: []int{}, DType: "none"}
	}
	out := *s
	out.Shape = make([]int, len(s.Shape))
	for i, n := range s.Shape {
		out.Shape[i] = max(0, n)
	}
	if out.DType == "" {
		out.DType = "unknown"
	}
	for _, p := range []**float64{&out.Min, &out.Max} {
		if *p == nil {
			continue
		}
		if math.IsNaN(**p) {
			out.HasNaN, *p = true, nil
		} else if math.IsInf(**p, 0) {
			*p = nil
		}
	}
	return out
}
