package event

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The checks of the fast path. Each says yes only where the library surely does.

// maxWhole is the greatest number up to which all whole numbers are exact.
const maxWhole = 1 << 53

func isWhole(f float64) bool { return f == math.Trunc(f) && math.Abs(f) < maxWhole }

// above tells that a number is within the lower bound b. f may be rounded; when
// whole is true it is not.
func (b *bound) above(f float64, whole bool) bool {
	return !b.set || f > b.value || b.touches(f, whole)
}

// below is above for the upper bound.
func (b *bound) below(f float64, whole bool) bool {
	return !b.set || f < b.value || b.touches(f, whole)
}

func (b *bound) touches(f float64, whole bool) bool {
	return f == b.value && whole && b.exact && !b.exclusive
}

func (n *node) okInt(i int64) bool {
	f := float64(i)
	whole := isWhole(f)
	return n.types.has(typeInt|typeNumber) && n.enum == nil && n.least.above(f, whole) && n.most.below(f, whole)
}

// okFloat checks a number that may be rounded; whole says that it is not, and
// has no fraction.
func (n *node) okFloat(f float64, whole bool) bool {
	if math.IsNaN(f) || math.IsInf(f, 0) || n.enum != nil {
		return false
	}
	if !n.types.has(typeNumber) && (!whole || n.types&typeInt == 0) {
		return false
	}
	return n.least.above(f, whole) && n.most.below(f, whole)
}

func (n *node) okBool() bool { return n.types.has(typeBool) && n.enum == nil }
func (n *node) okNull() bool { return n.types.has(typeNull) && n.enum == nil }

func (n *node) okCount(items int) bool {
	return n.types.has(typeList) && n.enum == nil && items >= n.minItems && (n.maxItems < 0 || items <= n.maxItems)
}

func (n *node) okText(s string) bool {
	if !n.types.has(typeString) || n.enum != nil && !slices.Contains(n.enum, s) || n.hasExcluded && s == n.excluded {
		return false
	}
	// A character has one to four bytes.
	if (len(s)+3)/4 < n.minLen || n.maxLen >= 0 && len(s) > n.maxLen {
		count := utf8.RuneCountInString(s)
		if count < n.minLen || n.maxLen >= 0 && count > n.maxLen {
			return false
		}
	}
	if n.dateTime {
		if _, ok := parseTime(s); !ok {
			return false
		}
	}
	return n.match == nil || n.match(s)
}

// isTime tells that every date-time is valid here.
func (n *node) isTime() bool {
	return n.types.has(typeString) && n.enum == nil && !n.hasExcluded && n.minLen == 0 && n.maxLen < 0 && n.match == nil
}

// digitsPattern is what [matcher] turns into a loop.
var digitsPattern = regexp.MustCompile(`^\^\[((?:[0-9a-zA-Z]-[0-9a-zA-Z])+)\]\{([0-9]{1,4})\}\$$`)

// matcher returns a test for a pattern: a loop over bytes for one such as
// ^[0-9a-f]{32}$, else the regular expression.
func matcher(r jsonschema.Regexp) func(string) bool {
	parts := digitsPattern.FindStringSubmatch(r.String())
	if _, plain := r.(*regexp.Regexp); parts == nil || !plain {
		return r.MatchString
	}
	size, err := strconv.Atoi(parts[2])
	if err != nil {
		return r.MatchString
	}
	var allowed [256]bool
	for ranges := parts[1]; ranges != ""; ranges = ranges[3:] {
		for c := int(ranges[0]); c <= int(ranges[2]); c++ {
			allowed[c] = true
		}
	}
	return func(s string) bool {
		if len(s) != size {
			return false
		}
		for i := range len(s) {
			if !allowed[s[i]] {
				return false
			}
		}
		return true
	}
}
