package whatif

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"
)

// errorMax is the miss of the models from which on nothing is told.
const errorMax = 0.2

// Told says whether the models fit the run well enough to tell anything.
func (a *Answer) Told() bool { return a.Error <= errorMax && len(a.Candidates) > 0 }

// Line is the answer in one sentence, for the end of a run: what slow workers cost, and the best changes.
func (a *Answer) Line() string {
	if !a.Told() {
		return ""
	}
	var parts []string
	if text := a.slowText(); text != "" {
		parts = append(parts, text+".")
	}
	const shown = 4
	var all []string
	for i, o := range a.Candidates[:min(shown, len(a.Candidates))] {
		text := fmt.Sprintf("%s %.2f", o.Name, o.Ratio)
		if i == 0 {
			text += " times as fast"
		}
		if o.StalenessMax > 0 {
			text += fmt.Sprintf(" (staleness p50 %d)", o.StalenessP50)
		}
		all = append(all, text)
	}
	parts = append(parts, "Simulated, speed only: "+strings.Join(all, ", "))
	return strings.Join(parts, " ")
}

func (a *Answer) slowText() string {
	var all []string
	for _, s := range a.Slow {
		all = append(all, fmt.Sprintf("w%d cost %.0f %%", s.Worker, 100*s.Cost))
	}
	return strings.Join(all, ", ")
}

// Text is the whole answer as a table.
func (a *Answer) Text() string {
	var b strings.Builder
	what := "speed only: nothing was trained"
	if a.Gradients {
		what = "with real gradients"
		if a.Target > 0 {
			what += fmt.Sprintf(", up to a test accuracy of %g", a.Target)
		}
	}
	fmt.Fprintf(&b, "What if: simulated with the computing times of this run (%s); %s\n", a.Run, what)
	fmt.Fprintf(&b, "  the simulated run as it was misses the time of the real one by %.1f %%\n", 100*a.Error)
	if a.Error > errorMax {
		fmt.Fprintf(&b, "  NOTE: that is more than %.0f %%: do not trust the rest; a run whose ranks have a core each is "+
			"fitted better\n", 100*errorMax)
	}
	if a.Crowded {
		b.WriteString("  NOTE: the ranks competed for cores, so their computing times are not those of each alone, and " +
			"no scheme would be as fast as told\n" +
			"        here; run with a core for each rank\n")
	}
	for _, s := range a.Slow {
		fmt.Fprintf(&b, "  w%d cost %.0f %% of the time: that much less, if it computed as fast as the median worker\n", s.Worker, 100*s.Cost)
	}
	b.WriteString("\n")
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	head := "what\ttimes as fast\tstaleness p50/max"
	if a.Gradients {
		score := "test accuracy"
		if a.Base.R2 != nil {
			score = "test R2"
		}
		head += "\t" + score + "\ttarget at s"
	}
	fmt.Fprintln(t, head)
	row := func(o *Outcome, name string) {
		fmt.Fprintf(t, "%s\t%.2f\t%d/%d", name, o.Ratio, o.StalenessP50, o.StalenessMax)
		if a.Gradients {
			fmt.Fprintf(t, "\t%s\t%s", number(cmp.Or(o.R2, o.Accuracy), "%.4f"), number(o.Reached, "%.2f"))
		}
		fmt.Fprintln(t)
	}
	for i := range a.Candidates {
		row(&a.Candidates[i], a.Candidates[i].Name)
	}
	row(&a.Base, a.Run+" (as it was)")
	t.Flush()
	for _, text := range a.Refused {
		fmt.Fprintf(&b, "left out: %s\n", text)
	}
	return b.String()
}

func number(v *float64, form string) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf(form, *v)
}
