package sim

import (
	"strings"
	"testing"

	"fluentps/ps/scheme"
)

// The drawing shows the rule: under bsp all workers start an iteration together, under asp no worker waits, under ssp the fast
// workers lead and then wait.
func TestTimelineShowsTheRule(t *testing.T) {
	draw := func(name string) []string {
		e, ok := scheme.Lookup(name)
		if !ok {
			t.Fatalf("no scheme %s", name)
		}
		text, err := Timeline(e)
		if err != nil {
			t.Fatal(err)
		}
		var rows []string
		for _, line := range strings.Split(text, "\n") {
			if _, row, ok := strings.Cut(line, "|"); ok {
				rows = append(rows, strings.TrimSuffix(row, "|"))
			}
		}
		if len(rows) != timelineWorkers || len(rows[0]) != timelineColumns || !strings.HasPrefix(text, "simulated: ") {
			t.Fatalf("drawing of %s:\n%s", name, text)
		}
		return rows
	}
	bsp, asp, ssp := draw("bsp"), draw("asp"), draw("ssp")
	for _, c := range []string{"1", "2", "3"} {
		for w := range bsp {
			if strings.Index(bsp[w], c) != strings.Index(bsp[0], c) {
				t.Errorf("bsp: worker %d starts iteration %s at another time than worker 0:\n%s", w, c, strings.Join(bsp, "\n"))
			}
		}
	}
	for w := range asp {
		if strings.Contains(asp[w], ".") {
			t.Errorf("asp: worker %d waits:\n%s", w, strings.Join(asp, "\n"))
		}
	}
	if i, j := strings.Index(ssp[0], "."), strings.Index(bsp[0], "."); i < 3*j || j < 0 || strings.Contains(ssp[3], ".") {
		t.Errorf("ssp: worker 0 waits first in column %d, under bsp in %d:\n%s", i, j, strings.Join(ssp, "\n"))
	}
}

func TestEverySchemeHasATimeline(t *testing.T) {
	for _, e := range scheme.All {
		if text, err := Timeline(e); err != nil || strings.Count(text, "\n") != 1+timelineWorkers {
			t.Errorf("%s: %v\n%s", e.Name, err, text)
		}
	}
}
