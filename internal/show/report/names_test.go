package report

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fluentps/internal/show/metrics"
	"fluentps/internal/show/report/plot"
)

// derived are the values that follow from a scheme's defaults, as resolved.yaml has them.
var derived = map[string]map[string]string{
	"bsp":    {"fold": "rank", "release": "soft", "strict": "true"},
	"ssp":    {"fold": "arrival", "release": "soft", "staleness": "3", "cache": "false"},
	"asp":    {"fold": "arrival"},
	"drop":   {"fold": "rank", "required": "3"},
	"dssp":   {"fold": "arrival", "s_l": "1", "s_u": "4"},
	"pslite": {},
}

// run is a run of a user who wrote these settings, such as scheme=ssp, a sweep the first few of them.
func run(name string, swept int, set ...string) *Run {
	r := &Run{Folder: "sweeps/" + name + "/" + strings.Join(set, ","), Swept: swept, Chosen: []string{},
		Settings: map[string]string{"name": name, "seed": "1", "train.optimizer.name": "sgd", "train.optimizer.lr": "0.1",
			"work.policy": "fixed", "local.policy": "none", "local.steps": "1"}}
	scheme := "bsp"
	for _, s := range set {
		key, value, _ := strings.Cut(s, "=")
		if key == "sync[0].scheme" {
			scheme = value
		}
		r.Settings[key] = value
		r.Chosen = append(r.Chosen, key)
	}
	r.Settings["sync[0].scheme"] = scheme
	for k, v := range derived[scheme] {
		if key := "sync[0]." + k; !slices.Contains(r.Chosen, key) {
			r.Settings[key] = v
		}
	}
	if len(r.Chosen) == 0 {
		r.Chosen = []string{"model.name"}
	}
	return r
}

// A series is called what the user chose, and nothing that follows from a scheme's defaults.
func TestSeriesAreCalledWhatTheUserChose(t *testing.T) {
	scheme := func(s string) string { return "sync[0].scheme=" + s }
	for what, c := range map[string]struct {
		runs []*Run
		want string
	}{
		"a sweep over schemes": {[]*Run{run("s", 1, scheme("bsp")), run("s", 1, scheme("ssp")), run("s", 1, scheme("asp"))}, "bsp|ssp|asp"},
		"a list of settings": {[]*Run{run("s", 1, scheme("bsp")), run("s", 2, scheme("ssp"), "sync[0].staleness=3"),
			run("s", 1, scheme("asp"))}, "bsp|ssp 3|asp"},
		"a scheme twice": {[]*Run{run("s", 1, scheme("asp")), run("s", 1, scheme("ssp")),
			run("s", 2, scheme("ssp"), "sync[0].staleness=8")}, "asp|ssp 3|ssp 8"},
		"no sweep": {[]*Run{run("s", 0, scheme("ssp"), "sync[0].staleness=3"), run("s", 0, scheme("bsp"))}, "ssp 3|bsp"},
		"the scheme first": {[]*Run{run("s", 2, "train.optimizer.lr=0.1", scheme("asp")),
			run("s", 2, "train.optimizer.lr=0.2", scheme("asp")), run("s", 2, "train.optimizer.lr=0.1", scheme("drop"))},
			"asp lr=0.1|asp lr=0.2|drop lr=0.1"},
		"one key":       {[]*Run{run("s", 1, "train.optimizer.lr=0.1"), run("s", 1, "train.optimizer.lr=0.2")}, "lr=0.1|lr=0.2"},
		"a bound alone": {[]*Run{run("s", 1, "sync[0].staleness=1"), run("s", 1, "sync[0].staleness=8")}, "staleness=1|staleness=8"},
		"two bounds": {[]*Run{run("s", 3, scheme("dssp"), "sync[0].s_l=1", "sync[0].s_u=8"),
			run("s", 1, scheme("asp"))}, "dssp s_l=1 s_u=8|asp"},
		"a policy": {[]*Run{run("s", 1, "work.policy=fixed"), run("s", 1, "work.policy=dbs")}, "work=fixed|dbs"},
		"two policies": {[]*Run{run("s", 0, "work.policy=dbs"),
			run("s", 0, "local.policy=diloco", "local.steps=8")}, "work=dbs|local=diloco"},
		"a policy that one set": {[]*Run{run("s", 0, scheme("bsp")), run("s", 0, scheme("asp"), "work.policy=dbs")}, "bsp|asp dbs"},
		"an optimizer and its keys": {[]*Run{run("s", 1, "train.optimizer.name=sgd"),
			run("s", 2, "train.optimizer.name=adam", "train.optimizer.lr=0.001")}, "sgd|adam lr=0.001"},
		"two names": {[]*Run{run("a", 0, scheme("bsp")), run("a", 0, scheme("asp")), run("b", 0, scheme("asp"))}, "a bsp|a asp|b"},
		"a fault":   {[]*Run{run("s", 0), run("s", 0, "faults[0].slow.factor=5")}, "without faults|factor=5"},
		"two rules": {[]*Run{run("s", 2, scheme("bsp"), "sync[1].scheme=asp"),
			run("s", 2, scheme("asp"), "sync[1].scheme=bsp")}, "sync[0]=bsp sync[1]=asp|sync[0]=asp sync[1]=bsp"},
		"defaults of two versions": {[]*Run{run("s", 0, scheme("asp")),
			func() *Run { r := run("s", 0, scheme("asp")); r.Settings["sync[0].fold"] = "rank"; return r }()}, "fold=arrival|fold=rank"},
	} {
		if got := strings.Join(namesOf(c.runs, naming{}), "|"); got != c.want {
			t.Errorf("%s: %s, want %s", what, got, c.want)
		}
	}
}

// The rows of a list are told apart, too: by the seed. Runs of equal settings share a name, and the list has their folders.
func TestNamesInALists(t *testing.T) {
	var runs []*Run
	for _, scheme := range []string{"bsp", "ssp"} {
		for _, seed := range []string{"1", "2"} {
			runs = append(runs, run("three", 2, "sync[0].scheme="+scheme, "seed="+seed))
		}
	}
	runs = append(runs, run("other", 0), run("other", 0))
	var got []string
	for _, row := range RunsTable(runs).Rows {
		got = append(got, row[0].Text)
	}
	if want := "three bsp seed=1|three bsp seed=2|three ssp seed=1|three ssp seed=2|other|other"; strings.Join(got, "|") != want {
		t.Errorf("%q, want %s", got, want)
	}
	page, err := Index("Runs", runs, make([]string, len(runs)), "")
	if err != nil || strings.Count(string(page), ">three ssp seed=2<") != 1 {
		t.Errorf("the index has no row of that name, %v", err)
	}
}

// Whatever runs are called and set, no two series have the same name, and each fits into a figure.
func TestNoTwoSeriesHaveTheSameName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var runs []*Run
		for range rapid.IntRange(1, 6).Draw(t, "runs") {
			r := drawRun(t)
			for k := range rapid.IntRange(0, 5).Draw(t, "keys") {
				if key := rapid.SampledFrom([]string{"sync[0].scheme", "sync[0].staleness", "sync[1].scheme",
					"train.optimizer.lr", "work.policy", "a.very.long.key.of.somebody"}).Draw(t, "key"); r.Settings != nil {
					r.Settings[key] = rapid.OneOf(rapid.SampledFrom([]string{"1", "2", "none", "a b", "a  b", "a\u00a0b",
						strings.Repeat("x", 100), strings.Repeat("W", 30) + fmt.Sprint(k)}), hostile).Draw(t, "v")
					r.Chosen = append(r.Chosen, key)
				}
			}
			r.Swept = rapid.IntRange(0, len(r.Chosen)).Draw(t, "swept")
			runs = append(runs, r)
		}
		seen := map[string]bool{}
		for _, g := range Groups(runs) {
			if seen[g.Label] || strings.TrimSpace(g.Label) == "" {
				t.Fatalf("the name %q of %v", g.Label, slices.Sorted(maps.Keys(seen)))
			}
			seen[g.Label] = true
			if plot.TextWidth(g.Label) > plot.NameWidth+1e-9 || plot.Fit(g.Label, plot.NameWidth+1e-9) != g.Label {
				t.Fatalf("the name %q is wider than %v", g.Label, plot.NameWidth)
			}
		}
	})
}

// All parts of a comparison call a series the same: sentences, legends, tables, LaTeX, texts for those who cannot see.
func TestAllPartsUseTheName(t *testing.T) {
	var runs []*Run
	for i, scheme := range []string{"bsp", "ssp", "asp"} {
		for seed := range 2 {
			r := made("three", scheme, uint64(seed+1), float64(i+1), 0.5, 0.6, 0.7, 0.75, 0.8)
			of := run("three", 2, "sync[0].scheme="+scheme, fmt.Sprint("seed=", seed+1))
			r.Settings, r.Chosen, r.Swept = of.Settings, of.Chosen, of.Swept
			r.Summary.Wire = &metrics.Wire{LimitS: 0.1, IterationS: 0.2}
			runs = append(runs, r)
		}
	}
	d := document(t, Options{}, runs...)
	for _, g := range Groups(runs) {
		for _, f := range d.Figures {
			if own := strings.HasPrefix(f.ID, "run"); !own && !strings.Contains(f.Desc, " "+g.Label) || own &&
				!regexp.MustCompile(`^(bsp|ssp|asp): `).MatchString(f.Desc) {
				t.Errorf("the description of %s does not name %s: %s", f.ID, g.Label, f.Desc)
			}
		}
		for _, table := range d.Tables {
			if !strings.Contains(string(table.LaTeX()), g.Label) || !strings.Contains(string(table.CSV()), g.Label) {
				t.Errorf("%s is not in the table %s", g.Label, table.ID)
			}
		}
	}
	if page := string(d.Page); strings.Contains(page, "fold=") || strings.Contains(page, "three reached") ||
		strings.Count(page, "<summary>ssp</summary>") != 1 {
		t.Error("the page has other names")
	}
	if !strings.HasPrefix(d.Verdict[0], "asp won: ") || !strings.HasPrefix(d.Verdict[1], "ssp took ") {
		t.Errorf("%q", d.Verdict)
	}
}
