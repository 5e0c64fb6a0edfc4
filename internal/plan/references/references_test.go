package references

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"fluentps/internal/configs/configstest"
	"fluentps/internal/policy/local"
	"fluentps/internal/policy/optim"
	"fluentps/internal/policy/payload"
	"fluentps/internal/policy/send"
	"fluentps/internal/policy/straggler"
	"fluentps/internal/policy/work"
	"fluentps/ps/scheme"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
)

// Everything that a configuration can name is in the table, if only with an empty list, and the table names nothing else.
func TestEveryNameHasItsPapers(t *testing.T) {
	known := map[Use]bool{}
	for kind, names := range map[Kind][]string{Optimizer: optim.Names(),
		Slowness: straggler.All.Names(), Model: workload.ModelNames(), Data: dataset.SetNames(), Baseline: {"allreduce", "pslite"}} {
		for _, name := range names {
			if name == "none" {
				continue
			}
			known[Use{kind, name}] = true
			if _, there := papers[Use{kind, name}]; !there {
				t.Errorf("%s %s has no row in papers", kind, name)
			}
		}
	}
	cited := map[string]bool{}
	for u, keys := range papers {
		if !known[u] {
			t.Errorf("papers has %v, which nothing is called", u)
		}
		for _, k := range keys {
			cited[k] = true
			if entries[k].title == "" {
				t.Errorf("%v cites %s, which is no entry", u, k)
			}
		}
	}
	for _, e := range local.All {
		for _, k := range e.Papers {
			cited[k] = true
		}
		if len(e.Papers) == 0 && e.Source != "ours" {
			t.Errorf("the local policy %s names no paper", e.Name)
		}
	}
	for _, e := range local.Periods {
		for _, k := range e.Papers {
			cited[k] = true
		}
		if len(e.Papers) == 0 && e.Source != "ours" {
			t.Errorf("the period %s names no paper", e.Name)
		}
	}
	stated := slices.Concat(usesOf(Scheme, scheme.All.Names()), usesOf(Send, send.All.Names()), usesOf(Payload, payload.All.Names()),
		usesOf(Work, work.All.Names()))
	for _, u := range stated {
		if source := sourceOf(u); u.papers() == nil && !strings.HasPrefix(source, "ours") {
			t.Errorf("%v: its source is %q, but Says.Papers is missing; an empty list says that no paper is cited for it", u, source)
		}
		for _, p := range u.papers() {
			if whole(p).title == "" || whole(p).year < 1950 || p.Title != "" && entries[p.Key].title != "" {
				t.Errorf("%v cites %+v, which is no entry, or is one and written out again", u, p)
			}
			if p.Title == "" {
				cited[p.Key] = true
			}
		}
	}
	for k := range cited {
		if entries[k].title == "" {
			t.Errorf("%s is cited, but is no entry", k)
		}
	}
	for k, e := range entries {
		if !cited[k] || e.authors == "" || e.year < 1990 || e.venue == "" && e.arxiv == "" {
			t.Errorf("entry %s: %+v, cited %v", k, e, cited[k])
		}
	}
}

// sourceOf is what the entry says of its source, in words.
func sourceOf(u Use) string {
	switch u.Kind {
	case Scheme:
		e, _ := scheme.All.Lookup(u.Name)
		return e.Paper
	case Send:
		e, _ := send.All.Lookup(u.Name)
		return e.Paper
	case Payload:
		e, _ := payload.All.Lookup(u.Name)
		return e.Paper
	}
	e, _ := work.All.Lookup(u.Name)
	return e.Source
}

func usesOf(kind Kind, names []string) (all []Use) {
	for _, n := range names {
		all = append(all, Use{kind, n})
	}
	return all
}

// TestAnEntryStatesItsOwnPaper: a new scheme, here or in another module, brings its paper along, and no other file names it.
func TestAnEntryStatesItsOwnPaper(t *testing.T) {
	own, _ := scheme.All.Lookup("asp")
	own.Name = "own"
	own.Says = scheme.Says{Papers: []scheme.Paper{{Key: "blatt2007convergent",
		Authors: "Blatt, Doron and Hero, Alfred O. and Gauchman, Hillel",
		Title:   "A Convergent Incremental Gradient Method with a Constant Step Size", Venue: "SIAM Journal on Optimization", Year: 2007}}}
	before := scheme.All
	t.Cleanup(func() { scheme.All = before })
	scheme.All = append(slices.Clone(before), own)
	text := Text(configstest.Load(t, `sync=[{match: "*", scheme: own}]`))
	if want := "% for scheme own\n@inproceedings{blatt2007convergent,\n  author = {Blatt, Doron and "; !strings.Contains(text, want) {
		t.Errorf("%q is not in\n%s", want, text)
	}
}

// A run with several axes cites each paper once, for all that it is used for, in a form that BibTeX reads: balanced
// braces, and one entry a paper.
func TestReferencesOfARun(t *testing.T) {
	c := configstest.Load(t, `sync=[{match: "fc1.*", scheme: ssp, staleness: 2}, {match: "*", scheme: pssp}]`,
		"model={name: mlp, layers: [4]}", "faults=[{worker: 0, slow: {kind: fluentps, sleep: 1ms}}]",
		"send.order=priority")
	text := Text(c)
	for _, want := range []string{"% for scheme ssp\n@inproceedings{ho2013ssp,",
		"% for scheme ssp, scheme pssp, kind of slowness fluentps\n@inproceedings{yao2019fluentps,\n  author = {Yao, Xin " +
			"and Wu, Xueyu and Wang, Cho-Li},\n", "@inproceedings{jayarajan2019priority,",
		"% Without a paper of its own here: data set generated, model mlp, optimizer "} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if n := strings.Count(text, "@"); n != 3 || strings.Count(text, "{") != strings.Count(text, "}") {
		t.Errorf("%d entries:\n%s", n, text)
	}
	for k, e := range entries {
		entry := e.text(k)
		if !regexp.MustCompile(`^@(misc|inproceedings|article|techreport)\{[a-z0-9]+,\n(  [a-z]+ = \{.*\},?\n)+\}\n$`).MatchString(entry) ||
			strings.Count(entry, "{") != strings.Count(entry, "}") {
			t.Errorf("not BibTeX:\n%s", entry)
		}
	}
	if text := Text(configstest.Load(t, "baseline=allreduce")); strings.Contains(text, "scheme") {
		t.Errorf("a run without servers cites schemes:\n%s", text)
	}
}

// BibTeX has a kind of entry for each kind of paper, and each kind has its own word for the place.
func TestKindsOfEntries(t *testing.T) {
	for key, want := range map[string]string{
		"ho2013ssp":              "@inproceedings{ho2013ssp,\n  author = .*\n  title = .*\n  booktitle = ",
		"lecun1998gradient":      "@article{lecun1998gradient,\n  author = .*\n  title = .*\n  journal = {Proceedings of the IEEE},\n",
		"krizhevsky2009learning": "@techreport{krizhevsky2009learning,\n  author = .*\n  title = .*\n  institution = {University of Toronto},\n",
		"you2017large":           "@misc{you2017large,\n  author = .*\n  title = .*\n  eprint = ",
	} {
		if got := entries[key].text(key); !regexp.MustCompile("^" + want).MatchString(got) {
			t.Errorf("%s:\n%s", key, got)
		}
	}
	for key := range kinds {
		if entries[key].venue == "" {
			t.Errorf("%s is no entry, or names no place", key)
		}
	}
}
