package runtime

import (
	"errors"
	"math"
	"strings"
	"testing"

	"fluentps/internal/comm"
	"fluentps/internal/comm/inproc"
	"fluentps/internal/configs/configstest"
	"fluentps/internal/plan/layout"
	"fluentps/kernels/cpu"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
)

// testImage is the shape that asImages gives the 20 features of generated rows.
var testImage = workload.Image{Channels: 1, Height: 4, Width: 5}

// asImages declares generated rows to be images, because no generated image set has this shape.
func asImages(o *Options) {
	o.Load = func(spec workload.DataSpec) (*dataset.Set, error) {
		set, err := cached(spec)
		if err != nil {
			return nil, err
		}
		mine := *set
		mine.Image = testImage
		return &mine, nil
	}
}

// Each worker augments its own batches with the augmenter of its index, however gradients are summed. The same run gives
// the same bits.
func TestAugmentedRunsEqualSequentialOnes(t *testing.T) {
	for _, c := range []struct {
		name  string
		ranks int
		hosts string // "": one host
		set   []string
	}{
		{"2 servers", 6, "", nil},
		{"hierarchy", 6, "aabbcc", []string{"cluster.hierarchy=node"}},
		{"allreduce", 4, "", []string{"baseline=allreduce"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := load(t, c.set...)
			run := func(a dataset.Augment) Result {
				cfg.Data.Augment = a
				var ts []comm.Transport
				if ts = inproc.New(c.ranks, inproc.Options{}); c.hosts != "" {
					ts = hosted(c.hosts)
				}
				res, errs := runOver(t, ts, cfg, func(o *Options) {
					asImages(o)
					if c.hosts != "" {
						o.Host = c.hosts[o.Transport.Rank():][:1]
					}
				})
				if err := errors.Join(errs...); err != nil {
					t.Fatal(err)
				}
				return res[0]
			}
			plain := run(dataset.Augment{})
			spec := dataset.Augment{Crop: 1, Flip: true}
			got, again := run(spec), run(spec)
			if got.Summary.ParametersSHA256 != again.Summary.ParametersSHA256 {
				t.Error("the same run ends with other bits")
			}
			want := sequential(t, cfg, 4, 30)
			if d := relativeDistance(got.Parameters, want); !(d <= 1e-5) {
				t.Errorf("%.3g away from a sequential run, the limit is 1e-5", d)
			}
			if d := relativeDistance(plain.Parameters, want); d < 0.01 {
				t.Errorf("without augmentation a run ends only %.3g away", d)
			}
			if loss := testLoss(t, got.Parameters); math.Abs(loss-float64(*got.Summary.TestLoss)) > 1e-5 {
				t.Errorf("test loss %.6f, of the unchanged test images %.6f", float64(*got.Summary.TestLoss), loss)
			}
		})
	}
}

// testLoss is the loss of softmax on the whole test set.
func testLoss(t *testing.T, parameters []float32) float64 {
	t.Helper()
	cfg := load(t)
	set, err := cached(layout.DataSpec(cfg))
	if err != nil {
		t.Fatal(err)
	}
	n, cols := set.Test.Rows(), set.Test.Cols()
	m, err := workload.NewModel(cfg.ModelSpec(), set.Samples(), cpu.New(1), n)
	if err != nil {
		t.Fatal(err)
	}
	var views [][]float32
	for _, p := range configstest.Params(t, cfg.ModelSpec(), set.Samples()) {
		views, parameters = append(views, parameters[:p.N()]), parameters[p.N():]
	}
	m.Bind(views, nil)
	b := workload.Batch{X: make([]float32, n*cols), Y: make([]int32, n), N: n, Cols: cols}
	rows := make([]int32, n)
	for i := range rows {
		rows[i] = int32(i)
	}
	set.Test.Fill(b.X, b.Y, rows)
	loss, _, _ := m.Eval(b)
	return loss / float64(n)
}

// An augmentation that does not fit the data is refused before training, on all ranks.
func TestAugmentationThatDoesNotFitTheDataIsRefused(t *testing.T) {
	for _, c := range []struct {
		spec   dataset.Augment
		change func(*Options)
		want   string
	}{
		{dataset.Augment{Crop: 4}, asImages, "data.augment.crop is 4, must be 0 to 3, less than the images have: 4 x 5 pixels"},
		{dataset.Augment{Flip: true}, nil, "data.augment: the rows of the data set are no images"},
	} {
		cfg := load(t)
		cfg.Data.Augment = c.spec
		_, errs := world(t, cfg, 3, c.change)
		for i, err := range errs {
			var exit *ExitError
			if !errors.As(err, &exit) || exit.Code != CodeUsage || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%+v: rank %d ends with %v, want code %d and %q", c.spec, i, err, CodeUsage, c.want)
			}
		}
	}
}
