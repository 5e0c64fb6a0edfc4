// Package origin tells where the first value that is not finite arose: each rank notes what it finds (Log), rank 0 chooses the first
// (First) and says in words where it is and which key acts there (Explain). It is pure.
//
// Nobody looks through memory while all is well. A worker looks at its loss, an optimizer at the largest magnitude that its pass over
// memory has seen anyway (optim.Fault), an encoder at the gradients that it has just read. Only where one of these is not finite,
// its rank searches back through what it was made of, which is still there.
package origin

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"fluentps/internal/policy/optim"
)

// Place is where a value arose, in the order in which an iteration passes them.
type Place uint8

const (
	Data       Place = iota // the samples of a batch, or numbers so large that forward overflows
	Loss                    // forward
	Gradient                // backward, and what a worker pushes
	Payload                 // encoding for a message
	Sum                     // sums of pushes
	Optimizer               // the step from a version to the next
	Parameters              // a version or a worker's copy, by adding to it or averaging
	places
)

func (p Place) String() string {
	return [places]string{"data", "loss", "gradient", "payload", "pending sum", "optimizer", "parameters"}[p]
}

// Nobody in Worker or Server: none is meant.
const Nobody = -1

// Finding is a value that is not finite. Numbers are magnitudes, and 0 where they are not known; JSON carries them, so all are finite.
type Finding struct {
	Place  Place         `json:"place"`
	Caused bool          `json:"caused"` // what it was made of had such a value before
	At     time.Duration `json:"at"`     // when it was found, on the clock of all ranks
	Worker int32         `json:"worker"` // whose value it is; Nobody: a server's
	Server int32         `json:"server"` // that found it; Nobody: a worker did
	Iter   int64         `json:"iter"`   // of the worker; of a server the version
	Param  string        `json:"param"`  // the tensor; "": none
	Elem   int           `json:"elem"`   // its element
	Layer  int           `json:"layer"`  // its layer
	Value  string        `json:"value"`

	Batch    float64 `json:"batch"`    // largest value of the batch
	Params   float64 `json:"params"`   // largest parameter
	Gradient float64 `json:"gradient"` // largest gradient, of the tensor's part that was looked at
	// Of a step: the learning rate, and the terms along which it goes.
	LR    float64 `json:"lr"`
	Grad  float64 `json:"grad"`
	Decay float64 `json:"decay"`
	State float64 `json:"state"`
	Inner bool    `json:"inner"` // a step that a worker took on parameters of its own
	Pull  bool    `json:"pull"`  // Payload: of a reply
}

// Log keeps the findings of one side of a rank: the first of each place. Both the goroutine that computes and the one
// that drives may use it.
type Log struct {
	mu   sync.Mutex
	list []Finding
}

// Note keeps a finding. first says that it is the first of this log.
func (l *Log) Note(f Finding) (first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.ContainsFunc(l.list, func(g Finding) bool { return g.Place == f.Place }) {
		return false
	}
	l.list = append(l.list, f)
	return len(l.list) == 1
}

// List returns all findings.
func (l *Log) List() []Finding {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.list)
}

// clockError is by how much the clocks of two ranks may differ.
const clockError = 100 * time.Millisecond

// First chooses the finding that all others follow from: what arises somewhere is found there before anything is computed from it. Clocks
// of ranks differ a little, so what follows from other values comes first only if nobody has found these values at about that time.
func First(all []Finding) (f Finding, ok bool) {
	if len(all) == 0 {
		return f, false
	}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Place, b.Place))
	})
	if f = all[0]; !f.Caused {
		for _, g := range all { // servers find gradients of one backward at different times, and it begins with the last layer
			if f.Place == Gradient && g.Place == Gradient && g.Worker == f.Worker && g.Iter == f.Iter && g.Layer > f.Layer {
				f = g
			}
		}
		return f, true
	}
	for _, g := range all {
		if !g.Caused && (g.Place != Gradient || g.Iter < f.Iter) && g.At <= f.At+clockError {
			return g, true
		}
	}
	return f, true
}

// Number is a magnitude of a finding.
func Number[T float32 | float64](x T) float64 {
	if f := float64(x); f == f && f-f == 0 {
		return max(f, -f)
	}
	return 0
}

// Text is a value that may not be finite.
func Text(x float64) string { return strconv.FormatFloat(x, 'g', 4, 32) }

// tensor names an element of a tensor.
func (f *Finding) tensor() string {
	if f.Param == "" {
		return ""
	}
	return fmt.Sprintf("%s[%d]", f.Param, f.Elem)
}

// OfFault is what an optimizer has found.
func OfFault(f *optim.Fault) Finding {
	g := Finding{Value: Text(float64(f.Value)), LR: Number(f.LR)}
	switch f.Stage {
	case optim.InPush:
		g.Place, g.LR, g.Gradient = Gradient, 0, Number(f.Top)
	case optim.InSum:
		g.Place, g.LR, g.Gradient = Sum, 0, Number(f.Top)
	case optim.InStep:
		g.Params = Number(f.Top)
		if g.Place = Optimizer; f.Adds {
			g.Place = Parameters
		}
		g.Grad, g.Decay, g.State = Number(f.Scale*f.Sum), float64(f.Decay)*max(Number(f.Param), Number(f.Top)), Number(f.State)
	case optim.InParams:
		g.Place, g.Caused = Parameters, true
	}
	return g
}

// Pusher is who has computed a push, and in which iteration.
type Pusher struct {
	Worker int32
	Iter   int64
}

// OfCommit is what the optimizer of a server has found when it made a version. pushers are those of the pushes folded
// since the commit before.
func OfCommit(f *optim.Fault, pushers []Pusher, server int32, version int64) Finding {
	g := OfFault(f)
	g.Worker, g.Server, g.Iter = Nobody, server, version
	if g.Place == Gradient {
		g.Worker, g.Iter = pushers[f.Push].Worker, pushers[f.Push].Iter
	}
	return g
}
