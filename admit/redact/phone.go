package redact

import (
	"slices"
	"strings"
)

// chineseMobile tells whether b is a mobile number of mainland China, with or
// without the country's code.
func chineseMobile(b []byte) bool {
	switch {
	case len(b) == 13 && string(b[:2]) == "86":
		b = b[2:]
	case len(b) == 15 && string(b[:4]) == "0086":
		b = b[4:]
	}
	if len(b) != 11 || b[0] != '1' {
		return false
	}
	switch third := b[2]; b[1] {
	case '3', '8':
		return true
	case '4':
		return third >= '5'
	case '5', '9':
		return third != '4'
	case '6':
		return third == '2' || third >= '5' && third <= '7'
	case '7':
		return third <= '8'
	}
	return false
}

// roundNumber tells whether b is a whole number of 64 KiB or of millions: sizes
// of memory have as many digits as phone numbers.
func roundNumber(b []byte) bool {
	n := number(b)
	return n%65536 == 0 || n%1_000_000 == 0
}

// northAmerican tells whether the ten digits of b are a number of the North
// American plan.
func northAmerican(b []byte) bool { return len(b) == 10 && b[0] >= '2' && b[3] >= '2' }

// bracket looks for (415) 555-2671.
func (s *scanner) bracket(i int) int {
	if isWord(s.byteAt(i-1)) || s.digits(i+1) != i+4 || s.byteAt(i+4) != ')' {
		return i + 1
	}
	at := i + 5
	if s.byteAt(at) == ' ' {
		at++
	}
	mid := s.digits(at)
	sep := s.byteAt(mid)
	end := s.digits(mid + 1)
	if mid-at != 3 || end-mid != 5 || sep != '-' && sep != ' ' || isWord(s.byteAt(end)) {
		return i + 1
	}
	d := append(append(append([]byte{}, s.text[i+1:i+4]...), s.text[at:mid]...), s.text[mid+1:end]...)
	if !northAmerican(d) {
		return i + 1
	}
	return s.add(Phone, i, end)
}

// Bounds of E.164.
const (
	minPhone = 8
	maxPhone = 15
)

// plus looks for an international number: +, a country's code, digits with
// single spaces, dashes or brackets between them. Numbers with a sign are not
// taken: without separators it needs ten digits.
func (s *scanner) plus(i int) int {
	if b := s.byteAt(i - 1); isWord(b) || b == '+' || b == ')' || !isDigit(s.byteAt(i+1)) {
		return i + 1
	}
	var d [maxPhone]byte
	n, best, separators, at := 0, 0, 0, i+1
	for n < maxPhone && at < len(s.text) {
		start := at
		for at < len(s.text) && isDigit(s.text[at]) && n < maxPhone {
			d[n] = s.text[at]
			n, at = n+1, at+1
		}
		if isWord(s.byteAt(at)) || s.byteAt(at) == '.' && isDigit(s.byteAt(at+1)) {
			break
		}
		if at > start && international(d[:n], separators) {
			best = at
			if d[0] == '1' || string(d[:2]) == "86" {
				break // these have one length
			}
		}
		next := s.separator(at)
		if next == at {
			break
		}
		separators++
		at = next
	}
	if best == 0 {
		return max(i+1, s.digits(i+1))
	}
	return s.add(Phone, i, best)
}

// separator goes past what separates digits of a phone number, if digits follow.
func (s *scanner) separator(i int) int {
	at := i
	if s.byteAt(at) == ')' {
		at++
	}
	if b := s.byteAt(at); b == ' ' || b == '-' {
		at++
	}
	if s.byteAt(at) == '(' {
		at++
	}
	if at == i || !isDigit(s.byteAt(at)) {
		return i
	}
	return at
}

// international tells whether d is a whole number with its country's code.
func international(d []byte, separators int) bool {
	if len(d) < minPhone || separators == 0 && len(d) < 10 {
		return false
	}
	switch {
	case d[0] == '1':
		return northAmerican(d[1:])
	case string(d[:2]) == "86":
		return len(d) == 13 && chineseMobile(d) || separators > 0 && (len(d) == 12 || len(d) == 13) && d[2] != '1'
	}
	return countryCode(d)
}

// Codes of countries that the ITU has given out, of two digits and of three.
// Those of one digit are 1 and 7.
var (
	countryCodes2 = strings.Fields("20 27 30 31 32 33 34 36 39 40 41 43 44 45 46 47 48 49 51 52 53 54 55 56 57 58 " +
		"60 61 62 63 64 65 66 81 82 84 86 90 91 92 93 94 95 98")
	countryCodes3 = [][2]int{
		{211, 213},
		{216, 216},
		{218, 218},
		{220, 258},
		{260, 269},
		{290, 291},
		{297, 299},
		{350, 359},
		{370, 383},
		{385, 387},
		{389, 389},
		{420, 421},
		{423, 423},
		{500, 509},
		{590, 599},
		{670, 670},
		{672, 683},
		{685, 692},
		{850, 850},
		{852, 853},
		{855, 856},
		{870, 870},
		{880, 883},
		{886, 886},
		{960, 968},
		{970, 977},
		{992, 996},
		{998, 998},
	}
)

// countryCode tells whether d begins with the code of a country.
func countryCode(d []byte) bool {
	if d[0] == '7' || slices.Contains(countryCodes2, string(d[:2])) {
		return true
	}
	n := number(d[:3])
	return slices.ContainsFunc(countryCodes3, func(r [2]int) bool { return r[0] <= n && n <= r[1] })
}
