package rules

import (
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"fluentps/internal/configs/diag"
	"fluentps/internal/configs/keys"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
	"fluentps/ps/workload/dataset/images"
)

// crossAugment refuses a crop that may leave nothing of an image, and a model that never sees the changed pixels. It checks the crop only
// for sets of known image size: for other sets, only the files have the size.
func (w *checks) crossAugment(t *keys.Table) {
	crop, flip, set, name := t.ByPath["data.augment.crop"], t.ByPath["data.augment.flip"], t.ByPath["data.set"], t.ByPath["model.name"]
	image, augment := images.ImageOf(w.Config.Data.Set), w.Config.Data.Augment
	if limit := min(image.Height, image.Width) - 1; !crop.Bad && !set.Bad && limit >= 0 && augment.Crop > limit {
		w.Fatal(crop.Node, crop.Path, fmt.Sprintf("set 0 to %d", limit),
			"%d leaves nothing of some images of %s, which have %d x %d pixels", augment.Crop, w.Config.Data.Set, image.Height, image.Width)
	}
	at := crop
	for _, key := range []string{"flip", "rotate", "jitter", "cutout"} {
		if l := t.ByPath["data.augment."+key]; at.Key == nil && l.Key != nil {
			at = l
		}
	}
	if !crop.Bad && !flip.Bad && !name.Bad && augment != (images.Augment{}) && workload.TakesSparse(w.Config.Model.Name) {
		w.Fatal(at.Node, at.Path, "remove augment, or set model.name: logistic",
			"changes the pixels of images, but %s takes the entries of sparse rows", w.Config.Model.Name)
	}
}

// crossTest checks that the test rows of text files are those of a file or of a split.
func (w *checks) crossTest(t *keys.Table, root *yaml.Node) {
	test, split := t.ByPath["data.test"], t.ByPath["data.split.test"]
	switch {
	case t.ByPath["data.set"].Bad || !t.Met(test) || test.Bad || split.Bad:
	case test.Key != nil && split.Key != nil:
		w.Fatal(split.Key, split.Path, "keep one of the two", "is set as well as data.test (%s)", w.Where(test.Key))
	case w.Config.Data.Set == "images": // its folder may have both parts
	case test.Key == nil && split.Key == nil:
		w.Report(diag.Warning, w.SectionOf(t, test, root), test.Path,
			"name the test file, or take test rows from data.path by data.split.test: 0.2",
			"is missing, so there are no test rows, and nothing is evaluated")
	}
}

// crossSkew refuses two ways to deal rows at once: a policy that deals them anew, or two partitions.
func (w *checks) crossSkew(t *keys.Table) {
	skew, by, word := t.ByPath["data.partition.dirichlet"], t.ByPath["data.partition.by"], t.ByPath["data.partition"]
	at := skew
	if skew.Key == nil {
		at = by
	}
	switch {
	case skew.Bad || by.Bad || word.Bad || at.Key == nil || t.ByPath["work.policy"].Bad:
	case skew.Key != nil && by.Key != nil:
		w.Fatal(by.Key, by.Path, "keep one of the two", "is set as well as dirichlet (%s)", w.Where(skew.Key))
	case word.Key != nil && w.Config.Data.Partition != dataset.Defaults().Partition:
		w.Fatal(at.Key, at.Path, "remove one of the two", "is set as well as name: %s (%s)", w.Config.Data.Partition, w.Where(word.Key))
	case by.Key != nil && !t.ByPath["data.set"].Bad && w.Config.Data.NoGroups() != "":
		w.Fatal(by.Key, by.Path, "write "+w.Config.Data.NoGroups(), "is %s, which rows of %s do not have", w.Config.Data.Skew.By,
			w.Config.Data.Set)
	case w.Config.Data.Regresses() && (skew.Key != nil || w.Config.Data.Skew.By == "class"):
		w.Fatal(at.Key, at.Path, "write by: COLUMN of csv or parquet, or leave it out",
			"shares out classes, but rows have targets: data.task is regress")
	case w.Config.DealsBatches() || len(w.Config.Work.Shares) > 0:
		w.Fatal(at.Key, at.Path, "remove it, or the work section",
			"says which rows a worker has, and work deals all rows by the speed of workers")
	}
}

// crossImages refuses rows of numbers for models with convolutions, which need images.
func (w *checks) crossImages(t *keys.Table) {
	name, set, image := t.ByPath["model.name"], t.ByPath["data.set"], t.ByPath["data.image"]
	switch {
	case name.Bad, set.Bad, image.Bad, !workload.NeedsImages(w.Config.Model.Name), slices.Contains(dataset.ImageSetNames(), w.Config.Data.Set):
	case slices.Contains(dataset.RatingSetNames(), w.Config.Data.Set): // crossRatings reports it
	case w.Config.Data.Set == "npy" || w.Config.Data.Set == "packed": // the file tells
	case w.Config.Data.Set != "generated":
		w.Fatal(name.Node, name.Path, "choose model.name: mlp, or one of the sets "+strings.Join(dataset.ImageSetNames(), ", "),
			"%s needs images, but the rows of data.set %s are not images", w.Config.Model.Name, w.Config.Data.Set)
	case image.Key == nil:
		w.Fatal(name.Node, name.Path, "set data.image, such as [1, 28, 28], or choose model.name: mlp",
			"%s needs images, but the rows of data.set generated are not images without data.image", w.Config.Model.Name)
	}
}

// crossRatings checks that models for ratings have data sets of ratings, that other models have none, and that no model for ratings has a
// target accuracy.
func (w *checks) crossRatings(t *keys.Table) {
	name, set, target := t.ByPath["model.name"], t.ByPath["data.set"], t.ByPath["train.stop.target"]
	if name.Bad || set.Bad {
		return
	}
	takes, has := workload.TakesRatings(w.Config.Model.Name), slices.Contains(dataset.RatingSetNames(), w.Config.Data.Set)
	switch {
	case w.Config.Data.Set == "packed": // the file tells
	case takes && !has:
		w.Fatal(name.Node, name.Path, "choose one of the sets "+strings.Join(dataset.RatingSetNames(), ", "),
			"%s needs ratings (entries of a matrix), but data.set %s has none", w.Config.Model.Name, w.Config.Data.Set)
	case has && !takes:
		w.Fatal(name.Node, name.Path, "choose model.name: matrix_factorization, or another set",
			"%s needs features with a class, but data.set %s has ratings (entries of a matrix)", w.Config.Model.Name, w.Config.Data.Set)
	}
	if !w.Config.HasScore() && target.Key != nil && !target.Bad {
		w.Fatal(target.Key, target.Path, "remove it, and stop by epochs, samples, updates or time",
			"is a test accuracy, or R2 of numbers that are predicted, but %s has neither: it has a loss alone", w.Config.Model.Name)
	}
}

// crossTask checks that models which predict numbers have rows with targets, and that other models have rows with classes.
func (w *checks) crossTask(t *keys.Table) {
	name, task, loss := t.ByPath["model.name"], t.ByPath["data.task"], t.ByPath["model.loss"]
	m := w.Config.Model
	if name.Bad || task.Bad || t.ByPath["data.set"].Bad || workload.IsExternal(m.Name) || workload.TakesRatings(m.Name) ||
		slices.Contains(dataset.RatingSetNames(), w.Config.Data.Set) {
		return
	}
	targets, classes := workload.TakesTargets(m.Name)
	switch regresses := w.Config.Data.Regresses(); {
	case regresses && !targets:
		w.Fatal(name.Node, name.Path, "choose one of "+strings.Join(workload.WithTargets(), ", "),
			"%s predicts classes, but rows have targets: data.task is regress", m.Name)
	case !regresses && !classes:
		w.Fatal(name.Node, name.Path, "set data.task: regress, or choose a model of classes, such as softmax",
			"%s predicts numbers, but rows have classes", m.Name)
	case !regresses && loss.Key != nil && !loss.Bad && m.Loss != workload.LossAuto:
		w.Fatal(loss.Key, loss.Path, "set data.task: regress, or leave it out", "is %s, a loss of numbers, but rows have classes", m.Loss)
	}
}

// crossNonzeros refuses more nonzeros in a row than the row has features.
func (w *checks) crossNonzeros(t *keys.Table, root *yaml.Node) {
	nonzeros, features := t.ByPath["data.nonzeros"], t.ByPath["data.features"]
	if d := w.Config.Data; d.Set == "generated_sparse" && !nonzeros.Bad && !features.Bad && d.Nonzeros > d.Features {
		w.Fatal(w.NodeOf(t, nonzeros, root), nonzeros.Path, "raise data.features, or lower nonzeros",
			"%d is more than the %d features of a row", d.Nonzeros, d.Features)
	}
}

// crossPictures refuses more than two numbers as a size.
func (w *checks) crossPictures(t *keys.Table) {
	for _, key := range []string{"data.pictures.resize", "data.pictures.crop"} {
		size := w.Config.Data.Pictures.Resize
		if key == "data.pictures.crop" {
			size = w.Config.Data.Pictures.Crop
		}
		if l := t.ByPath[key]; !l.Bad && len(size) > 2 {
			w.Fatal(l.Node, l.Path, "write height and width, such as [224, 224]", "has %d numbers, at most 2", len(size))
		}
	}
}
