package layout

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"fluentps/configs"
	"fluentps/ps/core"
	"fluentps/ps/local"
	"fluentps/ps/metrics"
	"fluentps/ps/scheme"
	"fluentps/ps/shard"
	"fluentps/ps/work"
)

// planChanges prints when the shards of a rule change their scheme.
func planChanges(b *strings.Builder, c *configs.Config, p *shard.Plan, workers, rows int) {
	for i := range c.Sync {
		if len(c.Sync[i].Then) == 0 || !slices.ContainsFunc(p.Shards, func(s shard.Shard) bool { return int(s.Rule) == i }) {
			continue
		}
		phases, err := c.PhasesOf(i, workers, rows)
		if err != nil {
			fmt.Fprintf(b, "  %v\n", err)
			continue
		}
		fmt.Fprintf(b, "  %s: %s", c.Sync[i].Match, phases[0].Scheme)
		for k, ph := range phases[1:] {
			fmt.Fprintf(b, " until %v, then %s", endOf(phases[k]), ph.Scheme)
		}
		if last := phases[len(phases)-1]; last.Await.IsSet() {
			fmt.Fprintf(b, " until %v, then %s again, and so on", last.Await, phases[0].Scheme)
		}
		b.WriteString("; each change waits until all workers have come to it")
		if c.Sync[i].Awaits() && slices.Contains(c.SkipsAhead(), true) {
			b.WriteString(", and where no scheme bounds the lead, those that are behind skip iterations")
		}
		b.WriteString("\n")
	}
}

// endOf says when a scheme ends.
func endOf(ph scheme.Phase) string {
	if ph.Await.IsSet() {
		return ph.Await.String()
	}
	return fmt.Sprintf("iteration %d", ph.Until)
}

// Changes tells for the summary that the rules whose schemes wait for stragglers have changed their scheme.
func Changes(c *configs.Config, p *shard.Plan, e *core.Effect) (all []metrics.Change) {
	awaits := c.Awaits()
	await := awaits[scheme.Turn(int64(e.Src)-1, len(awaits))]
	why := await.String()
	if e.To >= 0 {
		why = fmt.Sprintf("worker %d takes %.2f times the median, and took more than %g times the median in %d iterations in a row", e.To, e.Scale, await.Factor, await.Rounds)
	}
	for i := range c.Sync {
		if r := &c.Sync[i]; r.Awaits() && hasShards(p, i) {
			all = append(all, metrics.Change{Iteration: e.Iter, Match: r.Match, Scheme: r.Phases()[scheme.Turn(int64(e.Src), len(awaits))].Scheme, Why: why})
		}
	}
	return all
}

// FactsOf is what the ranks and the data add to the configuration of a run.
func FactsOf(p *shard.Plan, roles shard.Roles, rows int) configs.Facts {
	return configs.Facts{Workers: len(roles.Workers), Computes: roles.Computes(), Servers: len(roles.Servers), Rows: rows, Lead: int(p.Shards[0].Rule) + 1}
}

// planTraining prints the length of the run, in iterations and in updates, and the samples of an update.
func planTraining(b *strings.Builder, c *configs.Config, p *shard.Plan, roles shard.Roles, rows int) {
	f := FactsOf(p, roles, rows)
	n := c.Length(f)
	batches := fmt.Sprintf("%d samples each", c.Train.BatchPerWorker)
	if c.Train.BatchGlobal > 0 {
		batches = fmt.Sprintf("their shares of %d samples", c.Train.BatchGlobal)
	}
	if c.Work.Policy != work.Fixed {
		batches = fmt.Sprintf("at most %d samples each, dealt anew by work.policy %s", c.BatchMax(f.Computes), c.Work.Policy)
	} else if len(c.Work.Shares) > 0 {
		batches = fmt.Sprintf("%v samples", c.Batches(f.Computes))
	}
	fmt.Fprintf(b, "\nTraining: %d rows; an iteration is %d samples: %s of %s\n", rows, n.PerIteration, metrics.Count(f.Computes, "rank")+" that compute, batches", batches)
	fmt.Fprintf(b, "  iterations: %s, %s an epoch; the run ends after %s\n", iterationsText(n, c.Train.Stop), decimal(n.Epoch), budgetText(c.Train.Stop))
	b.WriteString(planLocal(c, p))
	printed := map[string]bool{}
	for i := range c.Sync {
		if !hasShards(p, i) {
			continue
		}
		phases := c.Sync[i].Phases()
		ends, err := c.PhasesOf(i, f.Computes, rows)
		if err != nil { // planChanges prints the error
			continue
		}
		from := 0.0
		for k := range phases {
			to := n.Iterations
			if c.Sync[i].Awaits() {
				to = math.Inf(1) // nobody knows how many iterations a scheme has
			} else if k < len(phases)-1 {
				to = min(to, float64(ends[k].Until))
			}
			text := updatesText(&phases[k], n, f, from, to)
			if !printed[text] {
				printed[text] = true
				b.WriteString(text)
			}
			if from = to; c.Sync[i].Awaits() {
				from = 0
			}
		}
	}
}

// hasShards says whether a rule has shards.
func hasShards(p *shard.Plan, rule int) bool {
	for i := range p.Shards {
		if int(p.Shards[i].Rule) == rule {
			return true
		}
	}
	return false
}

func iterationsText(n configs.Length, s configs.Stop) string {
	switch {
	case math.IsInf(n.Iterations, 1) && s.Updates > 0:
		return "as many as these versions take"
	case math.IsInf(n.Iterations, 1):
		return "as many as the time allows"
	case n.DropsStale:
		return "at most " + decimal(n.Iterations) + " in all"
	}
	return decimal(n.Iterations) + " in all"
}

func budgetText(s configs.Stop) string {
	var words []string
	if s.Epochs > 0 {
		words = append(words, plural(s.Epochs, "epoch"))
	}
	if s.Samples > 0 {
		words = append(words, plural(float64(s.Samples), "sample"))
	}
	if s.Updates > 0 {
		words = append(words, plural(float64(s.Updates), "version")+" of the lead shard")
	}
	if s.Time > 0 {
		words = append(words, s.Time.String())
	}
	if s.Target > 0 {
		words = append(words, "test accuracy "+decimal(s.Target))
	}
	if len(words) == 1 {
		return words[0]
	}
	return strings.Join(words, ", or ") + ", whichever comes first"
}

// updatesText says how many versions a scheme makes of a shard between two clocks, and what each version is.
func updatesText(ph *configs.Phase, n configs.Length, f configs.Facts, from, to float64) string {
	perPush := float64(n.PerIteration) / float64(f.Workers) // samples of a push, on average
	versions, meaning, batch := to-from, "one for each iteration", float64(n.PerIteration)
	if p, drops := ph.Params.(*scheme.DropParams); drops && p.Required > 0 && p.Required < int64(f.Workers) {
		meaning, batch = fmt.Sprintf("one for each iteration, of the pushes of %d of %d workers", p.Required, f.Workers), perPush*float64(p.Required)
	}
	if !ph.Whole() {
		several := float64(ph.Several(f.Workers))
		versions = math.Ceil((to - from) * float64(f.Workers) / several)
		if e, _ := scheme.Lookup(ph.Scheme); e.DropsStale { // what is dropped makes no update
			versions = math.Ceil((to - from) * float64(n.Accepted) / (perPush * several))
		}
		meaning, batch = "one for each push", perPush*several
		switch p := ph.Params.(type) {
		case *scheme.RingleaderParams:
			meaning = "one when every worker has pushed"
		case *scheme.QuorumParams:
			meaning = fmt.Sprintf("one for the pushes of %d to %d workers", p.Of(f.Workers), f.Workers)
		case *scheme.RennalaParams:
			meaning = fmt.Sprintf("one for %d pushes of the newest version", ph.Several(f.Workers))
		default:
			if several > 1 {
				meaning = fmt.Sprintf("one for any %d pushes", ph.Several(f.Workers))
			}
		}
	}
	number := decimal(versions) + " updates"
	if math.IsInf(versions, 1) {
		number = "updates"
	} else if versions == 1 {
		number = "1 update"
	}
	text := fmt.Sprintf("  %s: %s of a shard, %s: effective batch %s", ph.Scheme, number, meaning, plural(math.Round(batch), "sample"))
	return text + shareText(ph, f.Workers) + "\n"
}

// shareText compares the step of an update of single pushes with that of a whole iteration.
func shareText(ph *configs.Phase, workers int) string {
	e, _ := scheme.Lookup(ph.Scheme)
	switch weight := ph.Common.Weight; {
	case ph.Whole(), e.Weight == scheme.NoWeight, ph.Several(workers) > 1 && weight == 0:
		return ""
	case weight > 0:
		return fmt.Sprintf(", at %s of a whole step", decimal(weight*float64(ph.Several(workers))))
	case e.Weight != "" && !e.DeltaWhole: // DeltaWhole fills in the weight of deltas
		return ", at the share of a step that fluentps explain " + e.Name + " gives"
	}
	return fmt.Sprintf(", at 1/%d of a whole step", workers)
}

func decimal(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

func plural(n float64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return decimal(n) + " " + noun
}

// planLocal prints what workers do between two exchanges.
func planLocal(c *configs.Config, p *shard.Plan) string {
	if !c.Local.IsSet() {
		return ""
	}
	e, _ := local.Lookup(c.Local.Policy)
	text := fmt.Sprintf("  local %s: %s\n", e.Name, e.Rule)
	switch n := c.Local.Constant(); {
	case e.Fragments:
		text += fmt.Sprintf("  an iteration is %d steps of each worker and the exchange of one of %d fragments\n", n, c.Local.Fragments)
	case n > 0:
		text += fmt.Sprintf("  an iteration is %d steps of each worker and an exchange\n", n)
	default:
		text += "  an iteration is an exchange, and the steps before it; their number changes while training runs\n"
	}
	return text
}
