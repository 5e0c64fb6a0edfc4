package settings

import (
	"fmt"

	"fluentps/internal/configs/diag"
	"fluentps/ps/scheme"
)

// Phase is one of the schemes that a rule's shards have in turn.
type Phase struct {
	Scheme string        `yaml:"scheme,required" values:"@schemes" doc:"when a pull is answered and how pushes become a version"`
	Common scheme.Common `yaml:",inline"` // defaults filled from the scheme's table entry
	Params scheme.Params // the scheme's own keys, defaults filled, checked
	Until  Until         `yaml:"until,omitempty" doc:"when the next scheme takes over: an iteration; {epochs: 2}; or {straggler: shows, factor: 1.5, rounds: 5}: when a worker has taken more than factor times the median of all workers in so many iterations in a row, with gone when no worker has in its last rounds iterations (after Sync-Switch, ICDCS 2021; the rule is reconstructed [R]). The last scheme has none, or waits for a straggler, and the first follows it"`
}

// Until is the end of a scheme, in one of three forms: a clock of the run in one of two units, or something that happens; zero is none.
type Until struct {
	Iterations int64
	Epochs     float64      // passes over the training rows, all workers together
	Await      scheme.Await // what the scheme waits for
}

// clock returns the iteration at which the next phase begins, in a run of so many ranks that compute and so many training rows.
func (c *Config) clock(u Until, computing, rows int) int64 {
	if u.Epochs == 0 {
		return u.Iterations
	}
	return max(1, int64(c.Iterations(u.Epochs*float64(rows),
		int64(c.Batch(computing))*c.Local.StepsMin()*c.Local.Turns(), Facts{Computes: computing, Rows: rows})))
}

// String says when a scheme ends, as in "epoch 2".
func (u Until) String() string {
	if u.Await.IsSet() {
		return u.Await.String()
	}
	if u.Epochs > 0 {
		return "epoch " + diag.FormatNumber(u.Epochs)
	}
	return fmt.Sprintf("iteration %d", u.Iterations)
}

// Phases lists the schemes of a rule in turn; most rules have one.
func (r *Rule) Phases() []Phase { return append([]Phase{r.Phase}, r.Then...) }

// InTurn lists the schemes without their ends: every Until is 0, and no Await is set.
func (r *Rule) InTurn() (phases []scheme.Phase) {
	for _, ph := range r.Phases() {
		phases = append(phases, scheme.Phase{Scheme: ph.Scheme, Common: ph.Common, Params: ph.Params})
	}
	return phases
}

// Schemes names the schemes of a rule in turn, such as "bsp>ssp".
func (r *Rule) Schemes() string {
	text := r.Scheme
	for _, ph := range r.Then {
		text += ">" + ph.Scheme
	}
	return text
}

// BoundKey returns the key that bounds the lead under a rule; "" if there is none, or if the rule has several schemes.
func (r *Rule) BoundKey() string {
	e, _ := scheme.All.Lookup(r.Schemes())
	return e.Bound
}

// PhasesOf returns the phases of a rule with the iterations at which they end, or with what ends them. It fails if a
// phase would not end after its begin.
func (c *Config) PhasesOf(rule, workers, rows int) ([]scheme.Phase, error) {
	r := &c.Sync[rule]
	phases := r.InTurn()
	for i, ph := range r.Phases() {
		at := c.clock(ph.Until, workers, rows)
		if i > 0 && at > 0 && at <= phases[i-1].Until {
			return nil, fmt.Errorf("sync: match %q: scheme %s is until %v, which is iteration %d here and not after "+
				"iteration %d, where it begins; raise its until", r.Match, ph.Scheme, ph.Until, at, phases[i-1].Until)
		}
		phases[i].Until, phases[i].Await = at, ph.Until.Await
	}
	return phases, nil
}
