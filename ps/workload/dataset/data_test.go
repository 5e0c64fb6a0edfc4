package dataset

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// write makes a folder with files. It compresses those whose names end in .gz.
func write(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		b := []byte(content)
		if strings.HasSuffix(name, ".gz") {
			b = gzipped(b)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func gzipped(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(b)
	_ = w.Close()
	return out.Bytes()
}

func idx(magic uint32, dims []uint32, values ...byte) string {
	b := binary.BigEndian.AppendUint32(nil, magic)
	for _, d := range dims {
		b = binary.BigEndian.AppendUint32(b, d)
	}
	return string(append(b, values...))
}

func idxFiles() map[string]string {
	return map[string]string{
		"train-images-idx3-ubyte":    idx(0x803, []uint32{3, 1, 2}, 0, 255, 51, 102, 153, 204),
		"train-labels-idx1-ubyte.gz": idx(0x801, []uint32{3}, 2, 0, 1),
		"t10k-images.idx3-ubyte":     idx(0x803, []uint32{1, 1, 2}, 255, 0),
		"t10k-labels-idx1-ubyte":     idx(0x801, []uint32{1}, 1),
	}
}

func cifarFiles() map[string]string {
	files := map[string]string{}
	for i := 1; i <= 5; i++ {
		files[fmt.Sprintf("data_batch_%d.bin.gz", i)] = cifarRecordOf(byte(i), byte(10*i)) + cifarRecordOf(9, 255)
	}
	files["test_batch.bin"] = cifarRecordOf(0, 128)
	return files
}

func cifarRecordOf(label, value byte) string {
	return string(label) + strings.Repeat(string([]byte{value}), 3*32*32)
}

func rowsOf(t Table, rows ...int32) (x []float32, y []int32) {
	x, y = make([]float32, len(rows)*t.Cols()), make([]int32, len(rows))
	for i := range x {
		x[i] = float32(math.NaN())
	}
	t.Fill(x, y, rows)
	return x, y
}

func expect(t *testing.T, table Table, rows []int32, x []float32, y []int32) {
	t.Helper()
	gotX, gotY := rowsOf(table, rows...)
	if !slices.Equal(gotY, y) {
		t.Errorf("labels of rows %v are %v, want %v", rows, gotY, y)
	}
	if !slices.Equal(gotX, x) {
		t.Errorf("rows %v are %v, want %v", rows, gotX, x)
	}
}

func TestIDX(t *testing.T) {
	set, err := Load(Spec{Set: "idx", Path: write(t, idxFiles())})
	if err != nil {
		t.Fatal(err)
	}
	if set.Classes != 3 || set.Train.Rows() != 3 || set.Test.Rows() != 1 || set.Train.Cols() != 2 {
		t.Errorf("%d classes, %d and %d rows of %d", set.Classes, set.Train.Rows(), set.Test.Rows(), set.Train.Cols())
	}
	expect(t, set.Train, []int32{2, 0, 1}, []float32{0.6, 0.8, 0, 1, 0.2, 0.4}, []int32{1, 2, 0})
	expect(t, set.Test, []int32{0}, []float32{1, 0}, []int32{1})
	if (set.Image != Image{Channels: 1, Height: 1, Width: 2}) {
		t.Errorf("images are %+v", set.Image)
	}
	if f := set.Files[1]; f.Name != "train-labels-idx1-ubyte" || f.Bytes != 11 || !strings.HasSuffix(f.Path, "ubyte.gz") {
		t.Errorf("sum of the labels: %+v", f)
	}
}

// Training and test images are normalised with the mean and the standard deviation of the training images.
func TestIDXNormalized(t *testing.T) {
	set, err := Load(Spec{Set: "idx", Path: write(t, idxFiles()), Normalize: true})
	if err != nil {
		t.Fatal(err)
	}
	std := math.Sqrt((127.5*127.5 + 76.5*76.5 + 25.5*25.5) / 3) // of bytes around 127.5
	of := func(b float64) float32 { return float32((b - 127.5) / std) }
	expect(t, set.Train, []int32{0, 1, 2}, []float32{of(0), of(255), of(51), of(102), of(153), of(204)}, []int32{2, 0, 1})
	expect(t, set.Test, []int32{0}, []float32{of(255), of(0)}, []int32{1})
	plain, err := Load(Spec{Set: "idx", Path: set.spec.Path})
	if err != nil || plain.SHA256() == set.SHA256() {
		t.Errorf("the checksum without normalisation is the same, error %v", err)
	}

	files := idxFiles()
	files["train-images-idx3-ubyte"] = idx(0x803, []uint32{3, 1, 2}, 7, 7, 7, 7, 7, 7)
	if set, err = Load(Spec{Set: "idx", Path: write(t, files), Normalize: true}); err != nil {
		t.Fatal(err)
	}
	expect(t, set.Train, []int32{0}, []float32{0, 0}, []int32{2})
	expect(t, set.Test, []int32{0}, []float32{248, -7}, []int32{1})
}

func TestCIFAR10(t *testing.T) {
	set, err := Load(Spec{Set: "cifar10", Path: write(t, cifarFiles())})
	if err != nil {
		t.Fatal(err)
	}
	if set.Classes != 10 || set.Train.Rows() != 10 || set.Test.Rows() != 1 || set.Train.Cols() != 3072 {
		t.Errorf("%d classes, %d and %d rows of %d", set.Classes, set.Train.Rows(), set.Test.Rows(), set.Train.Cols())
	}
	if (set.Image != Image{Channels: 3, Height: 32, Width: 32}) {
		t.Errorf("images are %+v", set.Image)
	}
	x, y := rowsOf(set.Train, 4, 9)
	if !slices.Equal(y, []int32{3, 9}) {
		t.Errorf("labels %v, want 3 and 9", y)
	}
	for i, want := range map[int]float64{
		0: (30/255.0 - 0.4914) / 0.2470, 1023: (30/255.0 - 0.4914) / 0.2470, 1024: (30/255.0 - 0.4822) / 0.2435,
		3071: (30/255.0 - 0.4465) / 0.2616, 3072: (1 - 0.4914) / 0.2470,
	} {
		if math.Abs(float64(x[i])-want) > 1e-6 {
			t.Errorf("value %d is %g, want %g", i, x[i], want)
		}
	}
}

func TestCSV(t *testing.T) {
	dir := write(t, map[string]string{"a.tra.gz": "16,8,1\n\n 0, 4 ,2\r\n", "a.tes": "4,0,0", "first": "\xef\xbb\xbf1,4,8\n0,0,2\n"})
	set, err := Load(Spec{Set: "csv", Path: filepath.Join(dir, "a.tra"), Test: filepath.Join(dir, "a.tes"), Scale: 16})
	if err != nil {
		t.Fatal(err)
	}
	if set.Classes != 3 {
		t.Errorf("%d classes, want 3", set.Classes)
	}
	expect(t, set.Train, []int32{1, 0}, []float32{0, 0.25, 1, 0.5}, []int32{2, 1})
	expect(t, set.Test, []int32{0}, []float32{0.25, 0}, []int32{0})
	if set, err = Load(Spec{Set: "csv", Path: filepath.Join(dir, "first"), Label: "first", Rows: 1}); err != nil {
		t.Fatal(err)
	}
	expect(t, set.Train, []int32{0}, []float32{4, 8}, []int32{1})
	if set.Train.Rows() != 1 || set.Test.Rows() != 0 || set.Test.Cols() != 2 {
		t.Errorf("%d training rows, %d test rows of %d, want 1, 0, 2", set.Train.Rows(), set.Test.Rows(), set.Test.Cols())
	}
}

func TestLIBSVM(t *testing.T) {
	dir := write(t, map[string]string{"a": "\xef\xbb\xbf-1 1:2 4:0.5 \n+1 2:1 3:0\n\n-1\n", "a.t.gz": "+1 1:1\n", "multi": "3 2:1\n0 1:1\n"})
	set, err := Load(Spec{Set: "libsvm", Path: filepath.Join(dir, "a"), Test: filepath.Join(dir, "a.t")})
	if err != nil {
		t.Fatal(err)
	}
	if set.Classes != 2 || set.Train.Cols() != 4 || set.Test.Cols() != 4 {
		t.Errorf("%d classes, %d and %d columns", set.Classes, set.Train.Cols(), set.Test.Cols())
	}
	expect(t, set.Train, []int32{2, 0, 1}, []float32{0, 0, 0, 0, 2, 0, 0, 0.5, 0, 1, 0, 0}, []int32{0, 0, 1})
	expect(t, set.Test, []int32{0}, []float32{1, 0, 0, 0}, []int32{1})
	if n := len(set.Train.(*sparse).value); n != 3 {
		t.Errorf("%d entries kept, want 3", n)
	}
	if set, err = Load(Spec{Set: "libsvm", Path: filepath.Join(dir, "multi"), Features: 6, Scale: 2}); err != nil {
		t.Fatal(err)
	}
	expect(t, set.Train, []int32{0}, []float32{0, 0.5, 0, 0, 0, 0}, []int32{3})
	if set.Classes != 4 {
		t.Errorf("%d classes, want 4", set.Classes)
	}
}

func TestGenerated(t *testing.T) {
	spec := Spec{Set: "generated", Rows: 3000, TestRows: 1000, Classes: 5, Features: 21, Seed: 3}
	set, err := Load(spec)
	if err != nil {
		t.Fatal(err)
	}
	if (set.Image != Image{}) {
		t.Errorf("rows are images of %+v", set.Image)
	}
	again, _ := Load(spec)
	x, y := rowsOf(set.Train, 2999, 5)
	spec.Image = Image{Channels: 1, Height: 3, Width: 7} // the same rows, of another shape
	images, err := Load(spec)
	if err != nil || images.Image != spec.Image || images.SHA256() == set.SHA256() {
		t.Errorf("images of %+v: %v", images.Image, err)
	}
	expect(t, images.Train, []int32{2999, 5}, x, y)
	spec.Image = Image{}
	expect(t, again.Train, []int32{2999, 5}, x, y)
	spec.Rows = 2999 // the first test row is now the former last training row
	moved, _ := Load(spec)
	expect(t, moved.Test, []int32{0}, x[:21], y[:1])
	spec.Seed = 4
	other, _ := Load(spec)
	if otherX, _ := rowsOf(other.Train, 5); slices.Equal(otherX, x[21:]) {
		t.Error("another seed gives the same row")
	}

	// The nearest centre is the best possible guess: good, but not perfect.
	b := set.Train.(*blobs)
	right, counts := 0, make([]int, 5)
	var noise, squares float64
	for r := range b.Rows() {
		x, y := rowsOf(b, int32(r))
		best, bestD := 0, math.Inf(1)
		for c := range 5 {
			var d float64
			for j, v := range x {
				d += math.Pow(float64(v-b.centres[c*21+j]), 2)
			}
			if d < bestD {
				best, bestD = c, d
			}
		}
		for j, v := range x {
			e := float64(v - b.centres[int(y[0])*21+j])
			noise, squares = noise+e, squares+e*e
		}
		counts[y[0]]++
		if best == int(y[0]) {
			right++
		}
	}
	if accuracy := float64(right) / 3000; accuracy < 0.75 || accuracy > 0.995 {
		t.Errorf("the best guess is right for %g of the rows", accuracy)
	}
	n := float64(3000 * 21)
	if math.Abs(noise/n) > 0.02 || math.Abs(squares/n-1) > 0.03 {
		t.Errorf("noise has mean %g, variance %g, want 0 and 1", noise/n, squares/n)
	}
	if slices.Min(counts) < 450 || slices.Max(counts) > 750 {
		t.Errorf("classes have %v rows", counts)
	}
}

func TestDescribe(t *testing.T) {
	files := idxFiles()
	r, err := described(Spec{Set: "idx", Path: write(t, files)})
	if err != nil {
		t.Fatal(err)
	}
	if r.Train.Rows != 3 || !slices.Equal(r.Train.Counts, []int{1, 1, 1}) ||
		!slices.Equal(r.Test.Counts, []int{0, 1, 0}) || r.Cols != 2 || len(r.Files) != 4 {
		t.Errorf("report %+v", r)
	}
	// The checksum depends on content and settings, not on compression and folder.
	packed := map[string]string{}
	for name, content := range files {
		packed[strings.TrimSuffix(name, ".gz")+".gz"] = content
	}
	p, err := described(Spec{Set: "idx", Path: write(t, packed)})
	if err != nil || p.SHA256 != r.SHA256 || len(r.SHA256) != 64 {
		t.Errorf("packed: %s, plain: %s, error %v", p.SHA256, r.SHA256, err)
	}
	if s, _ := described(Spec{Set: "idx", Path: write(t, files), Scale: 2}); s.SHA256 == r.SHA256 {
		t.Error("another scale has the same sum")
	}
	files["t10k-images.idx3-ubyte"] = idx(0x803, []uint32{1, 1, 2}, 255, 1)
	if s, _ := described(Spec{Set: "idx", Path: write(t, files)}); s.SHA256 == r.SHA256 {
		t.Error("another pixel has the same sum")
	}
}

// fillAll reads every row of a table that a parser accepted: all values finite, labels in range.
func fillAll(t *testing.T, table Table, classes int) {
	t.Helper()
	for r := range table.Rows() {
		x, y := rowsOf(table, int32(r))
		for i, v := range x {
			if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
				t.Fatalf("row %d value %d is %g", r, i, v)
			}
		}
		if y[0] < 0 || int(y[0]) >= classes {
			t.Fatalf("row %d has label %d of %d classes", r, y[0], classes)
		}
	}
}

// described loads a set and describes it.
func described(s Spec) (Report, error) {
	set, err := Load(s)
	if err != nil {
		return Report{}, err
	}
	return set.Describe()
}
