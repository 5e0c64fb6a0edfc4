package runtime

import (
	"errors"
	"math"
	"strings"
	"testing"

	"fluentps/internal/rank/sidestest"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
	"fluentps/ps/workload/dataset/images"
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

// A run augments what it trains on, and evaluates the test images as they are. An all-reduce augments alike.
func TestTestImagesAreNotAugmented(t *testing.T) {
	for set, ranks := range map[string]int{"baseline=none": 6, "baseline=allreduce": 4} {
		cfg := load(t, set)
		cfg.Data.Augment = images.Augment{Crop: 1, Flip: true}
		res, errs := world(t, cfg, ranks, asImages)
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		if loss, _ := sidestest.OnTestSet(t, load(t), res[0].Parameters); math.Abs(loss-float64(*res[0].Summary.TestLoss)) > 1e-5 {
			t.Errorf("%s: test loss %.6f, of the unchanged test images %.6f", set, float64(*res[0].Summary.TestLoss), loss)
		}
	}
}

// An augmentation that does not fit the data is refused before training, on all ranks.
func TestAugmentationThatDoesNotFitTheDataIsRefused(t *testing.T) {
	for _, c := range []struct {
		spec   images.Augment
		change func(*Options)
		want   string
	}{
		{images.Augment{Crop: 4}, asImages, "data.augment.crop is 4, must be 0 to 3, less than the images have: 4 x 5 pixels"},
		{images.Augment{Flip: true}, nil, "data.augment: the rows of the data set are no images"},
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
