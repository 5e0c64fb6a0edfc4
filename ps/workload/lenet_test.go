package workload

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"fluentps/kernels/cpu"
)

// wideImages are images of float64, for plain references.
type wideImages struct {
	Image
	v []float64 // n x channels x height x width
}

func wide(x []float32) []float64 {
	w := make([]float64, len(x))
	for i, v := range x {
		w[i] = float64(v)
	}
	return w
}

// convolved is the definition of a convolution; bias may be nil.
func convolved(x wideImages, weight, bias []float64, filters, kernel, stride, pad int) wideImages {
	size := func(n int) int { return max(0, (n+2*pad-kernel+stride)/stride) }
	y := wideImages{Image: Image{Channels: filters, Height: size(x.Height), Width: size(x.Width)}}
	n := len(x.v) / x.Values()
	y.v = make([]float64, n*y.Values())
	for to := range y.v {
		if bias != nil {
			y.v[to] = bias[to/(y.Height*y.Width)%filters]
		}
	}
	for at, w := range weight {
		kx, ky, c, f := at%kernel, at/kernel%kernel, at/(kernel*kernel)%x.Channels, at/(kernel*kernel*x.Channels)
		for i := range n {
			from, to := x.v[(i*x.Channels+c)*x.Height*x.Width:], y.v[(i*filters+f)*y.Height*y.Width:]
			for oy := range y.Height {
				iy := oy*stride + ky - pad
				if iy < 0 || iy >= x.Height {
					continue
				}
				for ox := range y.Width {
					if ix := ox*stride + kx - pad; ix >= 0 && ix < x.Width {
						to[oy*y.Width+ox] += w * from[iy*x.Width+ix]
					}
				}
			}
		}
	}
	return y
}

func rectified(x wideImages) wideImages {
	for i := range x.v {
		x.v[i] = max(0, x.v[i])
	}
	return x
}

func halved(x wideImages) wideImages {
	y := wideImages{Image: Image{Channels: x.Channels, Height: x.Height / 2, Width: x.Width / 2}}
	for p := range len(x.v) / (x.Height * x.Width) {
		for i := range y.Height {
			for j := range y.Width {
				at := (p*x.Height+2*i)*x.Width + 2*j
				y.v = append(y.v, max(x.v[at], x.v[at+1], x.v[at+x.Width], x.v[at+x.Width+1]))
			}
		}
	}
	return y
}

// lenetReference is the network in the order of the paper: convolution, bias, ReLU, pooling.
func lenetReference(params [][]float64, x Batch, image Image) (loss float64, correct int) {
	h := wideImages{Image: image, v: wide(x.X)}
	h = halved(rectified(convolved(h, params[0], params[1], 6, 5, 1, 2)))
	h = halved(rectified(convolved(h, params[2], params[3], 16, 5, 1, 0)))
	return denseReference(params[4:], h.v, x.Y, false)
}

func TestLeNetGradientsAgainstFiniteDifferences(t *testing.T) {
	for _, from := range []Samples{images(1, 12, 12, 3), images(3, 15, 17, 4)} {
		t.Run(fmt.Sprint(from.Image), func(t *testing.T) {
			m := newBoundTo(t, ModelSpec{Name: "lenet"}, from, 4, 3)
			awayFromZero(m)
			x := randomBatch(3, from.Cols, from.Classes)
			agreeWithDifferences(t, m, x, rand.New(rand.NewPCG(4, 5)), 100, func(params [][]float64) (float64, int) {
				return lenetReference(params, x, from.Image)
			})
		})
	}
}

func TestLeNetLayers(t *testing.T) {
	for _, c := range []struct {
		from  Samples
		conv1 string
		fc1   string
		total int
	}{
		{images(1, 28, 28, 10), "[6 1 5 5] 25", "[120 400] 400", 61706},
		{images(3, 32, 32, 10), "[6 3 5 5] 75", "[120 576] 576", 83126},
	} {
		m := newBoundTo(t, ModelSpec{Name: "lenet"}, c.from, 1, 0)
		var got []string
		total := 0
		for _, p := range m.all() {
			got = append(got, fmt.Sprint(p.Name, " ", p.Shape, " ", p.Fan, " of layer ", p.Layer, " ", m.layers[p.Layer].Name))
			total += p.N()
		}
		want := []string{
			"conv1.weight " + c.conv1 + " of layer 0 conv1", "conv1.bias [6] 0 of layer 0 conv1",
			"conv2.weight [16 6 5 5] 150 of layer 1 conv2", "conv2.bias [16] 0 of layer 1 conv2",
			"fc1.weight " + c.fc1 + " of layer 2 fc1", "fc1.bias [120] 0 of layer 2 fc1",
			"fc2.weight [84 120] 120 of layer 3 fc2", "fc2.bias [84] 0 of layer 3 fc2",
			"fc3.weight [10 84] 84 of layer 4 fc3", "fc3.bias [10] 0 of layer 4 fc3",
		}
		if !slices.Equal(got, want) || total != c.total {
			t.Errorf("%d parameters, want %d:\n%s\nwant\n%s", total, c.total, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

func TestLeNetRefusals(t *testing.T) {
	for _, c := range []struct {
		spec ModelSpec
		from Samples
		want string
	}{
		{ModelSpec{Name: "lenet"}, images(1, 11, 12, 10),
			"images of 11 x 12 are too small for two convolutions and poolings; need at least 12 x 12"},
		{ModelSpec{Name: "lenet"}, images(3, 32, 8, 10), "images of 32 x 8 are too small"},
		{ModelSpec{Name: "lenet", Layers: []int{10}}, images(1, 28, 28, 10), "layers is [10]; leave it out"},
		{ModelSpec{Name: "lenet"}, Samples{Cols: 64, Classes: 10}, "rows are 64 numbers, not images; choose one of the sets idx, cifar10"},
	} {
		if _, err := NewModel(c.spec, c.from, cpu.New(1), 1); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v, want %q in it", c.from.Image, err, c.want)
		}
	}
}

func TestLeNetOnTheDeviceAsOnItsTwins(t *testing.T) {
	trainsAsOnItsTwins(t, ModelSpec{Name: "lenet"}, images(1, 28, 28, 10), 20)
}

// stripes are images of noise with one bright line: horizontal, vertical or diagonal. Every pixel is equally often bright in all
// classes, so a linear model cannot tell them apart, but filters can.
func stripes(r *rand.Rand, n int, image Image) Batch {
	b := Batch{X: make([]float32, n*image.Values()), Y: make([]int32, n), N: n, Cols: image.Values()}
	for i := range b.X {
		b.X[i] = float32(r.NormFloat64()) / 4
	}
	for i := range n {
		class, at := r.IntN(3), r.IntN(image.Width)
		b.Y[i] = int32(class)
		for j := range image.Height {
			y, x := [3]int{at, j, j}[class], [3]int{j, at, (at + j) % image.Width}[class]
			b.X[i*b.Cols+y*image.Width+x]++
		}
	}
	return b
}

func TestLeNetLearnsWhatSoftmaxCannot(t *testing.T) {
	from := images(1, 12, 12, 3)
	accuracy := map[string]float64{}
	for _, name := range []string{"softmax", "lenet"} {
		r := rand.New(rand.NewPCG(6, 7))
		m := newBoundTo(t, ModelSpec{Name: name}, from, 32, 2)
		for range 300 {
			m.Forward(stripes(r, 32, from.Image), nil)
			m.Backward(nil)
			descend(m, 0.1/32, 32)
		}
		_, correct, _ := m.Eval(stripes(r, 500, from.Image))
		accuracy[name] = float64(correct) / 500
	}
	t.Logf("accuracy %v", accuracy)
	if accuracy["lenet"] < 0.95 || accuracy["softmax"] > 0.6 {
		t.Errorf("accuracy %v, want at least 0.95 of lenet and at most 0.6 of softmax", accuracy)
	}
}

func BenchmarkLeNetStep(b *testing.B) {
	for _, batch := range []int{32, 64} {
		b.Run(fmt.Sprintf("1x28x28/batch=%d/%s", batch, strings.ReplaceAll(cpu.Backend(), " ", "-")), func(b *testing.B) {
			from := images(1, 28, 28, 10)
			m := newBoundTo(b, ModelSpec{Name: "lenet"}, from, batch, 1)
			x := randomBatch(batch, from.Cols, 10)
			for b.Loop() {
				m.Forward(x, nil)
				m.Backward(nil)
			}
			b.ReportMetric(b.Elapsed().Seconds()*1e3/float64(b.N), "ms/step")
		})
	}
}
