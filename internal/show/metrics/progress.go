package metrics

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"fluentps/internal/show/metrics/records"
)

const (
	etaMin       = time.Second            // an estimate from a shorter time is not worth printing
	headerEvery  = 30                     // lines between two headers of a batch log
	redrawEvery  = 100 * time.Millisecond // a bar that is redrawn more often flickers
	barWidthMin  = 10
	barWidthMax  = 40
	widthDefault = 80
)

// Progress shows the progress of a run. On a terminal it is one bar, redrawn in place. Otherwise it is one aligned line per
// interval, without carriage returns, so that a batch log reads as text. The first lines come sooner: at once, then after 1, 2, 5, 10, ...
// seconds. It takes the time from Record.At and reads no clock. It belongs to one goroutine at a time.
type Progress struct {
	w        io.Writer
	terminal bool
	width    int
	interval time.Duration

	lines   int            // printed so far, without headers
	next    time.Duration  // earlier records are not shown
	judged  time.Duration  // earlier evaluations are not shown
	last    records.Record // the last record of Update
	done    float64        // the part of the budget used at last, 0 to 1; NaN if unknown
	pending bool           // last has not been shown: Finish shows it
	bar     string         // on the current line of the terminal; "" when that line is clear
}

// NewProgress returns a Progress that writes to w. terminal and width (columns; 0: unknown) describe w. interval is the time
// between two lines of a batch log (0: every Update).
func NewProgress(w io.Writer, terminal bool, width int, interval time.Duration) *Progress {
	if width <= 0 {
		width = widthDefault
	}
	return &Progress{w: w, terminal: terminal, width: width, interval: interval}
}

// Update shows r if it is time to. done is the part of the budget that is used, 0 to 1; NaN if unknown.
func (p *Progress) Update(r records.Record, done float64) error {
	p.last, p.done, p.pending = r, done, true
	if r.At < p.next {
		return nil
	}
	p.next = p.after(r.At)
	return p.show()
}

// after is the time of the next line. Intervals count from the start of the run, so that the times of the lines do not drift.
func (p *Progress) after(at time.Duration) time.Duration {
	every := p.interval
	if p.terminal {
		every = redrawEvery
	}
	if every <= 0 {
		return at
	}
	for decade := time.Second; decade < every && !p.terminal; decade *= 10 {
		for _, step := range [...]time.Duration{1, 2, 5} {
			if soon := step * decade; soon > at && soon < every {
				return soon
			}
		}
	}
	return (at/every + 1) * every
}

// Evaluated shows an evaluation if it is time to: as often as lines of a batch log, on a terminal, too.
func (p *Progress) Evaluated(e *Evaluation) error {
	at := time.Duration(float64(e.AtS) * float64(time.Second))
	if at < p.judged {
		return nil
	}
	p.judged = (&Progress{interval: p.interval}).after(at)
	return p.Println(e.line())
}

// Println writes a line of text without spoiling the bar: above it on a terminal.
func (p *Progress) Println(text string) error {
	text += "\n"
	if p.bar != "" {
		text = "\r\x1b[K" + text + p.bar
	}
	return p.write(text)
}

// Finish shows the last record unless it has been shown, and leaves the cursor on a new line.
func (p *Progress) Finish() error {
	if p.pending {
		if err := p.show(); err != nil {
			return err
		}
	}
	if p.bar == "" {
		return nil
	}
	p.bar = ""
	return p.write("\n")
}

func (p *Progress) show() error {
	p.pending = false
	if p.terminal {
		p.bar = barText(&p.last, p.done, p.width)
		return p.write("\r" + p.bar + "\x1b[K")
	}
	text := lineText(&p.last, p.done) + "\n"
	if p.lines%headerEvery == 0 {
		text = lineHeader + "\n" + text
	}
	p.lines++
	return p.write(text)
}

func (p *Progress) write(text string) error {
	if _, err := io.WriteString(p.w, text); err != nil {
		return fmt.Errorf("metrics: progress: %w", err)
	}
	return nil
}

// The header and the line of a batch log share their widths: 10 8 10 12 15 10 9.
const lineHeader = " iteration    epoch       loss    samples/s  stale p50/max  blocked %       ETA"

func lineText(r *records.Record, done float64) string {
	return fmt.Sprintf("%10d %8.2f %10s %12s %14s %10s %9s", r.Iteration, r.Epoch, lossText(r),
		speedText(r), staleText(r), blockedText(r), etaText(r.At, done))
}

// barText is at most width-1 columns long, because many terminals wrap when the last column is written. On a narrow terminal it
// leaves out the later fields first, then the bar.
func barText(r *records.Record, done float64, width int) string {
	room := width - 1
	fraction := min(max(done, 0), 1)
	if math.IsNaN(fraction) {
		fraction = 0
	}
	tail := fmt.Sprintf("%3.0f%%", math.Floor(100*fraction))
	for _, field := range []string{"ETA " + etaText(r.At, done), fmt.Sprintf("epoch %.2f", r.Epoch), "loss " + lossText(r),
		speedText(r) + " samples/s", "stale " + staleText(r), "blocked " + blockedText(r) + "%"} {
		if len(tail)+2+len(field)+barWidthMin+3 > room {
			break
		}
		tail += "  " + field
	}
	cells := min(room-len(tail)-3, barWidthMax)
	if cells < barWidthMin {
		return tail[:min(len(tail), room)]
	}
	full := int(fraction * float64(cells))
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", cells-full) + "] " + tail
}

// line is the evaluation as a line among the progress lines.
func (e *Evaluation) line() string {
	text := fmt.Sprintf("evaluated at epoch %.2f, %.1f s: test loss %s", float64(e.Epoch), float64(e.AtS), fixed(float64(*e.TestLoss), 4))
	if e.TestAccuracy == nil && e.TestRMSE == nil {
		return text
	}
	return text + e.scoresText()
}

func lossText(r *records.Record) string {
	v, ok := r.Get(records.TrainLoss)
	switch {
	case !ok:
		return absent
	case math.Abs(v) >= 1e5 || math.IsNaN(v): // a diverged loss, which fixed would show as absent, or too wide
		return fmt.Sprintf("%.3e", v)
	}
	return fixed(v, 4)
}

func speedText(r *records.Record) string {
	v, _ := r.Get(records.SamplesPerS)
	return rate(v)
}

// staleWidth is the width of the column of staleText.
const staleWidth = 14

// staleText is the staleness of each rule with pushes, in the order of the rules. If the column is too narrow for all, it is an
// upper bound: the staleness of the rule with the largest maximum.
func staleText(r *records.Record) string {
	var all []string
	var most records.Staleness
	for _, of := range r.Rules {
		if of.Pushes > 0 {
			all = append(all, fmt.Sprintf("%d/%d", of.P50, of.Max))
			if of.Max > most.Max || of.Max == most.Max && of.P50 >= most.P50 {
				most = of
			}
		}
	}
	switch text := strings.Join(all, " "); {
	case len(all) > 1 && len(text) > staleWidth:
		return fmt.Sprintf("<=%d/%d", most.P50, most.Max)
	case len(all) > 0:
		return text
	}
	p50, ok := r.Get(records.StalenessP50)
	largest, okMax := r.Get(records.StalenessMax)
	if !ok && !okMax {
		return absent
	}
	return fixed(p50, 0) + "/" + fixed(largest, 0)
}

func blockedText(r *records.Record) string {
	v, _ := r.Get(records.BlockedShare)
	return fixed(100*v, 1)
}

// ETA extrapolates the time that is left from the time used so far and the used share of the budget. It fails when nothing can be told.
func ETA(at time.Duration, done float64) (left time.Duration, ok bool) {
	switch {
	case !(done > 0):
		return 0, false
	case done >= 1:
		return 0, true
	}
	s := at.Seconds() * (1 - done) / done
	if s > 1e7 || at < etaMin {
		return 0, false
	}
	return time.Duration(s * float64(time.Second)), true
}

func etaText(at time.Duration, done float64) string {
	left, ok := ETA(at, done)
	if !ok {
		return absent
	}
	return clock(left)
}
