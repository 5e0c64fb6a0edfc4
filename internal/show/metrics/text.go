package metrics

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"fluentps/internal/show/metrics/timings"
)

// Rows and devices beyond these limits are in summary.json only: a thousand shards would bury the headline of summary.txt.
const (
	shardRowsMax      = 40
	evaluationRowsMax = 20
	changesMax        = 10
	devicesMax        = 8
)

// WriteText writes summary.txt, which is also the end of standard output: the run, time by role, traffic by shard, evaluations,
// NOTEs (see Notes), the headline, and as the last line `Finished: ` with ok or the reason. Lines have at most width columns. The
// last two may be longer, because scripts read each as one line. It is one Write.
func WriteText(w io.Writer, s *Summary, width int) error {
	parts := []string{headText(s, width)}
	if len(s.PerRole) > 0 {
		parts = append(parts, roleText(s))
	}
	if len(s.PerShard) > 0 {
		parts = append(parts, shardText(s, width))
	}
	if len(s.Evaluations) > 0 {
		parts = append(parts, evaluationText(s))
	}
	notes := ""
	if worse := s.BesideConstant(); worse != "" {
		notes = Wrap("WARNING: "+worse, width, len("WARNING: ")) + "\n"
	}
	for _, n := range Notes(s) {
		notes += Wrap("NOTE: "+n, width, len("NOTE: ")) + "\n"
	}
	if notes != "" {
		parts = append(parts, notes)
	}
	reason := strings.ReplaceAll(strings.TrimSpace(s.Finished), "\n", "; ") // the last line is one line
	parts = append(parts, performanceText(s)+"\nFinished: "+reason+"\n")
	_, err := io.WriteString(w, strings.Join(parts, "\n"))
	return err
}

// BaselineText names a baseline, with its keys if it has any.
func BaselineText(name, keys, algorithm string) string {
	switch {
	case keys != "":
		return fmt.Sprintf("%s (keys: %s)", name, keys)
	case algorithm != "":
		return fmt.Sprintf("%s (%s)", name, algorithm)
	}
	return name
}

func headText(s *Summary, width int) string {
	var b strings.Builder
	line := func(label, format string, args ...any) {
		b.WriteString(Wrap(fmt.Sprintf("  %-8s ", label)+fmt.Sprintf(format, args...), width, 11) + "\n")
	}
	mode := s.Mode
	if s.Baseline != "" {
		mode += ", baseline " + BaselineText(s.Baseline, s.BaselineKeys, s.BaselineAlgorithm)
	}
	workers := Count(s.Workers, "worker")
	if s.Computing > 0 {
		workers += fmt.Sprintf(" (hierarchy %s: %s compute)", s.Hierarchy, Count(s.Computing, "rank"))
	}
	b.WriteString(Wrap(fmt.Sprintf("%s (%s): %s, %s, seed %d", s.Name, mode, Count(s.Servers, "server"), workers, s.Seed), width, 2) + "\n")
	line("trained", "%s iterations, %s samples, max lead %s", thousands(s.Iterations), thousands(s.Samples), thousands(s.MaxLead))
	if q := s.Resumed; q != nil {
		part := "times, traffic and counts are of the part since then"
		if q.Iteration >= s.Iterations {
			part = "nothing was left to train: to continue, raise train.stop"
		}
		if q.Unrecorded > 0 {
			part += fmt.Sprintf("; %s lacks the times of %s before it, over all workers: a part that is killed leaves none, "+
				"and a long part only its first", timings.FileName, Count(int(q.Unrecorded), "iteration"))
		}
		line("resumed", "at iteration %s, sample %s: %s", thousands(q.Iteration), thousands(q.Samples), part)
	}
	if text := devicesText(s); text != "" {
		line("devices", "%s", text)
	}
	line("time", "setup %s s, train %s s, evaluation %s s, wall %s s",
		fixed(float64(s.SetupS), 1), fixed(float64(s.TrainS), 1), fixed(float64(s.EvalS), 1), fixed(float64(s.WallS), 1))
	line("result", "train loss %s, test loss %s%s", optional(s.TrainLoss, 4), optional(s.TestLoss, 4), s.scoresText())
	countsText(s, line)
	for _, c := range s.Changes[:min(len(s.Changes), changesMax)] {
		line("scheme", "%s from iteration %s on (%s), because %s", c.Scheme, thousands(c.Iteration), c.Match, c.Why)
	}
	if more := len(s.Changes) - changesMax; more > 0 {
		line("scheme", "and %s more, in %s", Count(more, "change"), SummaryName)
	}
	if m := s.Memory; m != nil {
		of := fmt.Sprintf(" in %s of %s", m.Role, m.Host)
		if m.Processes == 1 {
			of = ", all ranks together"
		}
		line("memory", "at most %s%s", Size(m.PeakBytesMax), of)
	}
	traffic := fmt.Sprintf("sent %s, received %s", Size(s.BytesSent), Size(s.BytesReceived))
	if n := s.BytesBetween; n != nil {
		traffic += ", between hosts " + Size(*n)
	}
	if s.BytesShared > 0 {
		traffic += ", read in shared memory " + Size(s.BytesShared)
	}
	line("traffic", "%s", traffic)
	if s.Payload.Lossy {
		line("payload", "lossy: pushes travelled as %s, parameters as %s", s.Payload.Push, s.Payload.Pull)
	}
	if w := s.Wire; w != nil && w.LimitS > 0 {
		card := "the card of " + w.Host
		if w.Measured {
			card += fmt.Sprintf(" (measured %s/s)", Size(int64(w.LinkBytesPerS)))
		}
		line("wire", "an iteration takes %s s, at least %s s by %s: %s of the limit, computing included",
			fixed(float64(w.IterationS), 4), fixed(float64(w.LimitS), 4), card, fixed(float64(w.Share), 2))
	}
	return b.String()
}

// countsText has the lines on parameters that are 0 and on gradients that were clipped.
func countsText(s *Summary, line func(label, format string, args ...any)) {
	if n := s.Sparsity; n != nil {
		line("sparsity", "%s of %s are exactly 0", thousands(n.Zeros), Count(int(n.Parameters), "parameter"))
	}
	if n := s.Clipping; n != nil {
		line("clipped", "%s of %s, to train.clip.norm", thousands(n.Clipped), Count(int(n.Gradients), "gradient"))
	}
}

// resumedAt is the iteration at which this part of the run began: 0, or that of the checkpoint. Times are those of this part.
func resumedAt(s *Summary) int64 {
	if s.Resumed == nil {
		return 0
	}
	return s.Resumed.Iteration
}

// devicesText counts the ranks that computed on each device, in the order of workers. It returns "" if no device is known.
func devicesText(s *Summary) string {
	ranks := map[string]int{}
	var names []string
	add := func(name string) {
		if ranks[name]++; ranks[name] == 1 {
			names = append(names, name)
		}
	}
	for _, w := range s.PerWorker {
		add(w.Device)
		for _, m := range w.Members {
			add(m.Device)
		}
	}
	var parts []string
	for _, name := range names {
		if name != "" {
			parts = append(parts, fmt.Sprintf("%s on %s", Count(ranks[name], "rank"), name))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	if n := len(parts); n > devicesMax {
		parts = append(parts[:devicesMax], fmt.Sprintf("%d more in summary.json", n-devicesMax))
	}
	return strings.Join(parts, ", ")
}

// scoresText lists results behind a loss.
func (e *Evaluated) scoresText() (text string) {
	for _, s := range e.scores() {
		text += fmt.Sprintf(", test %s %s", s.name, s.value)
	}
	return text
}

// roleText is the table of times by role. The share is the mean over ranks, as a part of train_s.
func roleText(s *Summary) string {
	rows := [][]string{{"Role", "Section", "min s", "avg s", "max s", "% of train"}}
	for _, role := range []string{RoleWorker, RoleServer} {
		times, ok := s.PerRole[role]
		if !ok {
			continue
		}
		for span := range SpanCount + 1 {
			key := Rest
			if span < SpanCount {
				key = span.String()
			}
			r := times[key]
			if r == (Range{}) {
				continue // a span that this role never has, such as Fold of a worker, would be noise
			}
			rows = append(rows, []string{role, strings.ToUpper(key[:1]) + key[1:],
				fixed(float64(r.Min), 3), fixed(float64(r.Avg), 3), fixed(float64(r.Max), 3),
				percent(float64(r.Avg), float64(s.TrainS))})
		}
	}
	return table(rows, map[int]bool{0: true, 1: true})
}

// shardText is the table of shards. A scheme such as r2sp delays pushes, all others delay pulls.
func shardText(s *Summary, width int) string {
	var waits int64
	for _, h := range s.PerShard {
		waits += h.WaitedLast
	}
	rows := [][]string{{"Shard", "Scheme", "Server", "KiB", "Pushes", "Delayed %", "Staleness", "Last %", "Name"}}
	for _, h := range s.PerShard[:min(len(s.PerShard), shardRowsMax)] {
		delayed := percent(float64(h.DelayedPulls), float64(h.Pulls))
		if h.DelayedGrants > 0 {
			delayed = percent(float64(h.DelayedGrants), float64(h.Pushes))
		}
		rows = append(rows, []string{strconv.Itoa(h.Shard), h.Scheme, strconv.Itoa(h.Server),
			fixed(float64(h.Bytes)/1024, 1), thousands(h.Pushes), delayed,
			fmt.Sprintf("%d/%d/%d", h.StalenessP50, h.StalenessP99, h.StalenessMax), percent(float64(h.WaitedLast), float64(waits)), h.Name})
	}
	text := fitted(rows, map[string]bool{"Scheme": true, "Name": true}, []string{"Server", "KiB", "Last %"}, width)
	if more := len(s.PerShard) - shardRowsMax; more > 0 {
		text += fmt.Sprintf("%s more in summary.json\n", Count(more, "shard"))
	}
	var dropped, skipped, duplicates, approximate int64
	reasons := map[string]int64{}
	for _, h := range s.PerShard {
		for why, n := range h.DroppedFor {
			reasons[why] += n
		}
		dropped, skipped, duplicates = dropped+h.Dropped, skipped+h.Skipped, duplicates+h.Duplicates
		approximate += h.Approximate
	}
	if dropped+skipped+duplicates > 0 {
		text += Wrap(fmt.Sprintf("Over all shards: %s pushes dropped%s, %s iterations skipped, %s duplicates ignored",
			thousands(dropped), listed(reasons), thousands(skipped), thousands(duplicates)), width, 2) + "\n"
	}
	if approximate > 0 {
		text += Wrap(fmt.Sprintf("Over all shards: %s versions decoded approximately: work.code.deadline closed them, or "+
			"too many workers had left", thousands(approximate)), width, 2) + "\n"
	}
	legend := "Staleness: p50/p99/max, in versions."
	if strings.Contains(text, "Last %") {
		legend += " Last %: how often workers waited for this shard last."
	}
	return text + turnsText(s, width) + copiesText(s) + Wrap(legend, width, 2) + "\n"
}

// turnsText sums up the waits for turns over the rotations of all servers.
func turnsText(s *Summary, width int) string {
	counted := map[int]bool{}
	var all TurnCounts
	for _, h := range s.PerShard {
		if t := h.TurnCounts; t != (TurnCounts{}) && !counted[h.Server] {
			counted[h.Server] = true
			all.DelayedGrants, all.DelayedGrantsS = all.DelayedGrants+t.DelayedGrants, all.DelayedGrantsS+t.DelayedGrantsS
			all.MissedTurns, all.Strays = all.MissedTurns+t.MissedTurns, all.Strays+t.Strays
		}
	}
	if len(counted) == 0 {
		return ""
	}
	return Wrap(fmt.Sprintf("Over all servers: %s waits for a turn to push, %s s together; %s turns missed, %s pushes out of turn",
		thousands(all.DelayedGrants), fixed(float64(all.DelayedGrantsS), 1), thousands(all.MissedTurns), thousands(all.Strays)), width, 2) + "\n"
}

// copiesText says what the cached copies of workers have saved, and how many versions were published for them.
func copiesText(s *Summary) (text string) {
	var cached, saved, published int64
	for _, h := range s.PerShard {
		cached, saved, published = cached+h.CachedReads, saved+h.SavedBytes, published+h.Published
	}
	if cached > 0 {
		text += fmt.Sprintf("Over all shards: %s pulls and %s saved by cached copies\n", thousands(cached), Size(saved))
	}
	if published > 0 {
		text += fmt.Sprintf("Over all shards: %s versions published\n", thousands(published))
	}
	return text
}

// listed is a text such as " (late 12, empty 1)", in the order of the names, or "" if there are none.
func listed(counts map[string]int64) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, name+" "+thousands(counts[name]))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

func evaluationText(s *Summary) string {
	first := max(0, len(s.Evaluations)-evaluationRowsMax)
	var rows [][]string
	for i, e := range s.Evaluations[first:] {
		scores := e.scores()
		if i == 0 {
			head := []string{"Epoch", "Samples", "At s"}
			for _, s := range scores {
				head = append(head, "Test "+s.name)
			}
			rows = append(rows, append(head, "Test loss", "Parameters"))
		}
		of := "snapshot"
		if e.Final {
			of = "final"
		}
		row := []string{fixed(float64(e.Epoch), 2), thousands(e.Samples), fixed(float64(e.AtS), 1)}
		for _, s := range scores {
			row = append(row, s.value)
		}
		rows = append(rows, append(row, optional(e.TestLoss, 4), of))
	}
	text := table(rows, map[int]bool{len(rows[0]) - 1: true})
	if first > 0 {
		text += fmt.Sprintf("%s before these in summary.json\n", Count(first, "evaluation"))
	}
	return text
}

// target writes an accuracy with at least two decimals, and more if it has more: 0.999 must not read as 1.00.
func target(v float64) string {
	text := strconv.FormatFloat(v, 'f', -1, 64)
	if short := fixed(v, 2); len(text) <= len(short) {
		return short
	}
	return text
}

func performanceText(s *Summary) string {
	text := fmt.Sprintf("Performance: %s samples/s, %s iterations/s",
		rate(float64(s.SamplesPerS)), rate(float64(s.Iterations-resumedAt(s))/float64(s.TrainS)))
	of := ""
	if s.TestR2 != nil {
		of = "R2 "
	}
	switch {
	case s.Target == nil:
	case s.TargetReachedS != nil:
		text += fmt.Sprintf(", target %s%s reached after %s s", of, target(float64(*s.Target)), seconds(float64(*s.TargetReachedS)))
	default:
		text += fmt.Sprintf(", target %s%s not reached", of, target(float64(*s.Target)))
		if best := bestScore(s); !math.IsNaN(best) {
			text += fmt.Sprintf(" (best %.4f)", best)
		}
	}
	return text
}

// seconds writes a time with one decimal below 10, and none from 10 on.
func seconds(v float64) string {
	if v < 10 {
		return fixed(v, 1)
	}
	return fixed(v, 0)
}

// bestScore is the largest test accuracy or R2 of the evaluations, NaN if there is none.
func bestScore(s *Summary) float64 {
	best := math.NaN()
	for i := range s.Evaluations {
		if v := s.Evaluations[i].Score(); !math.IsNaN(v) && !(v <= best) {
			best = v
		}
	}
	return best
}
