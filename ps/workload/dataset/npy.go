package dataset

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"fluentps/ps/workload/dataset/classes"
	"fluentps/ps/workload/dataset/files"
	"fluentps/ps/workload/dataset/images"
	"fluentps/ps/workload/dataset/mapped"
	"fluentps/ps/workload/dataset/numpy"
)

// npySet is the data of NumPy's files.
const npySet = "npy"

// The values of channels.
const (
	channelsAuto  = "auto"
	channelsFirst = "first"
	channelsLast  = "last"
)

// usualArrays are the names that people give to training rows, their classes, test rows and their classes.
var usualArrays = [][4]string{
	{"x_train", "y_train", "x_test", "y_test"}, // Keras
	{"X_train", "y_train", "X_test", "y_test"}, // scikit-learn
	{"X_train", "Y_train", "X_test", "Y_test"},
	{"train_images", "train_labels", "test_images", "test_labels"},
	{"train_x", "train_y", "test_x", "test_y"},
	{"x", "y", "", ""},
	{"X", "y", "", ""},
	{"data", "labels", "", ""},
	{"images", "labels", "", ""},
	{"arr_0", "arr_1", "arr_2", "arr_3"}, // numpy.savez without names
}

// container is an archive or a folder: what has arrays by name.
type container struct {
	path  string
	in    *files.Reading
	file  *numpy.File // of an archive; nil: a folder
	files []*numpy.File
	names []string
}

func openContainer(path string, in *files.Reading) (*container, error) {
	c := &container{path: path, in: in}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, files.Missing(fmt.Sprintf("data: %s does not exist; set npy needs an archive .npz, or a folder with files .npy", path))
	}
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	if !info.IsDir() {
		if c.file, err = c.open(path); err != nil {
			return nil, err
		}
		if c.names = c.file.Names; c.names == nil {
			return nil, fmt.Errorf("data: %s has one array, and training rows and their classes are two: name the folder of both, and "+
				"the files as arrays: {x: %s, y: ...}", path, strings.TrimSuffix(filepath.Base(path), ".npy"))
		}
		return c, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".npy"); ok {
			c.names = append(c.names, name)
		}
	}
	return c, nil
}

func (c *container) open(path string) (*numpy.File, error) {
	f, err := numpy.Open(path, func(bytes int64) error { return c.in.Take(&files.Source{Path: path}, bytes) })
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	c.files = append(c.files, f)
	sum, err := f.Sum()
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	c.in.Files = append(c.in.Files, FileSum{Path: path, Name: f.Name(), Bytes: f.Size, SHA256: sum, Sampled: true})
	return f, nil
}

// array returns the array of a name.
func (c *container) array(name string) (*numpy.Array, error) {
	if !slices.Contains(c.names, name) {
		return nil, fmt.Errorf("data: %s has no array %s; it has %s", c.path, name, classes.List(c.names))
	}
	if c.file != nil {
		a, err := c.file.Array(name)
		if err != nil {
			return nil, fmt.Errorf("data: %w", err)
		}
		return a, nil
	}
	f, err := c.open(filepath.Join(c.path, name+".npy"))
	if err != nil {
		return nil, err
	}
	if f.Names != nil {
		return nil, fmt.Errorf("data: %s is an archive, named as an array: name it .npz, and give it as path", f.Path)
	}
	a, err := f.Array("")
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	a.Name = name
	return a, nil
}

// choose returns the names of training rows, their classes, test rows and their classes; the last two may be empty.
func (c *container) choose(a Arrays) (names [4]string, err error) {
	given := [4]string{a.X, a.Y, a.TestX, a.TestY}
	if given != [4]string{} {
		if a.X == "" || a.Y == "" || (a.TestX == "") != (a.TestY == "") {
			return names, fmt.Errorf("data: arrays has x %q, y %q, test_x %q and test_y %q: name x and y, and both of the test rows or none",
				a.X, a.Y, a.TestX, a.TestY)
		}
		return given, nil
	}
	var fit [][4]string
	for _, usual := range usualArrays {
		if slices.Contains(c.names, usual[0]) && slices.Contains(c.names, usual[1]) {
			x, y := slices.Contains(c.names, usual[2]), slices.Contains(c.names, usual[3])
			if x != y {
				return names, fmt.Errorf("data: %s has only one of %s and %s; it has %s: name all arrays, as in arrays: {x: %s, y: %s, test_x: ..., "+
					"test_y: ...}", c.path, usual[2], usual[3], classes.List(c.names), usual[0], usual[1])
			}
			if !x {
				usual[2], usual[3] = "", ""
			}
			fit = append(fit, usual)
		}
	}
	if len(fit) != 1 {
		why := "none of the usual pairs of names, such as x_train and y_train"
		if len(fit) > 1 {
			why = fmt.Sprintf("both %s and %s", strings.Join(fit[0][:2], ", "), strings.Join(fit[1][:2], ", "))
		}
		return names, fmt.Errorf("data: %s has %s; it has %s: name the arrays, as in arrays: {x: %s, y: ...}", c.path, why, classes.List(c.names),
			append(c.names, "...")[0])
	}
	return fit[0], nil
}

func loadNPY(s Spec, in *files.Reading) (*Set, error) {
	c, err := openContainer(s.Path, in)
	if err != nil {
		return nil, err
	}
	names, err := c.choose(s.Binary.Arrays)
	if err != nil {
		return nil, err
	}
	train, err := c.table(names[0], names[1], s)
	if err != nil {
		return nil, err
	}
	test := &arrays{image: train.image, width: train.width}
	if names[2] != "" {
		if test, err = c.table(names[2], names[3], s); err != nil {
			return nil, err
		}
		if test.x.Type != train.x.Type {
			return nil, fmt.Errorf("data: %s: %s is of %s, and %s of %s: save both as one type, or they may be scaled by different factors",
				s.Path, names[0], train.x.Type, names[2], test.x.Type)
		}
		if test.width != train.width || test.image != train.image {
			return nil, fmt.Errorf("data: %s: rows of %s have the shape %v, those of %s %v", s.Path, names[0], train.x.Shape[1:],
				names[2], test.x.Shape[1:])
		}
	}
	set := &Set{Train: train, Test: test, Image: train.image}
	if !s.Regress.On {
		if set.Classes, err = classes.From0(in, s.Path, train.y, test.y, s.Classes); err != nil {
			return nil, err
		}
	}
	c.say(train, names, s.Split.Test > 0)
	if s.Split.Test > 0 { // the numbers of classes do not depend on the split
		if names[2] != "" {
			return nil, fmt.Errorf("data: %s has test rows, %s: leave out data.split, or name the training rows alone, as in arrays: {x: %s, y: %s}",
				s.Path, names[2], names[0], names[1])
		}
		if set.Test, err = train.split(s, in); err != nil {
			return nil, err
		}
	}
	if train.x.Bytes()/int64(train.x.Rows()) <= scatteredMax {
		for _, f := range c.files {
			f.Scattered()
		}
	}
	return set, nil
}

// scatteredMax is the size of a row in bytes above which reading ahead of it helps.
const scatteredMax = 16 << 10

// table makes a table of an array of rows and one of their classes.
func (c *container) table(xName, yName string, s Spec) (*arrays, error) {
	x, err := c.array(xName)
	if err != nil {
		return nil, err
	}
	y, err := c.array(yName)
	if err != nil {
		return nil, err
	}
	if x.Rows() == 0 && len(x.Shape) > 0 {
		return nil, fmt.Errorf("data: %s: %s has no rows; without test rows, leave out both test arrays", c.path, xName)
	}
	if len(x.Shape) < 2 || x.Width() == 0 {
		return nil, fmt.Errorf("data: %s: %s has the shape %v: rows x features, or rows x an image, is wanted", c.path, xName, x.Shape)
	}
	if x.Rows() != y.Rows() {
		return nil, fmt.Errorf("data: %s: %s has %d rows, and %s has %d", c.path, xName, x.Rows(), yName, y.Rows())
	}
	if y.Elements() != y.Rows() && s.Regress.On {
		return nil, fmt.Errorf("data: %s: %s has the shape %v: one target a row is wanted; save y[:, 0]", c.path, yName, y.Shape)
	}
	if y.Elements() != y.Rows() {
		return nil, fmt.Errorf("data: %s: %s has the shape %v: one class a row is wanted; of one-hot rows, save y.argmax(1)",
			c.path, yName, y.Shape)
	}
	if x.Rows() > rowsMost || x.Width() > rowsMost {
		return nil, fmt.Errorf("data: %s: %s has the shape %v, at most %d rows and as many features", c.path, xName, x.Shape, rowsMost)
	}
	t := &arrays{name: c.path + ": " + xName, x: x, width: x.Width()}
	if err := t.setImage(s.Binary.Arrays.Channels); err != nil {
		return nil, err
	}
	t.setScale(s.Scale)
	if err := c.in.Take(&files.Source{Path: c.path}, int64(x.Rows())*valueBytes); err != nil {
		return nil, err
	}
	t.y = make([]int32, x.Rows())
	if s.Regress.On {
		return t, t.readTargets(yName, y)
	}
	return t, t.readClasses(yName, y)
}

// rowsMost bounds rows and features, whose numbers are int32.
const rowsMost = 1<<31 - 1

// arrays is a table of mapped arrays.
type arrays struct {
	name   string
	x      *numpy.Array
	y      []int32
	pick   []int32 // of each row, its number in x; nil: they are those of x
	isPart bool    // x is the array of another table, which counts it
	width  int     // values of a row
	image  Image   // zero: rows are not images
	last   bool    // channels are the last dimension in the file
	bytes  *[256]float32
	divide float64 // 0: by nothing
	fault  atomic.Pointer[error]
}

func (t *arrays) Rows() int { return len(t.y) }

func (t *arrays) Cols() int { return t.width }

// at is the number of a row in x.
func (t *arrays) at(row int32) int {
	if t.pick != nil {
		return int(t.pick[row])
	}
	return int(row)
}

func (t *arrays) label(row int) int32 { return t.y[row] }

// holds counts classes alone, and what was unpacked: the pages of a mapped file belong to the system, which takes them back when it needs
// them.
func (t *arrays) holds() (own, common int64) {
	own = valueBytes * int64(len(t.y)+len(t.pick))
	if t.x != nil && !t.x.IsMapped() && !t.isPart {
		own += t.x.Bytes()
	}
	return own, 0
}

// mapped is how many bytes of the file the rows are.
func (t *arrays) mapped() int64 {
	if t.x != nil && t.x.IsMapped() && !t.isPart {
		return t.x.Bytes()
	}
	return 0
}

func (t *arrays) pages(rows []int32, part func(b []byte)) {
	if !t.x.IsMapped() {
		return
	}
	for _, r := range rows {
		part(t.x.Raw(t.at(r)*t.width, t.width))
	}
}

func (t *arrays) failure() error {
	if err := t.fault.Load(); err != nil {
		return *err
	}
	return nil
}

func (t *arrays) Fill(x []float32, y []int32, rows []int32) {
	err := mapped.Guard(func() { t.fill(x, rows) })
	if err != nil {
		err = fmt.Errorf("data: %s: %w", t.name, err)
		t.fault.CompareAndSwap(nil, &err)
	}
	for i, r := range rows {
		y[i] = t.y[r]
	}
}

// byteValues are those of arrays of uint8.
func (t *arrays) byteValues() [][256]float32 {
	switch {
	case t.x == nil || t.x.Type != (numpy.Type{Kind: 'u', Size: 1}):
		return nil
	case t.bytes != nil:
		return [][256]float32{*t.bytes}
	}
	return [][256]float32{images.ByteValues(1, 0, 1)}
}

// raw are the bytes of a row, with channels in front.
func (t *arrays) raw(row int) (bytes []byte) {
	bytes = make([]byte, t.width)
	err := mapped.Guard(func() {
		from := t.x.Raw(t.at(int32(row))*t.width, t.width)
		if !t.last {
			copy(bytes, from)
			return
		}
		size := t.image.Height * t.image.Width
		for p := range size {
			for channel := range t.image.Channels {
				bytes[channel*size+p] = from[p*t.image.Channels+channel]
			}
		}
	})
	if err != nil {
		err = fmt.Errorf("data: %s: %w", t.name, err)
		t.fault.CompareAndSwap(nil, &err)
	}
	return bytes
}

func (t *arrays) fill(x []float32, rows []int32) {
	var planes []float32
	if t.last {
		planes = make([]float32, t.width)
	}
	for i, r := range rows {
		row := x[i*t.width : (i+1)*t.width]
		t.x.Floats(row, t.at(r)*t.width)
		switch {
		case t.bytes != nil:
			for j, v := range row {
				row[j] = t.bytes[uint8(v)]
			}
		case t.divide > 0:
			for j, v := range row {
				row[j] = float32(float64(v) / t.divide)
			}
		}
		if t.last {
			size := t.image.Height * t.image.Width
			for p := range size {
				for channel := range t.image.Channels {
					planes[channel*size+p] = row[p*t.image.Channels+channel]
				}
			}
			copy(row, planes)
		}
	}
}
