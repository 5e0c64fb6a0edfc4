package configs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
)

// imagePixelsMax is the limit on data.features.
const imagePixelsMax = 1_000_000

// generatedImages sets the default of data.features to the number of values of an image, and refuses any other number.
func (w *walker) generatedImages(t *table) {
	image, features := t.byPath["data.image"], t.byPath["data.features"]
	if image.key == nil || image.bad || w.cfg.Data.Set != "generated" {
		return
	}
	values := 1
	for _, n := range w.cfg.Data.Image {
		values = min(values*n, imagePixelsMax+1)
	}
	switch {
	case len(w.cfg.Data.Image) != 3:
		w.fatal(image.node, image.path, "write three numbers, such as [3, 32, 32]",
			"an image has channels, height and width, not %d numbers", len(w.cfg.Data.Image))
	case values > imagePixelsMax:
		w.fatal(image.node, image.path, "make it smaller", "an image has at most %d values", imagePixelsMax)
	case features.key != nil && !features.bad && w.cfg.Data.Features != values:
		w.fatal(features.node, features.path, fmt.Sprintf("remove it, or set %d", values),
			"%d differs from the %d values of an image of data.image", w.cfg.Data.Features, values)
	default:
		t.setDefault("data.features", strconv.Itoa(values))
		return
	}
	image.bad = true
}

// crossImages refuses rows of numbers for models with convolutions, which need images.
func (w *walker) crossImages(t *table) {
	name, set, image := t.byPath["model.name"], t.byPath["data.set"], t.byPath["data.image"]
	switch {
	case name.bad, set.bad, image.bad, !workload.NeedsImages(w.cfg.Model.Name), slices.Contains(dataset.ImageSetNames(), w.cfg.Data.Set):
	case slices.Contains(dataset.RatingSetNames(), w.cfg.Data.Set): // crossRatings reports it
	case w.cfg.Data.Set != "generated":
		w.fatal(name.node, name.path, "choose model.name: mlp, or one of the sets "+strings.Join(dataset.ImageSetNames(), ", "),
			"%s needs images, but the rows of data.set %s are not images", w.cfg.Model.Name, w.cfg.Data.Set)
	case image.key == nil:
		w.fatal(name.node, name.path, "set data.image, such as [1, 28, 28], or choose model.name: mlp",
			"%s needs images, but the rows of data.set generated are not images without data.image", w.cfg.Model.Name)
	}
}
