package status

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"fluentps/internal/disk/foreign"
	"fluentps/internal/show/metrics"
)

// A rank is silent that has not written for silentMin, and not for silentFiles of its files. Then it was killed or
// stopped, or its host or the file system hangs.
const (
	silentMin   = 10 * time.Second
	silentFiles = 5
)

// rowsMax bounds the rows of Text.
const rowsMax = 32

func (r *Run) isSilent(of *Rank) bool {
	return of.Phase != Ended && r.Now.Sub(of.At) > max(silentMin, silentFiles*seconds(of.EveryS))
}

// IsOver says whether nobody will write to the folder any more, as far as its files tell: there is a summary, or all
// ranks are silent or have ended.
func (r *Run) IsOver() bool {
	return r.Ended != "" || len(r.Ranks) > 0 &&
		!slices.ContainsFunc(r.Ranks, func(of Rank) bool { return of.Phase != Ended && !r.isSilent(&of) })
}

// Text is the picture for people: a head, and a row for each rank. Without all, it has at most rowsMax rows: silent
// ranks first, then those that others wait for.
func (r *Run) Text(all bool) string {
	var b strings.Builder
	r.head(&b)
	rows := slices.Clone(r.Ranks)
	awaited := r.awaited()
	left := 0
	if n := len(rows); n > rowsMax && !all {
		slices.SortStableFunc(rows, func(a, b Rank) int { return r.interest(&b, awaited) - r.interest(&a, awaited) })
		rows, left = rows[:rowsMax], n-rowsMax
	}
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	if len(rows) > 0 {
		fmt.Fprintf(&b, "\n")
		fmt.Fprintf(t, "rank\trole\thost\tprogress\tstate\n")
	}
	for i := range rows {
		of := &rows[i]
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\n", of.Rank, foreign.Word(of.Role), foreign.Word(of.Host), r.progress(of), oneLine(r.state(of)))
	}
	t.Flush()
	if left > 0 {
		fmt.Fprintf(&b, "... and %s more; --all shows them\n", metrics.Count(left, "rank"))
	}
	if text := awaitedText(awaited); text != "" {
		fmt.Fprintf(&b, "\n%s\n", text)
	}
	if missing := r.Size - len(r.Ranks) - r.unread; missing > 0 && r.Ended == "" {
		fmt.Fprintf(&b, "%s: not started, or on hosts that do not share this file system\n", silentRanks(missing))
	}
	for _, text := range r.Damaged {
		fmt.Fprintf(&b, "WARNING: not readable: %s\n", oneLine(text))
	}
	return b.String()
}

// oneLine is a text of the files on one line, with nothing that a terminal obeys.
func oneLine(text string) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(foreign.Visible(text))
}

func silentRanks(n int) string {
	if n == 1 {
		return "1 rank has told nothing of itself"
	}
	return fmt.Sprintf("%d ranks have told nothing of themselves", n)
}

func (r *Run) head(b *strings.Builder) {
	fmt.Fprintf(b, "%s: ", foreign.Text(r.Dir))
	if r.Name != "" {
		fmt.Fprintf(b, "%s, ", foreign.Text(r.Name))
	}
	b.WriteString(metrics.Count(r.Size, "rank"))
	if r.Started != "" {
		b.WriteString(", started " + foreign.Text(r.Started))
	}
	b.WriteString("\n")
	switch {
	case r.Ended != "":
		fmt.Fprintf(b, "ended: %s\n", foreign.Text(r.Ended))
	case r.isUnsure && (len(r.Ranks) == 0 || r.IsOver()):
		b.WriteString("its summary cannot be read, so how it ended is not known\n")
	case len(r.Ranks) == 0:
		b.WriteString("no rank has told of itself yet\n")
	case !slices.ContainsFunc(r.Ranks, func(rank Rank) bool { return rank.Phase != Ended }) && len(r.Ranks) == r.Size:
		b.WriteString("over without a summary: all ranks have ended, so rank 0 could not write it; the log of rank 0 tells why\n")
	case r.IsOver():
		fmt.Fprintf(b, "over without a summary: no rank has written for %s; it was killed, or its hosts are gone; resume "+
			"it with fluentps run --resume\n", age(r.Now.Sub(r.newest())))
	default:
		b.WriteString("running")
		if l := r.lead(); l != nil {
			b.WriteString(": " + l.words())
		}
		b.WriteString("\n")
	}
	if r.Checkpoint != "" {
		fmt.Fprintf(b, "newest checkpoint: %s", r.Checkpoint)
		if r.SavedAt != nil {
			fmt.Fprintf(b, ", %s old", age(r.Now.Sub(*r.SavedAt)))
		}
		b.WriteString("\n")
	}
}

func (r *Run) newest() (at time.Time) {
	for i := range r.Ranks {
		if r.Ranks[i].At.After(at) {
			at = r.Ranks[i].At
		}
	}
	return at
}

func (r *Run) lead() *Lead {
	for i := range r.Ranks {
		if r.Ranks[i].Lead != nil {
			return r.Ranks[i].Lead
		}
	}
	return nil
}

func (l *Lead) words() string {
	text := fmt.Sprintf("iteration %d, epoch %.2f", l.Iteration, l.Epoch)
	if l.Done >= 0 {
		text += fmt.Sprintf(", %.0f %% of the budget", 100*l.Done)
	}
	if l.Samples > 0 && !math.IsNaN(float64(l.SamplesPerS)) { // a run that has just resumed has measured nothing yet
		text += fmt.Sprintf(", loss %.4g, %.4g samples/s", l.Loss, l.SamplesPerS)
	}
	if l.ETAS >= 0 {
		text += ", ETA " + age(seconds(l.ETAS))
	}
	return text
}

// progress is the age of the last progress.
func (r *Run) progress(of *Rank) string {
	if of.Progress.IsZero() {
		return "-"
	}
	return age(r.Now.Sub(of.Progress)) + " ago"
}

func (r *Run) state(of *Rank) string {
	text := of.words(r.cause)
	if r.isSilent(of) && !r.IsOver() {
		return fmt.Sprintf("silent for %s: killed, stopped, or its host or file system hangs; the last word: %s", age(r.Now.Sub(of.At)), text)
	}
	return text
}

// served is what the files tell of a shard at its server.
type served struct {
	held   *Held // nil: the server holds nothing back
	silent bool  // the server is, so nothing is known
}

// shard returns what the files tell of a shard.
func (r *Run) shard(server, shard int32) served {
	if r.servers == nil {
		r.servers = map[int32]map[int32]served{}
		for i := range r.Ranks {
			s := r.Ranks[i].Server
			if s == nil {
				continue
			}
			shards := map[int32]served{}
			if r.isSilent(&r.Ranks[i]) && !r.IsOver() {
				shards[allShards] = served{silent: true}
			} else {
				for k := range s.Held {
					shards[s.Held[k].Shard] = served{held: &s.Held[k]}
				}
			}
			r.servers[s.Server] = shards
		}
	}
	if of := r.servers[server][allShards]; of.silent {
		return of
	}
	return r.servers[server][shard]
}

// allShards stands for every shard of a server.
const allShards = -1

// cause is what a worker waits for at a shard, beside its server.
func (r *Run) cause(server, shard int32) string {
	switch of := r.shard(server, shard); {
	case of.silent:
		return ", which is silent"
	case of.held != nil:
		return of.held.cause()
	}
	return ""
}

// awaited counts, by the name of a worker or of a silent server, the other workers that wait for it at a shard.
func (r *Run) awaited() map[string]int {
	by := map[string]int{}
	if r.Ended != "" {
		return by
	}
	for i := range r.Ranks {
		w := r.Ranks[i].Worker
		if w == nil || w.Doing != Waits {
			continue
		}
		seen := map[string]bool{}
		for _, s := range w.Shards {
			switch of := r.shard(s.Server, s.Shard); {
			case of.silent:
				seen[fmt.Sprintf("s%d", s.Server)] = true
			case of.held != nil:
				for _, id := range of.held.For {
					seen[fmt.Sprintf("w%d", id)] = true
				}
			}
		}
		for name := range seen {
			if name != w.Name {
				by[name]++
			}
		}
	}
	return by
}

func awaitedText(by map[string]int) string {
	var names []string
	for name := range by {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		if by[a] != by[b] {
			return by[b] - by[a]
		}
		return strings.Compare(a, b)
	})
	var texts []string
	for i, name := range names {
		if i == shownMax {
			texts = append(texts, fmt.Sprintf("%d more", len(names)-i))
			break
		}
		texts = append(texts, fmt.Sprintf("%s, by %s", name, metrics.Count(by[name], "worker")))
	}
	if len(texts) == 0 {
		return ""
	}
	return "Waited for: " + strings.Join(texts, "; ")
}

// interest orders ranks when not all are shown.
func (r *Run) interest(of *Rank, awaited map[string]int) int {
	n := 0
	if r.isSilent(of) {
		n += 1 << 30
	}
	if of.Worker != nil {
		n += awaited[of.Worker.Name]
	}
	if of.Server != nil {
		n += awaited[of.Server.Name]
	}
	return n
}
