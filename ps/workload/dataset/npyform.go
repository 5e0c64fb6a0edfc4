package dataset

import (
	"fmt"
	"math"

	"fluentps/ps/workload/dataset/classes"
	"fluentps/ps/workload/dataset/files"
	"fluentps/ps/workload/dataset/images"
	"fluentps/ps/workload/dataset/mapped"
	"fluentps/ps/workload/dataset/numpy"
	"fluentps/ps/workload/dataset/text"
)

// setImage finds out whether rows are images, and where their channels are.
func (t *arrays) setImage(channels string) error {
	dims := t.x.Shape[1:]
	switch len(dims) {
	case 1:
		return nil
	case 2:
		t.image = Image{Channels: 1, Height: dims[0], Width: dims[1]}
	case 3:
		isChannels := func(d int) bool { return d == 1 || d == 3 || d == 4 }
		first := channels == channelsFirst
		if channels != channelsFirst && channels != channelsLast {
			if first = isChannels(dims[0]); first == isChannels(dims[2]) {
				return fmt.Errorf("data: %s has the shape %v, and no rule tells where the channels are: set arrays.channels: first or last",
					t.name, t.x.Shape)
			}
		}
		if t.last = !first; t.last {
			t.image = Image{Channels: dims[2], Height: dims[0], Width: dims[1]}
		} else {
			t.image = Image{Channels: dims[0], Height: dims[1], Width: dims[2]}
		}
	default:
		return fmt.Errorf("data: %s has the shape %v: rows of 1 to 3 dimensions are read; save x.reshape(len(x), -1)", t.name, t.x.Shape)
	}
	if max(t.image.Channels, t.image.Height, t.image.Width) > 65535 {
		return fmt.Errorf("data: %s has images of %v, at most 65535 in each dimension", t.name, dims)
	}
	return nil
}

// setScale chooses how values are divided.
func (t *arrays) setScale(scale float64) {
	if isByte := t.x.Type == (numpy.Type{Kind: 'u', Size: 1}); isByte {
		if t.image != (Image{}) && (scale == 0 || scale == 1) {
			scale = 255
		}
		if scale != 0 && scale != 1 {
			values := images.ByteValues(scale, 0, 1)
			t.bytes = &values
		}
		return
	}
	if scale != 1 {
		t.divide = scale
	}
}

// readClasses reads the numbers of the classes, as the file has them.
func (t *arrays) readClasses(name string, y *numpy.Array) error {
	var bad error
	err := mapped.Guard(func() {
		for i := range t.y {
			v, ok := y.Whole(i)
			if !ok || v < -classes.Max || v >= classes.Max {
				bad = fmt.Errorf("data: %s: class %d of %s is %v: whole numbers from %d to %d are wanted; number them, as in "+
					"numpy.unique(y, return_inverse=True)[1], or set data.task: regress if they are numbers to predict",
					t.name, i, name, y.Float(i), -classes.Max, classes.Max-1)
				return
			}
			t.y[i] = int32(v)
		}
	})
	if err != nil {
		return fmt.Errorf("data: %s: %w", name, err)
	}
	return bad
}

// readTargets reads the numbers to predict, as values of y.
func (t *arrays) readTargets(name string, y *numpy.Array) error {
	var bad error
	err := mapped.Guard(func() {
		for i := range t.y {
			v := y.Float(i)
			if !(math.Abs(v) <= math.MaxFloat32) {
				bad = fmt.Errorf("data: %s: target %d of %s is %v: finite numbers up to %.8g are wanted; leave the row out, as in "+
					"keep = numpy.isfinite(y)", t.name, i, name, v, math.MaxFloat32)
				return
			}
			t.y[i] = yOf(float32(v))
		}
	})
	if err != nil {
		return fmt.Errorf("data: %s: %w", name, err)
	}
	return bad
}

// say tells in a line what was found.
func (c *container) say(t *arrays, names [4]string, splits bool) {
	what := fmt.Sprintf("%d features", t.width)
	if i := t.image; i != (Image{}) {
		where := ""
		if t.last {
			where = ", channels last"
		}
		what = fmt.Sprintf("images of %d x %d, %s%s", i.Height, i.Width, text.Counted(i.Channels, "channel"), where)
	}
	if t.bytes != nil {
		what += fmt.Sprintf(", divided by %.6g", 1/float64(t.bytes[1]))
	}
	how := "mapped"
	switch {
	case t.x.Fortran:
		how = "converted from Fortran order in memory"
	case t.x.Packed:
		how = "unpacked into memory"
	}
	test := "no test rows"
	switch {
	case splits:
		test = "of which some are test rows"
	case names[2] != "":
		test = "test rows " + names[2] + ", " + names[3]
	}
	c.in.Found = append(c.in.Found, fmt.Sprintf("%s: %s (%s, %s, %s), classes %s, %s", c.path, names[0], t.x.Type, what, how, names[1], test))
}

// split takes a share of the rows as test rows. Both tables are of the same array.
func (t *arrays) split(s Spec, in *files.Reading) (*arrays, error) {
	picked, err := files.TestRows(s.Path, len(t.y), s.Split.Test, s.Split.Seed)
	if err != nil {
		return nil, err
	}
	if err := in.Take(nil, int64(len(t.y))*2*valueBytes); err != nil {
		return nil, err
	}
	all := make([]int32, len(t.y))
	for r := range all {
		all[r] = int32(r)
	}
	test := &arrays{name: t.name, x: t.x, isPart: true, width: t.width, image: t.image, last: t.last, bytes: t.bytes, divide: t.divide}
	t.pick, test.pick = files.Part(all, 1, picked)
	t.y, test.y = files.Part(t.y, 1, picked)
	if !s.Regress.On {
		classes.NoteSplit(in, s.Path, t.y, test.y, nil)
	}
	in.Found = append(in.Found, fmt.Sprintf("%s: %d rows for training, %d for the test", s.Path, t.Rows(), test.Rows()))
	return test, nil
}
