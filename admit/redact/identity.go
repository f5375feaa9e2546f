package redact

// chineseID tells whether b is a resident identity number (GB 11643): region,
// date of birth, sequence, check digit.
func chineseID(b []byte) bool {
	if len(b) != 18 {
		return false
	}
	weights := [17]int{7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2}
	sum := 0
	for i, w := range weights {
		if !isDigit(b[i]) {
			return false
		}
		sum += w * int(b[i]-'0')
	}
	check := b[17]
	if check == 'x' {
		check = 'X'
	}
	return check == "10X98765432"[sum%11] && chineseRegion(b) && birth(b[6:14])
}

// chineseRegion tells whether b begins with the code of a province.
func chineseRegion(b []byte) bool {
	switch n := number(b[:2]); {
	case n >= 11 && n <= 15, n >= 21 && n <= 23, n >= 31 && n <= 37, n >= 41 && n <= 46,
		n >= 50 && n <= 54, n >= 61 && n <= 65, n == 71, n >= 81 && n <= 83, n == 91:
		return true
	}
	return false
}

// birth tells whether b is a date as YYYYMMDD that a living person may have.
func birth(b []byte) bool {
	year, month, day := number(b[:4]), number(b[4:6]), number(b[6:8])
	return year >= 1900 && year <= 2099 && month >= 1 && month <= 12 && day >= 1 && day <= 31
}

// socialSecurity tells whether b is a number that the United States give out.
func socialSecurity(b []byte) bool {
	area, group, serial := number(b[:3]), number(b[3:5]), number(b[5:9])
	return area != 0 && area != 666 && area < 900 && group != 0 && serial != 0
}

// card tells whether b is the number of a payment card: the issuer's prefix and
// length, and the check digit. Of the lengths that an issuer may use, only those
// in common use count, since one number of ten has a right check digit. Diners
// Club's 14 digits count only in groups.
func card(b []byte, grouped bool) bool {
	n := len(b)
	if n < 14 || n > 19 {
		return false
	}
	p2, p3, p4 := number(b[:2]), number(b[:3]), number(b[:4])
	switch {
	case b[0] == '4', p2 >= 51 && p2 <= 55, p4 >= 2221 && p4 <= 2720: // Visa, Mastercard
		return n == 16 && luhn(b)
	case p2 == 34, p2 == 37: // American Express
		return n == 15 && luhn(b)
	case p4 == 6011, p3 >= 644 && p3 <= 649, p2 == 65: // Discover
		return n == 16 && luhn(b)
	case p2 == 62: // UnionPay
		return n >= 16 && luhn(b)
	case p4 >= 3528 && p4 <= 3589: // JCB
		return n == 16 && luhn(b)
	case p2 == 36, p2 == 38, p3 >= 300 && p3 <= 305: // Diners Club
		return n == 14 && grouped && luhn(b)
	}
	return false
}

// luhn tells whether the last digit checks the others (ISO/IEC 7812).
func luhn(b []byte) bool {
	sum := 0
	for i, c := range b {
		d := int(c - '0')
		if (len(b)-i)%2 == 0 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}

// number reads digits.
func number(b []byte) int {
	n := 0
	for _, c := range b {
		n = n*10 + int(c-'0')
	}
	return n
}
