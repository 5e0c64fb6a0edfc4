package text

import "strings"

// AreTime says whether the fields after a rating are none, its time in one field, or its date and its time of day in two. Other
// fields may be another rating whose line was joined to this one.
func AreTime(fields []string) bool {
	switch len(fields) {
	case 0:
		return true
	case 1:
		return isTime(TrimQuotes(fields[0]))
	case 2:
		date, clock := fields[0], fields[1]
		if strings.HasPrefix(date, `"`) && strings.HasSuffix(clock, `"`) && !strings.HasSuffix(date, `"`) { // one text, cut at its space
			return isDate(date[1:]) && isClock(clock[:len(clock)-1])
		}
		return isDate(TrimQuotes(date)) && isClock(TrimQuotes(clock))
	}
	return false
}

// isTime says whether a text has the form of a time: seconds (or another unit) since some day, or a date, a time of day, or both with
// a space or a T between them. The date need not exist: the 31st of February is accepted.
func isTime(text string) bool {
	if whole, part, is := strings.Cut(text, "."); Digits(whole) && (!is || len(whole) >= 9 && Digits(part)) { // 1.5 is more likely a value
		return true
	}
	if at := strings.IndexAny(text, "T "); at >= 0 {
		return isDate(text[:at]) && isClock(strings.TrimLeft(text[at+1:], " "))
	}
	return isDate(text) || isClock(text)
}

// isDate accepts a year of four digits before or after month and day, and forms such as 20050906.
func isDate(text string) bool {
	if len(text) == 8 && Digits(text) {
		return true
	}
	for _, between := range []string{"-", "/", "."} {
		a, rest, _ := strings.Cut(text, between)
		b, c, found := strings.Cut(rest, between)
		if found && Digits(a) && Digits(b) && Digits(c) {
			return len(b) <= 2 && (len(a) == 4 && len(c) <= 2 || len(a) <= 2 && (len(c) == 4 || len(c) == 2))
		}
	}
	return false
}

// isClock accepts hours and minutes, optional seconds with an optional fraction, and an optional zone at the end: Z, +02 or +02:00.
func isClock(text string) bool {
	text, zulu := strings.CutSuffix(text, "Z")
	if at := strings.IndexAny(text, "+-"); at >= 0 {
		hours, minutes, colon := strings.Cut(text[at+1:], ":")
		if zulu || !Digits(hours) || len(hours) != 2 && (len(hours) != 4 || colon) || colon && (len(minutes) != 2 || !Digits(minutes)) {
			return false
		}
		text, zulu = text[:at], true
	}
	if zulu && (len(text) == 4 || len(text) == 6) && Digits(text) { // 070000Z
		return true
	}
	hours, rest, found := strings.Cut(text, ":")
	minutes, seconds, more := strings.Cut(rest, ":")
	if !found || len(hours) > 2 || len(minutes) != 2 || !Digits(hours) || !Digits(minutes) {
		return false
	}
	whole, fraction, has := strings.Cut(seconds, ".")
	return !more || len(whole) == 2 && Digits(whole) && (!has || Digits(fraction))
}
