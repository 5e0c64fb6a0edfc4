package runtime

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"fluentps/internal/comm/inproc"
	"fluentps/internal/configs"
	"fluentps/internal/core/shard"
	"fluentps/internal/plan/layout"
	"fluentps/internal/policy/optim"
	"fluentps/internal/rank/coordinate"
	"fluentps/kernels/cpu"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
)

// trainer trains in one place: a model with all its parameters and gradients, and the stores of a server, which commit each
// batch. Nothing is sent.
type trainer struct {
	model         workload.Model
	batch         workload.Batch
	plan          *shard.Plan
	stores        []*optim.Store
	params, grads []float32 // arenas of the plan
	steps         int
}

// newTrainer trains c's model on one batch of arbitrary values with random labels.
func newTrainer(tb testing.TB, c *configs.Config) *trainer {
	tb.Helper()
	must := func(err error) {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
	}
	set, err := dataset.Load(layout.DataSpec(c))
	must(err)
	of, n := set.Samples(), c.Train.BatchPerWorker
	s := &trainer{batch: workload.Batch{X: make([]float32, n*of.Cols), Y: make([]int32, n), N: n, Cols: of.Cols}}
	random := rand.New(rand.NewPCG(c.Seed, 1))
	for i := range s.batch.X {
		s.batch.X[i] = float32(random.NormFloat64())
	}
	for i := range s.batch.Y {
		s.batch.Y[i] = random.Int32N(int32(of.Classes))
	}
	s.model, err = workload.NewModel(c.ModelSpec(), of, cpu.New(c.Device.Threads), n)
	must(err)
	architecture, err := workload.NewArchitecture(c.ModelSpec(), of)
	must(err)
	params := architecture.Params()
	s.plan, err = layout.Plan(c, params, 1, layout.Link{})
	must(err)
	memory := inproc.New(1, inproc.Options{})[0]
	arena := func() []float32 {
		b, err := memory.Alloc(s.plan.Arena * shard.ElemBytes)
		must(err)
		return b.F32()
	}
	s.params, s.grads = arena(), arena()
	update, err := c.Update()
	must(err)
	for id := range s.plan.Shards {
		s.stores = append(s.stores, c.NewStore(s.plan, int32(id), update))
	}
	views := s.plan.Views(s.params)
	for i, p := range params {
		workload.Fill(views[i], c.Seed, p, 0)
	}
	s.model.Bind(views, s.plan.Views(s.grads))
	return s
}

// step does forward, backward and the update, and returns the mean loss of the batch.
func (s *trainer) step() float64 {
	loss, _, _ := s.model.Forward(s.batch, nil)
	s.model.Backward(nil)
	for i, store := range s.stores {
		sh := &s.plan.Shards[i]
		store.Fold(0, s.grads[sh.Lo:sh.Hi], 0, 1)
		params := s.params[sh.Lo:sh.Hi]
		store.Commit(params, params, float64(s.steps), 1, 1/float64(s.batch.N))
	}
	s.steps++
	return loss / float64(s.batch.N)
}

var trainedModels = []struct {
	name, model, image string
	batches            []int
}{
	{"softmax", "{name: softmax}", "[1, 28, 28]", []int{32, 64, 128}},
	{"mlp", "{name: mlp, layers: [256, 128]}", "[1, 28, 28]", []int{32, 64, 128}},
	{"lenet", "{name: lenet}", "[1, 28, 28]", []int{32, 64, 128}},
	{"resnet20", "{name: resnet20}", "[3, 32, 32]", []int{32, 64, 128}},
	{"resnet56", "{name: resnet56}", "[3, 32, 32]", []int{32, 64, 128}},
}

// BenchmarkTrainStep measures a step of training without an exchange. samples/cpu-s counts the CPU seconds of this process,
// not those in which another one has the core.
func BenchmarkTrainStep(b *testing.B) {
	for _, m := range trainedModels {
		for _, n := range m.batches {
			b.Run(fmt.Sprintf("model=%s/batch=%d", m.name, n), func(b *testing.B) {
				s := newTrainer(b, load(b, "data={set: generated, image: "+m.image+"}", "model="+m.model, fmt.Sprintf("train.batch_per_worker=%d", n),
					"train.optimizer={name: momentum, lr: 0.01, momentum: 0.9}"))
				s.step()
				b.ReportAllocs()
				began := coordinate.ProcessCPU()
				for b.Loop() {
					s.step()
				}
				b.ReportMetric(float64(n)*float64(b.N)/(coordinate.ProcessCPU()-began).Seconds(), "samples/cpu-s")
				b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "samples/s")
			})
		}
	}
}

// BenchmarkTrainStepThreads measures a step by the clock with several threads: samples/s beside those of one thread.
func BenchmarkTrainStepThreads(b *testing.B) {
	for _, threads := range []int{1, 2, 4} {
		b.Run(fmt.Sprintf("model=resnet20/batch=128/threads=%d", threads), func(b *testing.B) {
			s := newTrainer(b, load(b, "data={set: generated, image: [3, 32, 32]}", "model={name: resnet20}", "train.batch_per_worker=128",
				fmt.Sprintf("device.threads=%d", threads), "train.optimizer={name: momentum, lr: 0.01, momentum: 0.9}"))
			s.step()
			for b.Loop() {
				s.step()
			}
			b.ReportMetric(128*float64(b.N)/b.Elapsed().Seconds(), "samples/s")
		})
	}
}

// The benchmark measures real training: the loss of a repeated batch falls.
func TestTrainStepLearns(t *testing.T) {
	for _, m := range trainedModels[:3] {
		if !runsInRaceMode(m.name, "mlp") {
			continue
		}
		s := newTrainer(t, load(t, "data={set: generated, image: "+m.image+"}", "model="+m.model, "train.batch_per_worker=8",
			"train.optimizer={name: momentum, lr: 0.01, momentum: 0.9}"))
		first, last := s.step(), 0.0
		for range 20 {
			last = s.step()
		}
		if !(first > 1.5 && last < first/2) {
			t.Errorf("%s: the loss goes from %g to %g in 20 steps", m.name, first, last)
		}
	}
}
