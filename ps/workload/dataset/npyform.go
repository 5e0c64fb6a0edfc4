package dataset

import (
	"fmt"
	"slices"
	"strings"

	"fluentps/ps/workload/dataset/numpy"
)

// setImage finds out whether rows are images, and where their channels are.
func (t *arrays) setImage(channels string) error {
	dims := t.x.Shape[1:]
	switch len(dims) {
	case 1:
		return nil
	case 2:
		t.image = Image{1, dims[0], dims[1]}
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
			t.image = Image{dims[2], dims[0], dims[1]}
		} else {
			t.image = Image{dims[0], dims[1], dims[2]}
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
			values := byteValues(scale, 0, 1)
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
	err := numpy.Guard(func() {
		for i := range t.y {
			v, ok := y.Whole(i)
			if !ok || v < -classesMax || v >= classesMax {
				bad = fmt.Errorf("data: %s: class %d of %s is %v: whole numbers from %d to %d are wanted; number them, as in "+
					"numpy.unique(y, return_inverse=True)[1]", t.name, i, name, y.Float(i), -classesMax, classesMax-1)
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

// number numbers the classes from 0, and returns how many there are. Numbers that begin with 0 stay, others are numbered in their order.
func (c *container) number(train, test *arrays, classes int) (int, error) {
	counts := map[int32]int{}
	for _, y := range train.y {
		counts[y]++
	}
	values := make([]int32, 0, len(counts))
	for v := range counts {
		values = append(values, v)
	}
	slices.Sort(values)
	most := int(values[len(values)-1]) + 1
	isGiven := classes > 0 && values[0] > 0 && most <= classes // the numbers are those of the classes that are given
	if values[0] != 0 && !slices.Contains(test.y, 0) && !isGiven {
		place := map[int32]int32{}
		for i, v := range values {
			place[v] = int32(i)
		}
		for _, t := range []*arrays{train, test} {
			for i, y := range t.y {
				n, ok := place[y]
				if !ok {
					return 0, fmt.Errorf("data: %s: class %d of row %d is none of the training rows, which have %s", t.name, y, i, some(values))
				}
				t.y[i] = n
			}
		}
		c.in.found = append(c.in.found, fmt.Sprintf("%s: classes are %s, and are numbered 0 to %d", c.path, some(values), len(values)-1))
		most = len(values)
	} else if len(values) < most {
		c.in.notes = append(c.in.notes, fmt.Sprintf("%s: the largest class is %d, but only %d classes have rows", c.path, most-1, len(values)))
	}
	for i, y := range test.y {
		if y < 0 || int(y) >= max(most, classes) {
			return 0, fmt.Errorf("data: %s: class %d of row %d is none of the training rows, which have %s", test.name, y, i, some(values))
		}
	}
	if classes > 0 && most > classes {
		return 0, fmt.Errorf("data: %s: class %d, must be 0 to %d: is the number of classes right?", train.name, most-1, classes-1)
	}
	if len(values) == 1 {
		c.in.notes = append(c.in.notes, fmt.Sprintf("%s: all training rows are of class %d", c.path, values[0]))
	}
	return max(2, most, classes), nil
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// some lists the first values.
func some(values []int32) string {
	const most = 8
	texts := make([]string, 0, most+1)
	for _, v := range values[:min(most, len(values))] {
		texts = append(texts, fmt.Sprint(v))
	}
	if len(values) > most {
		texts = append(texts, fmt.Sprintf("... %d", values[len(values)-1]))
	}
	return strings.Join(texts, ", ")
}

// say tells in a line what was found.
func (c *container) say(t *arrays, names [4]string) {
	what := fmt.Sprintf("%d features", t.width)
	if i := t.image; i != (Image{}) {
		where := ""
		if t.last {
			where = ", channels last"
		}
		what = fmt.Sprintf("images of %d x %d, %s%s", i.Height, i.Width, plural(i.Channels, "channel"), where)
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
	if names[2] != "" {
		test = "test rows " + names[2] + ", " + names[3]
	}
	c.in.found = append(c.in.found, fmt.Sprintf("%s: %s (%s, %s, %s), classes %s, %s", c.path, names[0], t.x.Type, what, how, names[1], test))
}
