package optim

import (
	"math"

	"fluentps/internal/policy/orthogonal"
)

// The values of Spec.Scale.
const (
	Original = "original"
	MatchRMS = "match_rms_adamw"
)

// muon is that of Jordan et al. (2024) in the form of PyTorch's torch.optim.Muon: a step goes along the matrix nearest to the mean of
// gradients among those whose singular values are all alike, or nearly so. What is no matrix takes the step of adamw.
//
// Its state is two vectors. A matrix has the mean of its gradients in the first, and zeros in the second, where a commit works; all else
// has the moments of adamw.
type muon struct {
	share    float32 // of the newest gradient in the mean: 1 - momentum
	nesterov bool
	matchRMS bool
	others   adamw
}

func (muon) State() int { return 2 }

// Step is that of tensors that are no matrices.
func (r muon) Step(dst, src, grad []float32, state [][]float32, a Args) uint32 {
	return r.others.Step(dst, src, grad, state, a)
}

// collect takes a part of the pending sums of a matrix into the mean of gradients, and leaves in along what is to be made orthogonal.
func (r muon) collect(sums, mean, along []float32, scale float32) {
	mean, along = mean[:len(sums)], along[:len(sums)]
	for i, x := range sums {
		g := float32(scale * x)
		m := mean[i] + float32(r.share*(g-mean[i]))
		mean[i] = m
		if r.nesterov {
			m += float32(r.share * (g - m))
		}
		along[i] = m
	}
}

// rate is that of a matrix of so many rows and columns.
func (r muon) rate(lr float32, rows, cols int) float32 {
	by := math.Sqrt(max(1, float64(rows)/float64(cols)))
	if r.matchRMS {
		by = 0.2 * math.Sqrt(float64(max(rows, cols)))
	}
	return float32(float64(lr) * by)
}

// rateOf is the rate of a run's step.
func (u *Update) rateOf(q *Run, clock float64) float32 {
	if _, ok := u.Rule.(muon); ok && q.Rows == 0 {
		return float32(u.Others * u.Sched.Scale(clock))
	}
	return float32(u.Rate(clock))
}

// direct finds the direction of the step of a whole matrix from its sums and leaves it in along, for step.
func (u *Update) direct(q *Run, sums, mean, along []float32, scale float32) {
	u.Rule.(muon).collect(sums, mean, along, scale)
	u.Matrices.Make(along, q.Rows, len(along)/q.Rows)
}

// step is the Step of the rule, or takes a part of a matrix along its direction, which is zeros afterwards.
func (u *Update) step(q *Run, dst, src, grad []float32, state [][]float32, a Args) (top uint32) {
	if q.Rows == 0 {
		return u.Rule.Step(dst, src, grad, state, a)
	}
	along, from := state[1], src
	if lost := float32(float64(a.LR) * float64(a.Decay)); lost != 0 {
		sgdPass(dst, src, along, lost, 0, 1, false)
		from = dst
	}
	top = sgdPass(dst, from, along, u.Rule.(muon).rate(a.LR, q.Rows, (q.Hi-q.Lo)/q.Rows), 1, 0, false)
	clear(along)
	return top
}

// MatrixState names a vector of the state for a matrix; "": it holds nothing there.
func MatrixState(vector int) string {
	if vector == 0 {
		return "velocity"
	}
	return ""
}

// MatrixBytes is the memory that an Update takes for muon's steps of matrices of this form, if no other is larger.
func MatrixBytes(rows, cols int) int64 { return orthogonal.Bytes(rows, cols) }

func (s *Store) makeMatrices() {
	r, ok := s.update.Rule.(muon)
	if !ok || s.way != Optimize {
		return
	}
	s.matrices = &r
	if s.update.Matrices == nil { // nothing shares it
		s.update.Matrices = orthogonal.NewMaker()
	}
	for _, q := range s.runs {
		if q.Rows > 0 {
			s.update.Matrices.Reserve(q.Rows, (q.Hi-q.Lo)/q.Rows)
		}
	}
}

// stepMatrices takes the step of each matrix in a commit, after all its gradients have been collected.
func (s *Store) stepMatrices(w *work) {
	if s.matrices == nil {
		return
	}
	for i := range s.runs {
		q := &s.runs[i]
		if q.Rows == 0 {
			continue
		}
		s.update.Matrices.Make(s.state[1][q.Lo:q.Hi], q.Rows, (q.Hi-q.Lo)/q.Rows)
		a := Args{LR: w.matrices, Decay: q.Decay}
		l := &s.scratch[0]
		for lo := q.Lo; lo < q.Hi; lo += deltaBlock {
			hi := min(lo+deltaBlock, q.Hi)
			l.part[0], l.part[1] = s.state[0][lo:hi], s.state[1][lo:hi]
			dst := w.dst[lo:hi]
			l.step.note(s.update.step(q, dst, w.src[lo:hi], nil, l.part, a), lo, dst)
		}
	}
}
