package layout

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"fluentps/internal/configs"
	"fluentps/internal/core"
	"fluentps/internal/core/shard"
	"fluentps/internal/policy/local"
	"fluentps/internal/policy/work"
	"fluentps/internal/show/metrics"
	"fluentps/ps/scheme"
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
		why = fmt.Sprintf("worker %d takes %.2f times the median, and took more than %g times the median in %d "+
			"iterations in a row", e.To, e.Scale, await.Factor, await.Rounds)
	}
	for i := range c.Sync {
		if r := &c.Sync[i]; r.Awaits() && hasShards(p, i) {
			all = append(all, metrics.Change{Iteration: e.Iter, Match: r.Match,
				Scheme: r.Phases()[scheme.Turn(int64(e.Src), len(awaits))].Scheme, Why: why})
		}
	}
	return all
}

// FactsOf is what the ranks and the data add to the configuration of a run.
func FactsOf(p *shard.Plan, roles shard.Roles, rows int) configs.Facts {
	return configs.Facts{Workers: len(roles.Workers), Computes: roles.Computes(), Servers: len(roles.Servers),
		Rows: rows, Lead: int(p.Shards[0].Rule) + 1}
}

// planTraining prints the length of the run, in iterations and in updates, and the samples of an update.
func planTraining(b *strings.Builder, c *configs.Config, p *shard.Plan, roles shard.Roles, rows int) {
	f := FactsOf(p, roles, rows)
	n := c.Length(f)
	batches := fmt.Sprintf("%d samples each", c.Train.BatchPerWorker)
	if c.Train.BatchGlobal > 0 {
		batches = fmt.Sprintf("their shares of %d samples", c.Train.BatchGlobal)
	}
	if c.DealsBatches() {
		batches = fmt.Sprintf("at most %d samples each, dealt anew by work.policy %s", c.BatchMax(f.Computes), c.Work.Policy)
	} else if len(c.Work.Shares) > 0 {
		batches = fmt.Sprintf("%v samples", c.Batches(f.Computes))
	}
	what := "an iteration"
	if c.Local.IsSet() {
		what = "a step"
	}
	fmt.Fprintf(b, "\nTraining: %d rows; %s is %d samples: %s of %s\n", rows, what, n.PerStep,
		metrics.Count(f.Computes, "rank")+" that compute, batches", batches)
	epoch := decimal(n.Epoch)
	if n.Varies || n.LeavesOut {
		epoch = "at most " + epoch
	}
	fmt.Fprintf(b, "  iterations: %s, %s an epoch; the run ends after %s\n", iterationsText(n, c.Train.Stop), epoch, budgetText(c.Train.Stop))
	if n.LeavesOut {
		fmt.Fprintf(b, "  work.policy %s leaves samples out: an epoch is %d samples that are computed, in %s iterations "+
			"if none is left out\n", c.Work.Policy, rows, decimal(math.Ceil(float64(rows)/float64(n.PerIteration))))
	}
	b.WriteString(planLocal(c, n, f.Workers))
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
			to := n.Exchanges
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
	if s := c.Work.Code.Stragglers; c.Coded() && s > 0 {
		if alpha := c.Work.Code.Alpha; alpha > 0 {
			share := float64(s+1) / (float64(s) + alpha)
			fmt.Fprintf(b, "  coded: a worker computes %.3g of these batches an iteration: %.3g of its own alone, pushed "+
				"first, and the rest of %d, pushed as a sum; twice what is pushed below\n", share*alpha, share, s+1)
			return
		}
		fmt.Fprintf(b, "  coded: a worker computes %d of these batches an iteration and pushes their sum\n", s+1)
	}
	if c.Work.Policy == work.Partial && c.Work.Load > 1 {
		fmt.Fprintf(b, "  partial: a worker computes up to %d of these batches an iteration and pushes each, up to %d "+
			"times what is pushed below\n", c.Work.Load, c.Work.Load)
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
	case n.DropsStale, n.Varies:
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
	perPush := float64(n.PerIteration*n.Turns) / float64(f.Workers) // samples of a push of a shard, on average
	versions, meaning, batch := to-from, "one for each iteration", float64(n.PerIteration*n.Turns)
	if n.Turns > 1 {
		meaning = "one for each of its exchanges"
	}
	if p, some := ph.Params.(scheme.ClosedBy); some && p.ClosedBy() > 0 && p.ClosedBy() < int64(f.Workers) {
		meaning, batch = fmt.Sprintf("one for each iteration, of the pushes of %d of %d workers", p.ClosedBy(), f.Workers),
			perPush*float64(p.ClosedBy())
	}
	if !ph.Whole() {
		several := float64(ph.Several(f.Workers))
		versions = math.Ceil((to - from) * float64(f.Workers) / several)
		if e, _ := scheme.All.Lookup(ph.Scheme); e.DropsStale { // what is dropped makes no update
			versions = math.Ceil((to - from) * float64(n.Accepted) / (perPush * several))
		}
		meaning, batch = "one for each push", perPush*several
		if p, says := ph.Params.(scheme.VersionText); says {
			meaning = p.VersionText(f.Workers)
		} else if several > 1 {
			meaning = fmt.Sprintf("one for any %d pushes", ph.Several(f.Workers))
		}
	}
	number, more := decimal(versions)+" updates", ""
	switch {
	case math.IsInf(versions, 1):
		number = "updates"
	case n.Varies, n.LeavesOut:
		number = "at most " + number
	case versions == 1:
		number = "1 update"
	}
	if n.Varies {
		more = " or more"
	}
	least := ""
	if n.LeavesOut {
		least = "at most "
	}
	text := fmt.Sprintf("  %s: %s of a shard, %s: effective batch %s%s%s", ph.Scheme, number, meaning, least,
		plural(math.Round(batch), "sample"), more)
	return text + shareText(ph, f.Workers) + "\n"
}

// shareText compares the step of an update of single pushes with that of a whole iteration.
func shareText(ph *configs.Phase, workers int) string {
	e, _ := scheme.All.Lookup(ph.Scheme)
	switch weight := ph.Common.Weight; {
	case ph.Whole(), e.Weight == scheme.NoWeight, ph.Several(workers) > 1 && weight == 0:
		return ""
	case weight > 0:
		return fmt.Sprintf(", at %s of a whole step", decimal(weight*float64(ph.Several(workers))))
	case e.Weight != "" && e.Weight != scheme.DeltaWhole: // DeltaWhole fills in the weight of deltas
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

// planLocal prints what workers do between two exchanges, and what the servers do with what they push.
func planLocal(c *configs.Config, n configs.Length, workers int) string {
	if !c.Local.IsSet() {
		return ""
	}
	l := &c.Local
	e, _ := local.All.Lookup(l.Policy)
	text := fmt.Sprintf("  local %s: %s\n  an iteration is %s", e.Name, e.Rule, l.RoundText(c.Train.Schedule.WarmUp))
	if !math.IsInf(n.Steps, 1) {
		text += fmt.Sprintf("; %s of each worker in all", plural(n.Steps, "step"))
		if n.DropsStale {
			text += ", or fewer"
		}
	}
	switch {
	case e.Fragments && l.Delay == 0:
		text += "\n  a worker waits for the answer to a push before its next step"
	case e.Fragments:
		text += fmt.Sprintf("\n  a worker goes on for %s before it takes an answer over, and keeps %s of its own parameters",
			plural(float64(l.Delay), "step"), decimal(l.Keep))
	case e.Late:
		text += "\n  a worker takes these steps while its last push is in flight"
	}
	if Teams(c) {
		text += fmt.Sprintf("\n  the ranks of a host average their parameters every %s, and one of them exchanges the mean",
			plural(float64(l.HostSteps), "step"))
	}
	return text + "\n  " + outerText(c, e, workers) + "\n"
}

// outerText is what the servers do with what workers push.
func outerText(c *configs.Config, e local.Entry, workers int) string {
	if e.Take == local.Elastic {
		return fmt.Sprintf("servers: each push moves them %s of the way to its worker, and the worker as far to them", decimal(c.Local.Pull))
	}
	o := c.Local.Outer
	rule := fmt.Sprintf("%s, lr %s", c.ServerRule(), decimal(o.LR))
	if o.Momentum > 0 {
		rule += ", momentum " + decimal(o.Momentum)
	}
	switch e.Weigh {
	case local.Equally:
		rule += ", along the mean of the changes, all of the same weight"
		if s := c.Local.Compensate; s > 0 {
			rule += fmt.Sprintf(", which workers correct with lambda %s", decimal(s))
		}
	case local.Whole:
		every := o.Every
		if every == 0 {
			every = int64(workers)
		}
		rule += fmt.Sprintf(", along each change; the momentum changes every %s", plural(float64(every), "version"))
	case local.BySamples:
		rule += ", along the mean of the changes, weighted by samples"
	}
	if c.ServerRule() == "sgd" && o.LR == 1 {
		rule += ": averaging of parameters"
	}
	return "servers: " + rule
}
