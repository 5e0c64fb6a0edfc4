package dataset_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fluentps/ps/workload/dataset"
	"fluentps/ps/workload/dataset/numpy/numpytest"
)

// archive writes an archive of arrays to a file.
func archive(t *testing.T, entries ...numpytest.Entry) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "set.npz")
	if err := os.WriteFile(path, numpytest.Archive(t, false, entries...), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func bytesOf(name string, shape []int, v ...uint8) numpytest.Entry {
	return numpytest.Entry{Name: name, File: numpytest.File(1, "|u1", false, shape, v)}
}

func counted(n, every int) []uint8 {
	v := make([]uint8, n)
	for i := range v {
		v[i] = uint8(i * 7 % every)
	}
	return v
}

// rowsOf are all values and classes of a table.
func rowsOf(t dataset.Table) (x []float32, y []int32) {
	rows := make([]int32, t.Rows())
	for i := range rows {
		rows[i] = int32(i)
	}
	x, y = make([]float32, len(rows)*t.Cols()), make([]int32, len(rows))
	t.Fill(x, y, rows)
	return x, y
}

func load(t *testing.T, s dataset.Spec) *dataset.Set {
	t.Helper()
	s.Set = "npy"
	set, err := dataset.Load(s)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// The images of an idx file and the same in an archive, as Keras has them, are the same rows to the bit.
func TestAnArchiveHasTheRowsOfIDX(t *testing.T) {
	dir := t.TempDir()
	const rows, height, width = 12, 5, 4
	pixels, classes := counted(rows*height*width, 256), counted(rows, 10)
	for _, part := range []string{"train", "t10k"} {
		images := append(numpytest.Bytes(binary.BigEndian, []uint32{0x803, rows, height, width}), pixels...)
		labels := append(numpytest.Bytes(binary.BigEndian, []uint32{0x801, rows}), classes...)
		for name, b := range map[string][]byte{part + "-images-idx3-ubyte": images, part + "-labels-idx1-ubyte": labels} {
			if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	want, err := dataset.Load(dataset.Spec{Set: "idx", Path: dir})
	if err != nil {
		t.Fatal(err)
	}
	shape := []int{rows, height, width}
	got := load(t, dataset.Spec{Path: archive(t, bytesOf("x_train", shape, pixels...), bytesOf("y_train", shape[:1], classes...),
		bytesOf("x_test", shape, pixels...), bytesOf("y_test", shape[:1], classes...))})
	for i, tables := range [][2]dataset.Table{{got.Train, want.Train}, {got.Test, want.Test}} {
		x, y := rowsOf(tables[0])
		wantX, wantY := rowsOf(tables[1])
		if !slices.Equal(x, wantX) || !slices.Equal(y, wantY) {
			t.Errorf("table %d has other rows", i)
		}
	}
	if got.Image != want.Image || got.Classes != want.Classes {
		t.Errorf("images %v, classes %d; want %v, %d", got.Image, got.Classes, want.Image, want.Classes)
	}
	if own := got.Bytes(); own >= int64(2*len(pixels)) {
		t.Errorf("%d bytes in memory: the pixels are mapped", own)
	}
}

// Images with the channels last are those with the channels first.
func TestChannels(t *testing.T) {
	const rows, height, width, channels = 3, 7, 5, 3
	first, last := counted(rows*channels*height*width, 251), make([]uint8, rows*channels*height*width)
	for r := range rows {
		for c := range channels {
			for p := range height * width {
				last[(r*height*width+p)*channels+c] = first[(r*channels+c)*height*width+p]
			}
		}
	}
	y := bytesOf("y", []int{rows}, 0, 1, 2)
	a := load(t, dataset.Spec{Path: archive(t, bytesOf("x", []int{rows, channels, height, width}, first...), y)})
	b := load(t, dataset.Spec{Path: archive(t, bytesOf("x", []int{rows, height, width, channels}, last...), y)})
	ax, _ := rowsOf(a.Train)
	bx, _ := rowsOf(b.Train)
	if want := (dataset.Image{Channels: channels, Height: height, Width: width}); !slices.Equal(ax, bx) || a.Image != want || b.Image != want {
		t.Errorf("images %v and %v, rows equal %t", a.Image, b.Image, slices.Equal(ax, bx))
	}
	both := archive(t, bytesOf("x", []int{2, 3, 5, 3}, counted(90, 9)...), bytesOf("y", []int{2}, 0, 1))
	_, err := dataset.Load(dataset.Spec{Set: "npy", Path: both})
	if err == nil || !strings.Contains(err.Error(), "arrays.channels: first or last") {
		t.Errorf("3 in front and behind: %v", err)
	}
	set := load(t, dataset.Spec{Path: both, Binary: dataset.Binary{Arrays: dataset.Arrays{Channels: "last"}}})
	if want := (dataset.Image{Channels: 3, Height: 3, Width: 5}); set.Image != want {
		t.Errorf("channels last: %v, want %v", set.Image, want)
	}
}

// Arrays have usual names, or those that the user gives; a folder has them as files.
func TestArraysByName(t *testing.T) {
	x, y := numpytest.File(1, "<f4", false, []int{2, 1}, numpytest.Float32s(1.5, -2)), numpytest.File(1, "<i8", false, []int{2},
		numpytest.Bytes(binary.LittleEndian, []int64{0, 1}))
	as := func(name string, file []byte) numpytest.Entry { return numpytest.Entry{Name: name, File: file} }
	for _, names := range [][]string{{"x_train", "y_train"}, {"X", "y"}, {"arr_0", "arr_1"}, {"data", "labels", "more"}} {
		entries := []numpytest.Entry{as(names[0], x), as(names[1], y)}
		if len(names) > 2 {
			entries = append(entries, as(names[2], x))
		}
		got, classes := rowsOf(load(t, dataset.Spec{Path: archive(t, entries...)}).Train)
		if !slices.Equal(got, []float32{1.5, -2}) || !slices.Equal(classes, []int32{0, 1}) {
			t.Errorf("%v: %v %v", names, got, classes)
		}
	}
	dir := t.TempDir()
	for name, b := range map[string][]byte{"rows": x, "names": y} {
		if err := os.WriteFile(filepath.Join(dir, name+".npy"), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	named := dataset.Arrays{X: "rows", Y: "names", TestX: "rows", TestY: "names"}
	set := load(t, dataset.Spec{Path: dir, Binary: dataset.Binary{Arrays: named}, Scale: 2})
	if got, _ := rowsOf(set.Test); !slices.Equal(got, []float32{0.75, -1}) {
		t.Errorf("a folder: %v", got)
	}
	named.TestX, named.TestY = "", ""
	if other := load(t, dataset.Spec{Path: dir, Binary: dataset.Binary{Arrays: named}}); other.SHA256() == set.SHA256() {
		t.Error("other arrays have the same sum")
	}
}

// Targets of arrays are numbers of any type, one a row, and finite in float32.
func TestTargetsOfArrays(t *testing.T) {
	x := numpytest.Entry{Name: "x", File: numpytest.File(1, "<f4", false, []int{4, 1}, numpytest.Float32s(1, 2, 3, 4))}
	targets := func(v ...float32) numpytest.Entry {
		return numpytest.Entry{Name: "y", File: numpytest.File(1, "<f4", false, []int{len(v), 1}, numpytest.Float32s(v...))}
	}
	for _, y := range []numpytest.Entry{targets(0, 200, 17, 3), bytesOf("y", []int{4}, 0, 200, 17, 3)} {
		set := load(t, dataset.Spec{Path: archive(t, x, y), Regress: dataset.Regression{On: true}})
		_, bits := rowsOf(set.Train)
		var got []float32
		for _, b := range bits {
			got = append(got, dataset.TargetOf(b))
		}
		if !slices.Equal(got, []float32{0, 200, 17, 3}) || set.Classes != 0 {
			t.Errorf("targets %v, %d classes", got, set.Classes)
		}
	}
	nan := float32(math.NaN())
	for want, path := range map[string]string{
		"target 1 of y is NaN: finite numbers up to 3.4028235e+38 are wanted": archive(t, x, targets(0, nan, 1, 2)),
		"y has the shape [4 2]: one target a row is wanted":                   archive(t, x, bytesOf("y", []int{4, 2}, 0, 1, 1, 0, 0, 1, 1, 0)),
	} {
		_, err := dataset.Load(dataset.Spec{Set: "npy", Path: path, Regress: dataset.Regression{On: true}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// Classes that do not begin with 0 are numbered in order, and that is said.
func TestClassesOfArrays(t *testing.T) {
	x := numpytest.Entry{Name: "x", File: numpytest.File(1, "<f4", false, []int{4, 1}, numpytest.Float32s(1, 2, 3, 4))}
	labels := func(v ...float32) numpytest.Entry {
		return numpytest.Entry{Name: "y", File: numpytest.File(1, "<f4", false, []int{len(v), 1}, numpytest.Float32s(v...))}
	}
	set := load(t, dataset.Spec{Path: archive(t, x, labels(-1, 5, 1, 5))})
	if _, y := rowsOf(set.Train); !slices.Equal(y, []int32{0, 2, 1, 2}) || set.Classes != 3 ||
		!strings.Contains(strings.Join(set.Found, "\n"), "classes are -1, 1, 5, and are numbered 0 to 2") {
		t.Errorf("classes %v of %d, found %q", y, set.Classes, set.Found)
	}
	set = load(t, dataset.Spec{Path: archive(t, x, labels(0, 3, 0, 3))})
	if !strings.Contains(strings.Join(set.Notes, "\n"), "the largest class is 3, but only 2 classes have training rows") || set.Classes != 4 {
		t.Errorf("%d classes, notes %q", set.Classes, set.Notes)
	}
	train := func(x, y numpytest.Entry) []numpytest.Entry {
		return []numpytest.Entry{renamed(x, "x_train"), renamed(y, "y_train")}
	}
	others := archive(t, renamed(x, "x_train"), renamed(labels(1, 2, 1, 2), "y_train"), renamed(x, "x_test"),
		renamed(labels(0, 1, 2, 1), "y_test"),
		numpytest.Entry{Name: "names", File: numpytest.File(1, "<U3", false, []int{1}, make([]byte, 12))})
	set = load(t, dataset.Spec{Path: others}) // classes of both parts count, and arrays that nobody asks for are not read
	if _, y := rowsOf(set.Train); !slices.Equal(y, []int32{1, 2, 1, 2}) || set.Classes != 3 {
		t.Errorf("classes %v of %d", y, set.Classes)
	}
	for want, path := range map[string]string{
		"class 1 of y is 0.5: whole numbers":   archive(t, x, labels(0, 0.5, 0, 1)),
		"has 4 rows, and y has 3":              archive(t, x, labels(0, 1, 0)),
		"has the shape [4 2]: one class a row": archive(t, x, bytesOf("y", []int{4, 2}, 0, 1, 1, 0, 0, 1, 1, 0)),
		`it has "x": name the arrays`:          archive(t, x),
		"has the shape [4]: rows x features":   archive(t, bytesOf("x", []int{4}, 1, 2, 3, 4), labels(0, 1, 0, 1)),
		"rows of 1 to 3 dimensions are read":   archive(t, bytesOf("x", []int{4, 1, 1, 1, 1}, 1, 2, 3, 4), labels(0, 1, 0, 1)),
		"both x, y and X, y":                   archive(t, x, bytesOf("X", []int{4, 1}, 1, 2, 3, 4), labels(0, 1, 0, 1)),
		"class 7 of test row 1 is none of": archive(t, append(train(x, labels(1, 2, 1, 2)), renamed(x, "x_test"),
			renamed(labels(7, 1, 1, 1), "y_test"))...),
		"does not exist; set npy needs an":     filepath.Join(t.TempDir(), "none.npz"),
		"has none of the usual pairs of names": t.TempDir(),
		"x_train is of float32, and x_test of ui": archive(t, append(train(x, labels(0, 1, 0, 1)), bytesOf("x_test", []int{1, 1}, 1),
			bytesOf("y_test", []int{1}, 0))...),
		"has only one of x_test and y_test; it ha": archive(t, append(train(x, labels(0, 1, 0, 1)), renamed(x, "x_test"))...),
		"x_test has no rows; without test rows, l": archive(t, append(train(x, labels(0, 1, 0, 1)), bytesOf("x_test", []int{0, 1}),
			bytesOf("y_test", []int{0}))...),
		"rows of x_train have the shape [1], tho": archive(t, append(train(x, labels(0, 1, 0, 1)), numpytest.Entry{Name: "x_test",
			File: numpytest.File(1, "<f4", false, []int{1, 2}, numpytest.Float32s(1, 2))}, bytesOf("y_test", []int{1}, 0))...),
	} {
		if _, err := dataset.Load(dataset.Spec{Set: "npy", Path: path}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// A split takes test rows of the same array, without a copy: each row is in one of both parts, with its class, as bytes and as values.
func TestASplitOfArrays(t *testing.T) {
	const rows, cols = 60, 3
	path := archive(t, bytesOf("x", []int{rows, cols}, counted(rows*cols, 180)...), bytesOf("y", []int{rows}, counted(rows, 5)...))
	whole, set := load(t, dataset.Spec{Path: path}), load(t, dataset.Spec{Path: path, Split: dataset.Split{Test: 0.25, Seed: 2}})
	if found := strings.Join(set.Found, "\n"); set.Train.Rows() != 45 || set.Test.Rows() != 15 || set.Classes != 5 ||
		!strings.Contains(found, "45 rows for training") {
		t.Fatalf("%d and %d rows of %d classes, %q", set.Train.Rows(), set.Test.Rows(), set.Classes, set.Found)
	}
	if set.MappedBytes() != whole.MappedBytes() || strings.Contains(strings.Join(set.Found, "\n"), "no test rows") {
		t.Errorf("%d bytes are mapped, and %d without a split; %q", set.MappedBytes(), whole.MappedBytes(), set.Found)
	}
	seen := map[string]int{}
	count := func(table dataset.Table, by int) {
		x, y := make([]float32, cols), make([]int32, 1)
		for r := range table.Rows() {
			table.Fill(x, y, []int32{int32(r)})
			seen[fmt.Sprint(x, y)] += by
		}
	}
	count(whole.Train, 1)
	count(set.Train, -1)
	count(set.Test, -1)
	for row, n := range seen {
		if n != 0 {
			t.Errorf("row %s is %d times too often in the whole", row, n)
		}
	}
	packedPath := filepath.Join(t.TempDir(), "set.fps")
	f, err := os.Create(packedPath)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := set.Pack(f, "test", func(int, int) {}); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	packed, err := dataset.Load(dataset.Spec{Set: "packed", Path: packedPath})
	if err != nil {
		t.Fatal(err)
	}
	count(packed.Train, 1)
	count(set.Train, -1)
	for row, n := range seen {
		if n != 0 {
			t.Errorf("row %s of the pack is another one (%d)", row, n)
		}
	}
	both := archive(t, bytesOf("x_train", []int{2, 1}, 1, 2), bytesOf("y_train", []int{2}, 0, 1), bytesOf("x_test", []int{1, 1}, 1),
		bytesOf("y_test", []int{1}, 0))
	if _, err := dataset.Load(dataset.Spec{Set: "npy", Path: both, Split: dataset.Split{Test: 0.5}}); err == nil ||
		!strings.Contains(err.Error(), "has test rows, x_test: leave out data.split, or name the training rows alone, as in arrays: {x: x") {
		t.Errorf("%v", err)
	}
}

func renamed(e numpytest.Entry, name string) numpytest.Entry {
	e.Name = name
	return e
}

// A file that becomes shorter while a run uses it is an error of the batch, with the name of the file.
func TestAMappedSetThatBecomesShorter(t *testing.T) {
	const rows, cols = 100, 4096
	path := archive(t, bytesOf("y", []int{rows}, counted(rows, 2)...), bytesOf("x", []int{rows, cols}, counted(rows*cols, 256)...))
	set := load(t, dataset.Spec{Path: path})
	b := dataset.NewBatch(false, set.Samples(), 2)
	if err := b.Take(set.Train, []int32{0, rows - 1}); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 8192); err != nil {
		t.Fatal(err)
	}
	err := b.Take(set.Train, []int32{0, rows - 1})
	if err == nil || !strings.Contains(err.Error(), path+": x: a page of the file cannot be read") {
		t.Errorf("got %v", err)
	}
}

// BenchmarkBatches gathers batches of rows of 4 KiB, 64 MiB in all: from memory, as the other sets have it, and mapped.
func BenchmarkBatches(b *testing.B) {
	const rows, cols, size = 1 << 14, 1 << 10, 64
	dir := b.TempDir()
	values := make([]float32, rows*cols)
	for i := range values {
		values[i] = float32(i % 1000)
	}
	for name, file := range map[string][]byte{"x": numpytest.File(1, "<f4", false, []int{rows, cols}, numpytest.Float32s(values...)),
		"y": numpytest.File(1, "|u1", false, []int{rows}, counted(rows, 10))} {
		if err := os.WriteFile(filepath.Join(dir, name+".npy"), file, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	mapped, err := dataset.Load(dataset.Spec{Set: "npy", Path: dir})
	if err != nil {
		b.Fatal(err)
	}
	for name, table := range map[string]dataset.Table{"mapped": mapped.Train, "memory": inMemory{values, cols}} {
		b.Run(name, func(b *testing.B) {
			batch := dataset.NewBatch(false, mapped.Samples(), size)
			sampler := dataset.NewSampler(allOf(rows), size, 1, 0)
			var picked []int32
			b.SetBytes(size * cols * 4)
			for i := range b.N {
				picked = sampler.Batch(int64(i), picked)
				if err := batch.Take(table, picked); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// inMemory is what a mapped table is compared with.
type inMemory struct {
	x    []float32
	cols int
}

func (m inMemory) Rows() int { return len(m.x) / m.cols }

func (m inMemory) Cols() int { return m.cols }

func (m inMemory) Fill(x []float32, y []int32, rows []int32) {
	for i, r := range rows {
		y[i] = 0
		copy(x[i*m.cols:(i+1)*m.cols], m.x[int(r)*m.cols:])
	}
}

func allOf(n int) []int32 {
	rows := make([]int32, n)
	for i := range rows {
		rows[i] = int32(i)
	}
	return rows
}
