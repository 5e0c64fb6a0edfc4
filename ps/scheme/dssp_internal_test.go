package scheme

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

const tenth = time.Second / 10

func at(latest, previous time.Duration) pushTimes {
	return pushTimes{latest: latest * tenth, previous: previous * tenth, known: 2}
}

// TestDSSPControllerVectors: DSSP, details left open, item 2 [X]: the vectors of that item, in tenths of a second; and
// item 3: 0 until both workers have two pushes.
func TestDSSPControllerVectors(t *testing.T) {
	l := &dsspLimit{fixed: fixed{3}, upper: 7} // r_max = 4
	one := pushTimes{latest: 90 * tenth, known: 1}
	for _, c := range []struct {
		what    string
		p, slow pushTimes
		want    int64
	}{
		{"tie of 1 and 4", at(100, 90), at(80, 50), 1},
		{"between", at(100, 90), at(95, 67), 2},
		{"the slowest is overdue", at(1000, 990), at(50, 40), 0},
		{"one push of the fastest", one, at(80, 50), 0},
		{"one push of the slowest", at(100, 90), one, 0},
		{"nothing known", pushTimes{}, pushTimes{}, 0},
		{"all at one time", at(50, 50), at(50, 50), 0},
	} {
		if got := l.controller(c.p, c.slow); got != c.want {
			t.Errorf("%s: r = %d, want %d", c.what, got, c.want)
		}
	}
}

// TestDSSPControllerSearchesAllPairs: Algorithm 2 [P] takes the minimum over all pairs (r, k); ours walks along
// the two predictions once.
func TestDSSPControllerSearchesAllPairs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(who string) pushTimes {
			previous := rapid.IntRange(0, 100).Draw(t, who+" previous")
			return at(time.Duration(previous+rapid.IntRange(0, 50).Draw(t, who+" interval")), time.Duration(previous))
		}
		p, slow := draw("fastest"), draw("slowest")
		rMax := rapid.Int64Range(0, 20).Draw(t, "r_max")
		l := &dsspLimit{fixed: fixed{1}, upper: 1 + rMax}
		got := l.controller(p, slow)
		want, closest := int64(0), time.Duration(-1)
		for r := range rMax + 1 {
			for k := range rMax + 1 {
				d := (slow.latest + time.Duration(k+1)*(slow.latest-slow.previous) - p.latest - time.Duration(r)*(p.latest-p.previous)).Abs()
				if closest < 0 || d < closest {
					want, closest = r, d
				}
			}
		}
		if got != want || got < 0 || got > rMax {
			t.Fatalf("r = %d, all pairs give %d, r_max %d", got, want, rMax)
		}
	})
}
