package workload

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"fluentps/kernels/cpu"
)

// newSmallest is the network with 6n+2 layers, also for n smaller than in the table of models.
func newSmallest(t *testing.T, n int, from Samples, batchMax int, seed uint64) *bound {
	t.Helper()
	spec := ModelSpec{Name: fmt.Sprintf("resnet%d", 6*n+2)}
	m, err := newChain(spec, from, residual(n)(spec, from), cpu.New(1), batchMax)
	if err != nil {
		t.Fatal(err)
	}
	return bind(m, m.layers, seed)
}

// normalized is a batch norm of images in float64. It uses mean and variance if they are given, otherwise those of the batch, and
// returns them.
func normalized(x wideImages, scale, shift, mean, variance []float64) (y wideImages, ofMean, ofVariance []float64) {
	plane := x.Height * x.Width
	channel := func(i int) int { return i / plane % x.Channels }
	if mean == nil {
		mean, variance = make([]float64, x.Channels), make([]float64, x.Channels)
		count := float64(len(x.v) / x.Channels)
		for i, v := range x.v {
			mean[channel(i)] += v / count
		}
		for i, v := range x.v {
			d := v - mean[channel(i)]
			variance[channel(i)] += d * d / count
		}
	}
	y = wideImages{Image: x.Image, v: make([]float64, len(x.v))}
	for i, v := range x.v {
		c := channel(i)
		y.v[i] = scale[c]*(v-mean[c])/math.Sqrt(variance[c]+1e-5) + shift[c]
	}
	return y, mean, variance
}

// shortcut is option A: every second pixel, and zeros for the new channels.
func shortcut(x wideImages, to Image) wideImages {
	if x.Image == to {
		return x
	}
	y := wideImages{Image: to, v: make([]float64, len(x.v)/x.Values()*to.Values())}
	for i := range y.v {
		image, c, row, col := i/to.Values(), i/(to.Height*to.Width)%to.Channels, i/to.Width%to.Height, i%to.Width
		if c < x.Channels {
			y.v[i] = x.v[((image*x.Channels+c)*x.Height+2*row)*x.Width+2*col]
		}
	}
	return y
}

// residualReference is the network in float64. With eval it uses the running statistics. It also returns the statistics of the batch:
// mean and variance of each norm.
func residualReference(params [][]float64, x Batch, image Image, n int, eval bool) (loss float64, correct int, statistics [][]float64) {
	next := func(h wideImages, filters, stride int, add *wideImages) wideImages {
		p := params[:5]
		params = params[5:]
		if !eval {
			p = slices.Concat(p[:3], [][]float64{nil, nil})
		}
		y, mean, variance := normalized(convolved(h, p[0], nil, filters, 3, stride, 1), p[1], p[2], p[3], p[4])
		statistics = append(statistics, mean, variance)
		if add != nil {
			for i, v := range shortcut(*add, y.Image).v {
				y.v[i] += v
			}
		}
		return rectified(y)
	}
	h := next(wideImages{Image: image, v: wide(x.X)}, 16, 1, nil)
	for group, filters := range []int{16, 32, 64} {
		for block := range n {
			stride := 1
			if group > 0 && block == 0 {
				stride = 2
			}
			before := h
			h = next(next(h, filters, stride, nil), filters, 1, &before)
		}
	}
	plane := h.Height * h.Width
	pooled := make([]float64, len(h.v)/plane)
	for i, v := range h.v {
		pooled[i/plane] += v / float64(plane)
	}
	loss, correct = denseReference(params, pooled, x.Y, false)
	return loss, correct, statistics
}

// unsettle moves parameters away from points at which gradients are equal or 0.
func unsettle(m *bound, r *rand.Rand) {
	for i, p := range m.all() {
		for j := range m.params[i] {
			if p.Fan == 0 {
				m.params[i][j] += 0.2 * r.Float32()
			}
		}
	}
}

func TestResidualGradientsAgainstFiniteDifferences(t *testing.T) {
	for _, c := range []struct {
		n    int
		from Samples
	}{{1, images(3, 8, 9, 3)}, {2, images(1, 9, 8, 4)}} {
		t.Run(fmt.Sprint(6*c.n+2, c.from.Image), func(t *testing.T) {
			r := rand.New(rand.NewPCG(6, 7))
			m := newSmallest(t, c.n, c.from, 5, 3)
			unsettle(m, r)
			x := randomBatch(3, c.from.Cols, c.from.Classes)
			agreeWithDifferences(t, m, x, r, 8/(c.n*c.n), func(params [][]float64) (float64, int) {
				loss, correct, _ := residualReference(params, x, c.from.Image, c.n, false)
				return loss, correct
			})
		})
	}
}

// The push of a statistic is the batch size times the sum of 0.9 of the old value and 0.1 of the batch's. The variance of a batch is
// divided by its size minus one.
func TestRunningStatistics(t *testing.T) {
	from := images(2, 8, 8, 3)
	m := newSmallest(t, 1, from, 5, 3)
	r := rand.New(rand.NewPCG(8, 9))
	unsettle(m, r)
	x := randomBatch(5, from.Cols, from.Classes)
	m.Forward(x, nil)
	m.Backward(nil)
	params := wideParams(m)
	_, _, batch := residualReference(params, x, from.Image, 1, false)
	k, compared := 0, 0
	for i, p := range m.all() {
		if !p.Stat {
			continue
		}
		side := []float64{64, 64, 64, 16, 16, 4, 4}[k/2] // positions of the seven convolutions
		for c, was := range params[i] {
			now := batch[k][c]
			if strings.HasSuffix(p.Name, ".variance") {
				now *= 5 * side / (5*side - 1)
			}
			want := 5 * (0.9*was + 0.1*now)
			if got := float64(m.grads[i][c]); math.Abs(got-want) > 1e-4*max(1, want) {
				t.Errorf("element %d of %s is pushed as %g, want %g", c, p.Name, got, want)
			}
			compared++
		}
		k++
	}
	if want := 2 * (3*16 + 2*32 + 2*64); compared != want {
		t.Errorf("%d statistics compared, want %d", compared, want)
	}
	// Evaluation reads the parameters, in batches of any size.
	loss, correct, _ := m.Eval(randomBatch(13, from.Cols, from.Classes))
	wantLoss, wantCorrect, _ := residualReference(params, randomBatch(13, from.Cols, from.Classes), from.Image, 1, true)
	if math.Abs(loss-wantLoss) > 1e-5*wantLoss || correct != wantCorrect {
		t.Errorf("evaluated: loss %g correct %d, want %g and %d", loss, correct, wantLoss, wantCorrect)
	}
}

// The numbers of parameters are those of He et al., Table 6, with the batch norms' scales and shifts.
func TestResidualLayers(t *testing.T) {
	trained := map[string]int{"resnet20": 269722, "resnet32": 464154, "resnet44": 658586, "resnet56": 853018, "resnet110": 1727962}
	for name, want := range trained {
		m, err := NewModel(ModelSpec{Name: name}, images(3, 32, 32, 10), full{cpu.New(1)}, 1)
		if err == nil || m != nil {
			t.Fatalf("%s on a full device: %v", name, err)
		}
		layers := layersFor(t, ModelSpec{Name: name}, images(3, 32, 32, 10))
		got, statistics := 0, 0
		for _, p := range paramsIn(layers) {
			if p.Stat {
				statistics += p.N()
			} else {
				got += p.N()
			}
		}
		depth := len(layers)
		if got != want || fmt.Sprintf("resnet%d", depth) != name || statistics != 2*(16+(depth-2)/3*(16+32+64)) {
			t.Errorf("%s: %d layers, %d parameters and %d statistics, want %d parameters", name, depth, got, statistics, want)
		}
	}
	m := newBoundTo(t, ModelSpec{Name: "resnet20"}, images(3, 32, 32, 10), 1, 1)
	var got []string
	for _, p := range slices.Concat(m.all()[:6], m.all()[35:37], m.all()[95:]) {
		got = append(got, fmt.Sprint(p.Name, p.Shape, " ", p.Layer, " ", p.Fan, " ", p.Start, " ", p.Stat))
	}
	want := []string{
		"conv1.weight[16 3 3 3] 0 27 0 false", "bn1.scale[16] 0 0 1 false", "bn1.shift[16] 0 0 0 false",
		"bn1.mean[16] 0 0 0 true", "bn1.variance[16] 0 0 1 true", "conv2.weight[16 16 3 3] 1 144 0 false",
		"conv8.weight[32 16 3 3] 7 144 0 false", "bn8.scale[32] 7 0 1 false",
		"fc.weight[10 64] 19 64 0 false", "fc.bias[10] 19 0 0 false",
	}
	if !slices.Equal(got, want) {
		t.Errorf("parameters\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if v := m.params[4]; slices.Max(v) != 1 || slices.Min(v) != 1 {
		t.Errorf("variances begin as %v, want 1", v)
	}
}

func TestResidualRefusals(t *testing.T) {
	for _, c := range []struct {
		spec ModelSpec
		from Samples
		want string
	}{
		{ModelSpec{Name: "resnet20"}, images(3, 7, 32, 10),
			"model resnet20: images of 7 x 32 are too small for three groups that each halve them; need at least 8 x 8"},
		{ModelSpec{Name: "resnet56", Layers: []int{3}}, images(3, 32, 32, 10), "has no hidden layers"},
		{ModelSpec{Name: "resnet20"}, Samples{Cols: 784, Classes: 10}, "not images"},
	} {
		if _, err := NewModel(c.spec, c.from, cpu.New(1), 1); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want %q in it", c.spec, err, c.want)
		}
	}
}

// A few steps of descent fit the training data, in training and in evaluation with the resulting statistics.
func TestResidualLearns(t *testing.T) {
	from := images(1, 8, 8, 3)
	m := newSmallest(t, 1, from, 32, 1)
	r := rand.New(rand.NewPCG(2, 3))
	var first, last float64
	for step := range 60 {
		x := stripes(r, 32, from.Image)
		last, _, _ = m.Forward(x, nil)
		if step == 0 {
			first = last
		}
		m.Backward(nil)
		descend(m, 0.1/32, 32)
	}
	loss, correct, _ := m.Eval(stripes(r, 100, from.Image))
	if last > 0.3*first || correct < 90 {
		t.Errorf("loss %g, then %g; evaluated %d of 100 right with loss %g", first, last, correct, loss/100)
	}
}

func BenchmarkResidualStep(b *testing.B) {
	for _, name := range []string{"resnet20", "resnet56"} {
		b.Run(fmt.Sprintf("%s/3x32x32/batch=32/%s", name, strings.ReplaceAll(cpu.Backend(), " ", "-")), func(b *testing.B) {
			from := images(3, 32, 32, 10)
			m := newBoundTo(b, ModelSpec{Name: name}, from, 32, 1)
			x := randomBatch(32, from.Cols, 10)
			for b.Loop() {
				m.Forward(x, nil)
				m.Backward(nil)
			}
			b.ReportMetric(b.Elapsed().Seconds()*1e3/float64(b.N), "ms/step")
		})
	}
}

// A device may sum in another order than the twins do, and batch norms magnify that from step to step.
func TestResidualOnTheDeviceAsOnItsTwins(t *testing.T) {
	trainsAsOnItsTwins(t, ModelSpec{Name: "resnet20"}, images(3, 8, 8, 10), 6)
}
