package lock

import (
	"crypto/rand"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A start of a run has a token, SERIES.N: N counts the starts of whoever makes them, and SERIES is unique to him. A
// supervisor draws the series, a job script takes the number of its job. A script's N may have the supervisor's behind
// it: JOB.RESTART.N. All files that tell of a start carry its token, so that nobody takes what an earlier start has left
// for what the present one has written.

// startForm is the form of tokens, which become part of names of files and of command lines.
var startForm = regexp.MustCompile(`^[0-9A-Za-z_-]{1,64}(\.[0-9]{1,9}){0,4}$`)

// NewSeries draws the series of a supervisor, or the token of a start that nobody supervises.
func NewSeries() string { return strings.ToLower(rand.Text()[:16]) }

// CheckStart returns an error if a token does not have the form of one.
func CheckStart(start string) error {
	if startForm.MatchString(start) {
		return nil
	}
	return fmt.Errorf("%q is no token of a start; it must be letters, digits, - and _, and then numbers, each behind "+
		"a dot, as in 4711.0", start)
}

// Attempt is the token of the n-th start of a series.
func Attempt(series string, n int) string { return series + "." + strconv.Itoa(n) }

// IsEarlier says whether a start came before another one of its series. Whoever makes the starts of a series makes a start
// only when the one before is over.
func IsEarlier(start, than string) bool {
	a, b := strings.Split(start, "."), strings.Split(than, ".")
	if CheckStart(start) != nil || CheckStart(than) != nil || a[0] != b[0] {
		return false
	}
	n := min(len(a), len(b))
	return slices.CompareFunc(a[1:n], b[1:n], func(x, y string) int {
		i, _ := strconv.Atoi(x) // the form says that it is a number
		j, _ := strconv.Atoi(y)
		return i - j
	}) < 0
}
