package workload

import (
	"fmt"

	"fluentps/kernels"
)

// side is the parameters or the gradients of a chain on its device.
type side struct {
	vecs []kernels.Vec   // model order
	runs [][]kernels.Vec // by layer: the same memory, in as few vectors as can be; each travels in one copy
}

// wrap makes host memory the side of a chain's device. Parameters of a layer that lie side by side in one arena become one vector, of which
// those of the parameters are parts: a copy of a layer costs the start of a copy for each vector, and most layers are small.
func (m *chain) wrap(what string, given [][]float32) side {
	all := paramsIn(m.layers)
	if len(given) != len(all) {
		panic(fmt.Sprintf("workload: Bind got %d %s, model %s has %d", len(given), what, m.spec.Name, len(all)))
	}
	for i, p := range all {
		if len(given[i]) != p.N() {
			panic(fmt.Sprintf("workload: Bind got %d elements of %s for %s, which has %d", len(given[i]), what, p.Name, p.N()))
		}
	}
	s := side{vecs: make([]kernels.Vec, 0, len(all)), runs: make([][]kernels.Vec, len(m.layers))}
	for l := range m.layers {
		for rest := given[m.first[l]:m.first[l+1]]; len(rest) > 0; {
			run, n := longestRun(rest)
			v := m.dev.wrap(run)
			s.runs[l] = append(s.runs[l], v)
			at := 0
			for _, p := range rest[:n] {
				s.vecs = append(s.vecs, v.Slice(at, at+len(p)))
				at += len(p)
			}
			rest = rest[n:]
		}
	}
	return s
}

// longestRun joins the first parts that lie side by side, and returns their number. The capacity of a part says
// whether the next one is of the same arena: neighbours in memory may also be two allocations.
func longestRun(parts [][]float32) (run []float32, n int) {
	run = parts[0]
	for n = 1; n < len(parts); n++ {
		next := parts[n]
		if len(run) == 0 || len(next) == 0 || cap(run) < len(run)+len(next) || &run[:len(run)+1][len(run)] != &next[0] {
			break
		}
		run = run[:len(run)+len(next)]
	}
	return run, n
}

// inputs are the batches of a chain on its device. A device with memory of its own has two, so that the next batch
// travels while it computes.
type inputs struct {
	buffers  []input
	latest   int // the one that Forward used last
	x        kernels.Vec
	labels   kernels.Vec
	next     func() (Batch, bool) // where the batch of the next Forward comes from; nil: not known
	ahead    Batch                // the batch that the other buffer already holds
	hasAhead bool
}

// input is a batch: the values of the samples, then their labels, so that one copy takes them to the device.
type input struct {
	host []float32
	vec  kernels.Vec
}

func (m *chain) allocateInputs() error {
	for range 2 {
		host := make([]float32, m.batchMax*(m.from.Cols+1))
		v, err := m.dev.Wrap(host)
		if err != nil {
			return err
		}
		m.in.buffers = append(m.in.buffers, input{host: host, vec: v})
		if v.Dev == 0 {
			break // nothing travels
		}
	}
	return nil
}

// bring makes x the current batch, on the device.
func (m *chain) bring(x Batch) {
	in := &m.in
	other := (in.latest + 1) % len(in.buffers)
	if !in.hasAhead || !in.ahead.Same(x) {
		m.load(other, x)
	}
	in.latest, in.hasAhead, in.ahead = other, false, Batch{}
	v := in.buffers[other].vec
	in.x, in.labels = v.Slice(0, x.N*x.Cols), v.Slice(x.N*x.Cols, x.N*(x.Cols+1))
}

// load starts to copy a batch to a buffer of the device.
func (m *chain) load(buffer int, x Batch) {
	b := m.in.buffers[buffer]
	copy(b.host, x.X[:x.N*x.Cols])
	labels := b.host[x.N*x.Cols:]
	fillLabels(labels[:x.N], &x)
	m.dev.refresh(b.vec.Slice(0, x.N*(x.Cols+1)))
}

// fillLabels writes the classes or the targets of a batch as the last kernel of a model takes them.
func fillLabels(labels []float32, x *Batch) {
	if x.Targets != nil {
		copy(labels, x.Targets)
		return
	}
	for i := range labels {
		labels[i] = float32(x.Y[i])
	}
}

// mustHaveLabels panics if a batch has not the kind of labels that samples have.
func mustHaveLabels(x *Batch, from Samples, s ModelSpec) {
	if (x.Targets != nil) != from.Regress || from.Regress && len(x.Targets) < x.N || !from.Regress && len(x.Y) < x.N {
		panic(fmt.Sprintf("workload: batch of %d samples with %d labels and %d targets does not fit model %s", x.N, len(x.Y), len(x.Targets),
			s.Name))
	}
}

// loadAhead asks for the next batch while the device computes, and starts to copy it there.
func (m *chain) loadAhead() {
	in := &m.in
	if in.next == nil || len(in.buffers) < 2 {
		return
	}
	x, ok := in.next()
	if !ok {
		return
	}
	m.mustFit(x)
	in.ahead, in.hasAhead = x, true
	m.load((in.latest+1)%len(in.buffers), x)
}

func (m *chain) Ahead(next func() (Batch, bool)) { m.in.next = next }

// mustFit panics if a batch does not fit the model.
func (m *chain) mustFit(x Batch) {
	if x.Cols != m.from.Cols || len(x.X) < x.N*x.Cols {
		panic(fmt.Sprintf("workload: batch of %d x %d with %d values does not fit model %s with %d inputs",
			x.N, x.Cols, len(x.X), m.spec.Name, m.from.Cols))
	}
	mustHaveLabels(&x, m.from, m.spec)
}

// scores are the results of the loss kernel for the samples of a batch: their losses, then whether the class was right or how far the
// target was missed, so that one copy takes both to the host.
type scores struct {
	vec  kernels.Vec
	host []float32
}

// score runs the loss kernel on n rows of logits and adds its results up in float64.
func (m *chain) score(n int, logits, grad kernels.Vec) (loss float64, correct int) {
	s := &m.scores
	m.dev.launch(m.head.kernel, kernels.Args{V: kernels.Vecs{logits, m.in.labels, grad, s.vec.Slice(0, n), s.vec.Slice(n, 2*n)},
		N: kernels.Sizes{n, m.from.Classes}, F: m.head.scalars})
	if m.dev.download(s.host[:2*n], s.vec); m.dev.err != nil {
		return 0, 0
	}
	for _, v := range s.host[:n] {
		loss += float64(v)
	}
	if m.head.isErrors {
		m.errors.add(s.host[n : 2*n])
		return loss, 0
	}
	for _, v := range s.host[n : 2*n] {
		correct += int(v)
	}
	return loss, correct
}
