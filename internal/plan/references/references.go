// Package references names the papers of what a run uses, as BibTeX: references.bib in its run folder.
package references

import (
	"fmt"
	"slices"
	"strings"

	"fluentps/internal/configs"
	"fluentps/internal/policy/local"
	"fluentps/internal/policy/payload"
	"fluentps/internal/policy/send"
	"fluentps/internal/policy/terms"
	"fluentps/internal/policy/work"
	"fluentps/ps/scheme"
)

// Kind is what a name is of.
type Kind string

const (
	Scheme    Kind = "scheme"
	Send      Kind = "send order"
	Payload   Kind = "payload"
	Optimizer Kind = "optimizer"
	Work      Kind = "work policy"
	Local     Kind = "local policy"
	Period    Kind = "local period"
	Baseline  Kind = "baseline"
	Slowness  Kind = "kind of slowness"
	Model     Kind = "model"
	Data      Kind = "data set"
)

// Use is one thing that a run uses.
type Use struct {
	Kind Kind
	Name string
}

// Uses lists what a configuration uses, each thing once, in the order of its sections.
func Uses(c *configs.Config) (all []Use) {
	add := func(kind Kind, name string) {
		if u := (Use{kind, name}); name != "" && name != "none" && !slices.Contains(all, u) {
			all = append(all, u)
		}
	}
	add(Data, c.Data.Set)
	add(Model, c.Model.Name)
	add(Optimizer, c.Train.Optimizer.Name)
	if c.Baseline == configs.BaselineNone {
		for i := range c.Sync {
			for _, name := range strings.Split(c.Sync[i].Schemes(), ">") {
				add(Scheme, name)
			}
		}
		add(Send, c.Send.Order)
	} else {
		add(Baseline, c.Baseline)
	}
	add(Payload, c.Payload.Push)
	add(Payload, c.Payload.Pull)
	add(Work, c.Work.Policy)
	add(Local, c.Local.Policy)
	if c.Local.IsSet() {
		add(Period, c.Local.Period.Name)
	}
	for i := range c.Faults {
		if !c.Faults[i].Paused() {
			add(Slowness, c.Faults[i].Slow.Kind)
		}
	}
	return all
}

// Text is references.bib: the papers of what a configuration uses. A comment above each says what they were cited
// for, and another one names what has no paper of its own.
func Text(c *configs.Config) string {
	var order []string
	forWhat := map[string][]string{}
	var own []string
	texts := map[string]string{}
	for _, u := range Uses(c) {
		what := fmt.Sprintf("%s %s", u.Kind, u.Name)
		list := u.papers()
		if len(list) == 0 {
			own = append(own, what)
		}
		for _, p := range list {
			k := p.Key
			if forWhat[k] == nil {
				order, texts[k] = append(order, k), whole(p).text(k)
			}
			forWhat[k] = append(forWhat[k], what)
		}
	}
	var b strings.Builder
	b.WriteString("% Papers of what this run used. fluentps explain NAME says how its form of each differs from the paper.\n")
	if len(own) > 0 {
		fmt.Fprintf(&b, "%% Without a paper of its own here: %s.\n", strings.Join(own, ", "))
	}
	for _, k := range order {
		fmt.Fprintf(&b, "\n%% for %s\n%s", strings.Join(forWhat[k], ", "), texts[k])
	}
	return b.String()
}

// papers are those that the entry of a thing states, or else the rows of papers. A thing that a program of its own has
// registered may state some, too.
func (u Use) papers() []terms.Paper {
	switch u.Kind {
	case Scheme:
		e, _ := scheme.All.Lookup(u.Name)
		return e.Says.Papers
	case Send:
		e, _ := send.All.Lookup(u.Name)
		return e.Says.Papers
	case Payload:
		e, _ := payload.All.Lookup(u.Name)
		return e.Says.Papers
	case Work:
		e, _ := work.All.Lookup(u.Name)
		return e.Says.Papers
	case Local:
		e, _ := local.All.Lookup(u.Name)
		return terms.Cite(e.Papers...)
	case Period:
		e, _ := local.Periods.Lookup(u.Name)
		return terms.Cite(e.Papers...)
	}
	return terms.Cite(papers[u]...)
}

// whole is the paper of an entry that states it itself, or the one of entries that has its key.
func whole(p terms.Paper) entry {
	if p.Title == "" {
		return entries[p.Key]
	}
	return entry{p.Authors, p.Title, p.Venue, p.Year, p.ArXiv}
}

// entry is one paper.
type entry struct {
	authors string // as BibTeX wants them; "and others" where the list is cut
	title   string
	venue   string // conference, journal or institution; "": arxiv is where it appeared
	year    int
	arxiv   string // number; "": not there, or not known
}

func (e entry) text(key string) string {
	var b strings.Builder
	kind, place := "inproceedings", "booktitle"
	if other, there := kinds[key]; there {
		kind, place = other[0], other[1]
	} else if e.venue == "" {
		kind = "misc"
	}
	fmt.Fprintf(&b, "@%s{%s,\n  author = {%s},\n  title = {{%s}},\n", kind, key, e.authors, e.title)
	if e.venue != "" {
		fmt.Fprintf(&b, "  %s = {%s},\n", place, e.venue)
	}
	if e.arxiv != "" {
		fmt.Fprintf(&b, "  eprint = {%s},\n  archiveprefix = {arXiv},\n", e.arxiv)
	}
	fmt.Fprintf(&b, "  year = {%d}\n}\n", e.year)
	return b.String()
}
