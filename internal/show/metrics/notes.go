package metrics

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A NOTE speaks only if following it gains gainMin or more, by the figures of the run, and it states that gain. The other limits say when
// the figures tell a cause.
const (
	notesMax        = 2
	gainMin         = 1.1  // samples per second over those of the run: a smaller gain is not worth a change
	seenMin         = 20   // iterations of every worker: fewer predict nothing
	blockedShareMin = 0.10 // of train_s: with less, waiting is not worth a change
	lastShareMin    = 0.50 // of all waits: with more, workers wait for one shard
	lastWaitsMin    = 20   // waits: fewer prove nothing
	sizeRatioMin    = 2.0  // bytes of a shard over the mean of the others
	foldShareMin    = 0.50 // of train_s: time that the busiest server folds
	idleShareMin    = 0.80 // of train_s: idle time of the busiest server
	idleBlockedMax  = 0.20 // of train_s: idle servers are spare only if workers hardly wait for their replies
	lastIdleMax     = 0.50 // of train_s: workers did not wait for servers that were idle for longer
	trafficShareMin = 0.40 // of train_s: push and pull of a worker
)

// note is one piece of advice.
type note struct {
	gain float64 // samples per second over those of the run if it is followed; notes with a larger gain come first
	text string
}

// Notes returns the advice at the end of a run: at most notesMax findings, those that gain the most first. Each names
// the key of the YAML to change, and what that gains.
func Notes(s *Summary) (out []string) {
	for _, n := range findings(s) {
		if n.gain >= gainMin && len(out) < notesMax {
			out = append(out, n.text)
		}
	}
	return out
}

// findings are all notes, those that gain the most first.
func findings(s *Summary) (found []note) {
	if !(s.TrainS > 0) || s.Iterations-resumedAt(s) < seenMin {
		return nil
	}
	slow := noteStragglers(s)
	last := func(s *Summary) *note { return noteLastShard(s, slow != nil) }
	for _, find := range []func(*Summary) *note{func(*Summary) *note { return slow }, last, noteFoldBound, noteIdleServers, noteTraffic} {
		if n := find(s); n != nil {
			found = append(found, *n)
		}
	}
	slices.SortStableFunc(found, func(a, b note) int { return cmp.Compare(b.gain, a.gain) })
	return found
}

// saving is the gain if a share of the training time is saved.
func saving(share float64) float64 { return 1 / (1 - min(share, 0.99)) }

// upTo is advice whose gain is known as a bound: what is saved if nobody waits for it any more.
func upTo(gain float64, format string, args ...any) *note {
	return &note{gain, fmt.Sprintf(format, args...) + fmt.Sprintf(" (up to %.1f times as many samples/s)", gain)}
}

// avgShare is the mean of a span over the ranks of a role, as a part of train_s.
func avgShare(s *Summary, role string, span Span) float64 {
	return float64(s.PerRole[role][span.String()].Avg / s.TrainS)
}

// noteLastShard looks for one shard that workers still wait for after all others have answered. explained says that slow workers
// explain the wait: then the shard with the strictest scheme is not its cause.
func noteLastShard(s *Summary, explained bool) *note {
	blocked := avgShare(s, RoleWorker, Blocked)
	if len(s.PerShard) < 2 || !(blocked >= blockedShareMin) {
		return nil
	}
	var waits int64
	last := s.PerShard[0]
	for _, h := range s.PerShard {
		waits += h.WaitedLast
		if h.WaitedLast > last.WaitedLast {
			last = h
		}
	}
	share := float64(last.WaitedLast) / float64(waits)
	if waits < lastWaitsMin || share < lastShareMin {
		return nil
	}
	others := othersBytes(s, &last)
	mixed := slices.ContainsFunc(s.PerShard, func(h ShardSummary) bool { return h.Scheme != "bsp" })
	advice := fmt.Sprintf("raise cluster: servers from %d to %d, to halve the load of each", s.Servers, 2*s.Servers)
	saved := blocked * share / 2 // of the waits for it, which take as long as its load
	switch {
	case last.Scheme == "bsp" && mixed && explained:
		return nil
	case last.Scheme == "bsp" && mixed:
		advice = fmt.Sprintf("give its sync: rule (match: %q) a scheme that waits less, such as ssp", ruleOf(last.Name))
		saved = min(blocked*share, float64(last.DelayedS/s.TrainS)/float64(max(1, s.Workers))) // what the scheme delayed
	case others > 0 && float64(last.Bytes) >= sizeRatioMin*others:
		// The shards of a rule differ in size only if they were not cut evenly.
		advice = fmt.Sprintf("it is %.1f times as large as the others; set shards: {slice: even} to level them", float64(last.Bytes)/others)
		n := float64(likeShards(s, &last))
		saved = blocked * share * (1 - (float64(last.Bytes)+(n-1)*others)/n/float64(last.Bytes))
	}
	if idle := avgShare(s, RoleServer, Idle); idle > lastIdleMax && !(last.Scheme == "bsp" && mixed) {
		return nil // the servers were not busy: one of several equal shards is always the last to answer
	}
	return upTo(saving(saved), "shard %d (%s, %s on server %d) was the last that workers waited for in %.0f %% of their waits: %s",
		last.Shard, last.Name, last.Scheme, last.Server, 100*share, advice)
}

// ruleOf is the match of the sync rule of a shard: the name of the shard up to the last slash.
func ruleOf(name string) string { return name[:max(0, strings.LastIndexByte(name, '/'))] }

// likeShards is the number of shards of the same rule, shard itself included.
func likeShards(s *Summary, shard *ShardSummary) (n int) {
	for _, h := range s.PerShard {
		if ruleOf(h.Name) == ruleOf(shard.Name) {
			n++
		}
	}
	return n
}

// othersBytes is the mean size of the other shards of the same rule; 0 if there are none.
func othersBytes(s *Summary, shard *ShardSummary) float64 {
	bytes, n := int64(0), likeShards(s, shard)-1
	for _, h := range s.PerShard {
		if h.Shard != shard.Shard && ruleOf(h.Name) == ruleOf(shard.Name) {
			bytes += h.Bytes
		}
	}
	if n <= 0 {
		return 0
	}
	return float64(bytes) / float64(n)
}

// noteFoldBound looks for servers that cannot sum as fast as workers push.
func noteFoldBound(s *Summary) *note {
	fold := float64(s.PerRole[RoleServer][Fold.String()].Max / s.TrainS)
	blocked := avgShare(s, RoleWorker, Blocked)
	if !(fold >= foldShareMin && blocked >= blockedShareMin) {
		return nil
	}
	return upTo(saving(min(blocked, fold/2)), "the busiest server folded for %.0f %% of the time while workers were blocked for %.0f %%: "+
		"raise cluster: servers from %d to %d, to halve the sums of each", 100*fold, 100*blocked, s.Servers, 2*s.Servers)
}

// noteIdleServers looks for servers that are idle and could compute. Where ranks are goroutines a server that idles
// holds nothing, and where they outnumber the cores there is none for it to compute on.
func noteIdleServers(s *Summary) *note {
	idle := float64(s.PerRole[RoleServer][Idle.String()].Min / s.TrainS)
	if !(idle >= idleShareMin) || avgShare(s, RoleWorker, Blocked) > idleBlockedMax || s.Mode == "local" || s.Crowded || s.Workers < 1 {
		return nil
	}
	advice := "set cluster: {placement: colocate} to let them compute too"
	if s.Servers > 1 {
		advice = fmt.Sprintf("lower cluster: servers (now %d), or set cluster: {placement: colocate}, to let them compute", s.Servers)
	}
	return upTo(1+idle*float64(s.Servers)/float64(s.Workers), "the servers were idle for at least %.0f %% of the time: %s", 100*idle, advice)
}

// noteTraffic looks for workers that spend their time on push and pull.
func noteTraffic(s *Summary) *note {
	share := avgShare(s, RoleWorker, Push) + avgShare(s, RoleWorker, Pull)
	if !(share >= trafficShareMin) {
		return nil
	}
	return upTo(saving(share/2), "workers spent %.0f %% of the time on push and pull: "+
		"double train: batch_per_worker (or batch_global) to exchange half as often per sample", 100*share)
}
