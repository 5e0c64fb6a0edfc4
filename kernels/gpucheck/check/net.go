//go:build cuda

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"fluentps/kernels"
	"fluentps/kernels/cpu"
	"fluentps/kernels/cuda"
	"fluentps/kernels/gpucheck"
	"fluentps/ps/workload"
)

// samplesOf are what the models of the checks take.
func samplesOf(model string, s gpucheck.Sizes) workload.Samples {
	image := func(channels, side int) workload.Samples {
		return workload.Samples{Cols: channels * side * side, Classes: 10, Image: workload.Image{Channels: channels, Height: side, Width: side}}
	}
	switch {
	case model == "mlp":
		return workload.Samples{Cols: 784, Classes: 10}
	case model == "lenet":
		return image(1, 28)
	default:
		return image(3, s.Side)
	}
}

func netSize(model string) func(gpucheck.Sizes) string {
	return func(s gpucheck.Sizes) string {
		from := samplesOf(model, s)
		shape := fmt.Sprint(from.Cols)
		if i := from.Image; i.Channels > 0 {
			shape = gpucheck.By([]int{i.Channels, i.Height, i.Width})
		}
		return fmt.Sprintf("%s, batch %d of %s", model, s.Batch, shape)
	}
}

// net is a model with its parameters and gradients on the host.
type net struct {
	workload.Model
	params, grads []float32
	tensors       []workload.Param
}

func newNet(name string, d kernels.Device, s gpucheck.Sizes) (*net, error) {
	spec := workload.ModelSpec{Name: name}
	if name == "mlp" {
		spec.Layers = []int{256, 128}
	}
	architecture, err := workload.NewArchitecture(spec, samplesOf(name, s))
	if err != nil {
		return nil, err
	}
	model, err := workload.NewModel(spec, samplesOf(name, s), d, s.Batch)
	if err != nil {
		return nil, err
	}
	m := &net{Model: model, tensors: architecture.Params()}
	n := 0
	for _, p := range m.tensors {
		n += p.N()
	}
	m.params, m.grads = make([]float32, n), make([]float32, n)
	if p, ok := d.(kernels.Pinner); ok {
		for _, arena := range [][]float32{m.params, m.grads} {
			if err := p.Pin(arena); err != nil {
				return nil, err
			}
		}
	}
	params, grads := m.parts(m.params), m.parts(m.grads)
	for i, p := range m.tensors {
		workload.Fill(params[i], 5, p, 0)
	}
	m.Bind(params, grads)
	return m, nil
}

// parts cuts an arena into the tensors of the model.
func (m *net) parts(arena []float32) (parts [][]float32) {
	at := 0
	for _, p := range m.tensors {
		parts = append(parts, arena[at:at+p.N()])
		at += p.N()
	}
	return parts
}

// pass computes the loss and the gradients of a batch.
func (m *net) pass(x workload.Batch) (loss float64, err error) {
	if loss, _, err = m.Forward(x, nil); err == nil {
		err = m.Backward(nil)
	}
	return loss, err
}

// learn takes a step of SGD, and appends the loss of a sample. A running statistic becomes its gradient for one sample.
func (m *net) learn(x workload.Batch, rate float32, losses *[]float64) error {
	loss, err := m.pass(x)
	if err != nil {
		return err
	}
	params, grads := m.parts(m.params), m.parts(m.grads)
	for t, p := range m.tensors {
		for i, g := range grads[t] {
			if p.Stat {
				params[t][i] = g / float32(x.N)
			} else {
				params[t][i] -= rate / float32(x.N) * g
			}
		}
	}
	*losses = append(*losses, loss/float64(x.N))
	return nil
}

// drawn returns random samples. The class raises some values, but too little for the losses to come near 0.
func drawn(r *rand.Rand, n int, from workload.Samples) workload.Batch {
	b := workload.Batch{X: make([]float32, n*from.Cols), Y: make([]int32, n), N: n, Cols: from.Cols}
	for i := range n {
		b.Y[i] = int32(r.IntN(from.Classes))
		for j := range from.Cols {
			b.X[i*from.Cols+j] = r.Float32()
			if j%from.Classes == int(b.Y[i]) {
				b.X[i*from.Cols+j] += 0.3
			}
		}
	}
	return b
}

func seeded() *rand.Rand { return rand.New(rand.NewPCG(3, 4)) }

// gradientMax is how far a tensor's gradient on the GPU may be from that on the CPU, as a share of its norm.
const gradientMax = 1e-3

// gradients compares the gradients of one step, tensor by tensor: the distance in the Euclidean norm, relative to the norm.
func gradients(r *gpucheck.Report) error {
	const name = "resnet20"
	x := drawn(seeded(), r.Sizes.Batch, samplesOf(name, r.Sizes))
	host, err := newNet(name, cpu.New(processors()), r.Sizes)
	if err != nil {
		return err
	}
	step := func(m *net) ([][]float32, error) {
		_, err := m.pass(x)
		return m.parts(m.grads), err
	}
	want, err := step(host)
	if err != nil {
		return err
	}
	return onDevice(cuda.Options{}, func(d kernels.Device) error {
		gpu, err := newNet(name, d, r.Sizes)
		if err != nil {
			return err
		}
		got, err := step(gpu)
		if err == nil {
			err = d.Sync()
		}
		if err != nil {
			return err
		}
		worst, of := 0.0, ""
		var wrong []string // in the order of the backward pass: the first one is where the error begins
		for i, p := range slices.Backward(gpu.tensors) {
			off := distance(got[i], want[i])
			if !(off <= gradientMax) {
				wrong = append(wrong, fmt.Sprintf("%s (%s) %.2g", p.Name, gpucheck.By(p.Shape), off))
			} else if off >= worst {
				worst, of = off, p.Name
			}
		}
		size := netSize(name)(r.Sizes)
		if len(wrong) > 0 {
			fmt.Fprintln(os.Stderr, strings.Join(wrong, "\n"))
			r.Fail(r.Name, size, "%d of %d tensors are further than %.0g from the CPU's, relative to the norm; the first "+
				"ones backward: %s", len(wrong), len(gpu.tensors), gradientMax,
				strings.Join(wrong[:min(3, len(wrong))], ", "))
			return nil
		}
		r.OK(r.Name, size, "%d tensors, at most %.1e from the CPU's, relative to the norm (%s)", len(gpu.tensors), worst, of)
		return nil
	})
}

// distance returns the Euclidean distance of two vectors, relative to the norm of the second one; the distance itself if that is 0.
func distance(got, want []float32) float64 {
	var apart, norm float64
	for i, w := range want {
		off := float64(got[i]) - float64(w)
		apart, norm = apart+off*off, norm+float64(w)*float64(w)
	}
	if norm == 0 {
		return math.Sqrt(apart)
	}
	return math.Sqrt(apart / norm)
}

const (
	learningRate = 0.05
	lossMax      = 0.02 // by which the means of the last losses may differ, as a share
)

// losses compares training on the GPU and on the CPU over many steps. Training amplifies differences in the last bits, so the
// means of the last losses count, not single ones. At a card's sizes they fall from 3.445 to 1.652 with one kernel
// set of the CPU, and to 1.653 with another.
func losses(r *gpucheck.Report) error {
	host, err := newNet(r.Sizes.Net, cpu.New(processors()), r.Sizes)
	if err != nil {
		return err
	}
	return onDevice(cuda.Options{}, func(d kernels.Device) error {
		gpu, err := newNet(r.Sizes.Net, d, r.Sizes)
		if err != nil {
			return err
		}
		random, from := seeded(), samplesOf(r.Sizes.Net, r.Sizes)
		var want, got []float64
		for range r.Sizes.Steps {
			x := drawn(random, r.Sizes.Batch, from)
			if err := errors.Join(host.learn(x, learningRate, &want), gpu.learn(x, learningRate, &got)); err != nil {
				return err
			}
		}
		last := r.Sizes.Steps - r.Sizes.Last
		onGPU, onCPU := mean(got[last:]), mean(want[last:])
		size := fmt.Sprintf("%s, %d steps", netSize(r.Sizes.Net)(r.Sizes), r.Sizes.Steps)
		text := fmt.Sprintf("the last %d losses are %.4f on the GPU and %.4f on the CPU on average, %.2f %% apart; first loss %.4f and %.4f",
			r.Sizes.Last, onGPU, onCPU, 100*math.Abs(onGPU/onCPU-1), got[0], want[0])
		if !(math.Abs(onGPU/onCPU-1) <= lossMax) {
			r.Fail(r.Name, size, "%s; at most %.0f %%", text, 100*lossMax)
			return nil
		}
		r.OK(r.Name, size, "%s", text)
		return nil
	})
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

const (
	trainAid  = "train alone"
	sharedVar = "GPU_CHECK_START" // a file: training starts when it exists
)

// trainOnce takes some steps and prints the losses and the milliseconds of a step. If it is one of several processes, it prints an empty
// line when it is ready, and waits for the file.
func trainOnce() error {
	r := gpucheck.NewReport(os.Stdout)
	return onDevice(cuda.Options{}, func(d kernels.Device) error {
		m, err := newNet(r.Sizes.Net, d, r.Sizes)
		if err != nil {
			return err
		}
		random, from := seeded(), samplesOf(r.Sizes.Net, r.Sizes)
		x := drawn(random, r.Sizes.Batch, from)
		var found []float64
		if err := m.learn(x, learningRate, &found); err != nil { // the first step also finds the entries
			return err
		}
		if start := os.Getenv(sharedVar); start != "" {
			fmt.Println()
			for deadline := time.Now().Add(r.Budget); !exists(start); time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					return fmt.Errorf("%s never came", start)
				}
			}
		}
		began := time.Now()
		for range r.Sizes.SharedSteps {
			if err := m.learn(x, learningRate, &found); err != nil {
				return err
			}
		}
		return json.NewEncoder(os.Stdout).Encode(trainedAlone{found, 1e3 * time.Since(began).Seconds() / float64(r.Sizes.SharedSteps)})
	})
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// trainedAlone is what trainOnce prints.
type trainedAlone struct {
	Losses []float64
	MS     float64 // of a step
}

// shared trains in one process, then in two at the same time on the same GPU, which must take the same steps.
func shared(r *gpucheck.Report) error {
	size := fmt.Sprintf("%s, %d steps each", netSize(r.Sizes.Net)(r.Sizes), r.Sizes.SharedSteps)
	alone, err := together(1)
	if err != nil {
		return fmt.Errorf("alone: %w", err)
	}
	both, err := together(2)
	if err != nil {
		return fmt.Errorf("two at the same time: %w", err)
	}
	for _, one := range both {
		if !slices.Equal(one.Losses, alone[0].Losses) {
			r.Fail(r.Name, size, "losses %v of two at the same time, %v alone", one.Losses, alone[0].Losses)
			return nil
		}
	}
	slower := max(both[0].MS, both[1].MS)
	r.OK(r.Name, size, "equal bits; a step takes %.2f ms alone and %.2f ms beside the other, %.1f times as long",
		alone[0].MS, slower, slower/alone[0].MS)
	return nil
}

// together runs trainOnce in so many processes at the same time.
func together(count int) (found []trainedAlone, err error) {
	start := fmt.Sprintf("%s/gpu-check-start-%d-%d", os.TempDir(), os.Getpid(), count)
	defer os.Remove(start)
	found = make([]trainedAlone, count)
	ready, done := make(chan error, count), make(chan error, count)
	for i := range count {
		cmd := self(trainAid, sharedVar+"="+start)
		out, err := cmd.StdoutPipe()
		if err != nil {
			return nil, err
		}
		var said strings.Builder
		cmd.Stderr = &said
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		go func() {
			_, err := out.Read(make([]byte, 1))
			ready <- err
			err = json.NewDecoder(out).Decode(&found[i])
			if ended := cmd.Wait(); ended != nil {
				err = failure(ended, []byte(said.String()))
			}
			done <- err
		}()
	}
	for range count {
		<-ready // an error is one of done, too
	}
	if err := os.WriteFile(start, nil, 0o600); err != nil {
		return nil, err
	}
	for range count {
		if ended := <-done; ended != nil {
			err = ended
		}
	}
	return found, err
}
