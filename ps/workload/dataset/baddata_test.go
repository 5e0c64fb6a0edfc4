package dataset

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every bad input names the file, the place, the value, and what to do.
func TestBadFiles(t *testing.T) {
	cut := func(s string) string { return s[:len(s)-1] }
	packed := string(gzipped([]byte(strings.Repeat("1,2,0\n", 100))))
	for _, c := range []struct {
		name  string
		spec  Spec              // paths are relative to the folder
		files map[string]string // replace files of a good folder of idx and cifar10; "": the file is removed
		want  []string
	}{
		{"idx: missing", Spec{Set: "idx"}, map[string]string{"t10k-labels-idx1-ubyte": ""},
			[]string{"t10k-labels-idx1-ubyte does not exist", "apt-get install dataset-fashion-mnist"}},
		{"idx: empty", Spec{Set: "idx"}, map[string]string{"t10k-labels-idx1-ubyte": " "},
			[]string{"t10k-labels-idx1-ubyte: 1 bytes", "fetch it again"}},
		{"idx: swapped", Spec{Set: "idx"}, map[string]string{"t10k-labels-idx1-ubyte": idx(0x803, []uint32{1, 1, 1}, 1)},
			[]string{"t10k-labels-idx1-ubyte", "offset 0 is 0x00000803, want 0x00000801", "swapped"}},
		{"idx: short header", Spec{Set: "idx"}, map[string]string{"train-images-idx3-ubyte": idx(0x803, nil)},
			[]string{"4 bytes", "3 dimensions has at least 16"}},
		{"idx: cut", Spec{Set: "idx"}, map[string]string{"train-images-idx3-ubyte": cut(idxFiles()["train-images-idx3-ubyte"])},
			[]string{"train-images-idx3-ubyte", "[3 1 2]", "promise 6 bytes", "the file has 5"}},
		{"idx: too long", Spec{Set: "idx"}, map[string]string{"train-images-idx3-ubyte": idxFiles()["train-images-idx3-ubyte"] + "x"},
			[]string{"promise 6 bytes", "the file has 7"}},
		{"idx: huge", Spec{Set: "idx"}, map[string]string{"train-images-idx3-ubyte": idx(0x803, []uint32{1 << 31, 1 << 31, 1 << 31})},
			[]string{"dimension 1 at offset 8 is 2147483648"}},
		{"idx: no images", Spec{Set: "idx"}, map[string]string{"train-images-idx3-ubyte": idx(0x803, []uint32{0, 1, 2})},
			[]string{"dimension 0 at offset 4 is 0", "empty"}},
		{"idx: counts", Spec{Set: "idx"}, map[string]string{"train-labels-idx1-ubyte.gz": idx(0x801, []uint32{2}, 0, 1)},
			[]string{"has 3 images", "train-labels-idx1-ubyte has 2 labels"}},
		{"idx: label", Spec{Set: "idx", Classes: 2}, nil,
			[]string{"train-labels-idx1-ubyte", "label of row 0 at offset 8 is 2, must be 0 to 1"}},
		{"idx: sizes", Spec{Set: "idx"}, map[string]string{"t10k-images.idx3-ubyte": idx(0x803, []uint32{1, 1, 3}, 1, 2, 3)},
			[]string{"training images have 1 x 2 pixels, test images 1 x 3"}},
		{"idx: normalized and scaled", Spec{Set: "idx", Normalize: true, Scale: 255}, nil,
			[]string{"scale is 255, but normalize would undo it", "leave out one of the two"}},
		{"idx: too many rows", Spec{Set: "idx", Rows: 4}, nil, []string{"rows is 4, but the files have 3"}},

		{"cifar10: missing", Spec{Set: "cifar10"}, map[string]string{"data_batch_3.bin.gz": ""},
			[]string{"data_batch_3.bin does not exist", "binary version"}},
		{"cifar10: cut", Spec{Set: "cifar10"}, map[string]string{"test_batch.bin": cut(cifarRecordOf(0, 1))},
			[]string{"test_batch.bin: 3072 unpacked bytes", "records of 3073"}},
		{"cifar10: label", Spec{Set: "cifar10"}, map[string]string{"test_batch.bin": cifarRecordOf(0, 1) + cifarRecordOf(10, 1)},
			[]string{"test_batch.bin", "label of row 1 at offset 3073 is 10, must be 0 to 9"}},

		{"csv: missing", Spec{Set: "csv", Path: "a"}, nil, []string{"a does not exist, nor does", "check path"}},
		{"csv: folder", Spec{Set: "csv", Path: "."}, nil, []string{"is a folder, want a file"}},
		{"csv: empty", Spec{Set: "csv", Path: "a"}, map[string]string{"a": "\n\n"}, []string{"a: no rows"}},
		{"csv: ragged", Spec{Set: "csv", Path: "a"}, map[string]string{"a": "1,2,0\n1,0\n"},
			[]string{"a:2: 2 values, want 3 (2 features and the class)"}},
		{"csv: one column", Spec{Set: "csv", Path: "a"}, map[string]string{"a": "1\n"}, []string{"a:1: 1 values, want 2"}},
		{"csv: features", Spec{Set: "csv", Path: "a", Features: 3}, map[string]string{"a": "1,2,0\n"}, []string{"a:1: 3 values, want 4"}},
		{"csv: header", Spec{Set: "csv", Path: "a"}, map[string]string{"a": "x,y,0\n1,2,0\n"},
			[]string{`a:1:1: value "x" is not a number`, "header"}},
		{"csv: not a number", Spec{Set: "csv", Path: "a"}, map[string]string{"a": "1,2,0\n1, ,0\n"},
			[]string{`a:2:4: value "" is not a number`}},
		{"csv: infinite", Spec{Set: "csv", Path: "a"}, map[string]string{"a": "1e39,2,0\n"}, []string{`a:1:1: value "1e39" is not finite`}},
		{"csv: quote", Spec{Set: "csv", Path: "a"}, map[string]string{"a": "1,2\"2,0\n"},
			[]string{"a:1:", "quote", "numbers separated by commas"}},
		{"csv: label kind", Spec{Set: "csv", Path: "a"}, map[string]string{"a": "1,2,0.5\n"},
			[]string{`a:1:5: label "0.5" is not a whole number`}},
		{"csv: label range", Spec{Set: "csv", Path: "a", Classes: 2}, map[string]string{"a": "1,2,2\n"},
			[]string{"a:1:5: label 2 is out of range, must be 0 to 1"}},
		{"csv: label column", Spec{Set: "csv", Path: "a", Label: "3"}, map[string]string{"a": "1,2\n"},
			[]string{`data.label: there is no column 3: columns have the numbers 1 to 2`}},
		{"csv: test columns", Spec{Set: "csv", Path: "a", Test: "b"}, map[string]string{"a": "1,2,0\n", "b": "1,0\n"},
			[]string{"b:1: 2 values, want 3"}},
		{"csv: cut gzip", Spec{Set: "csv", Path: "a"}, map[string]string{"a": packed[:len(packed)-12]},
			[]string{"a: gzip data ends after", "cut short; fetch it again"}},
		{"csv: cut gzip header", Spec{Set: "csv", Path: "a"}, map[string]string{"a": packed[:5]},
			[]string{"a: gzip data ends after 0 unpacked bytes"}},
		{"csv: damaged gzip", Spec{Set: "csv", Path: "a"}, map[string]string{"a": packed[:len(packed)-8] + "12345678"},
			[]string{"a: after 600 unpacked bytes", "damaged"}},

		{"libsvm: empty", Spec{Set: "libsvm", Path: "a"}, map[string]string{"a": "\n"}, []string{"a: no rows"}},
		{"libsvm: label", Spec{Set: "libsvm", Path: "a"}, map[string]string{"a": "+1 1:1\nx 1:1\n"},
			[]string{`a:2: class "x" is no whole number, but those of the rows above are, such as "+1"`}},
		{"libsvm: label range", Spec{Set: "libsvm", Path: "a", Classes: 3}, map[string]string{"a": "-1 1:1\n"},
			[]string{"a:1: label -1 is out of range, must be 0 to 2"}},
		{"libsvm: other test labels", Spec{Set: "libsvm", Path: "a", Test: "b"},
			map[string]string{"a": "+1 1:1\n-1 1:1\n", "b": "1 1:1\n0 2:1\n"},
			[]string{"a: class 0 of test row 2 is none of the training rows, which have -1, 1"}},
		{"libsvm: other test labels from 0", Spec{Set: "libsvm", Path: "a", Test: "b"},
			map[string]string{"a": "0 1:1\n1 1:1\n", "b": "-1 1:1\n"},
			[]string{"a: class -1 of test row 1 is none of the training rows, which have 0, 1"}},
		{"libsvm: no colon", Spec{Set: "libsvm", Path: "a"}, map[string]string{"a": "1 2\n"}, []string{`a:1: "2" is not index:value`}},
		{"libsvm: value", Spec{Set: "libsvm", Path: "a"}, map[string]string{"a": "1 2:x\n"}, []string{`a:1: value "x" is not a number`}},
		{"libsvm: order", Spec{Set: "libsvm", Path: "a"}, map[string]string{"a": "1 2:1 2:1\n"},
			[]string{"a:1: index 2 occurs twice in a row"}},
		{"libsvm: index 0", Spec{Set: "libsvm", Path: "a", IndexBase: "1"}, map[string]string{"a": "1 0:1\n"},
			[]string{"a:1: index 0 is out of range, must be 1 to 16777216; if indices count from 0, set data.index_base: 0"}},
		{"libsvm: features", Spec{Set: "libsvm", Path: "a", Features: 3}, map[string]string{"a": "1 4:1\n"},
			[]string{"index 4 is out of range, must be 0 to 3, the number of features"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := goodFolder(t, c.files)
			for _, p := range []*string{&c.spec.Path, &c.spec.Test} {
				if *p != "" || p == &c.spec.Path {
					*p = filepath.Join(dir, *p)
				}
			}
			_, err := Load(c.spec)
			if err == nil {
				t.Fatal("accepted")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q\nwant %q in it", err, want)
				}
			}
		})
	}
}

// goodFolder holds small idx and cifar10 sets, changed by files.
func goodFolder(t *testing.T, files map[string]string) string {
	t.Helper()
	all := idxFiles()
	for name, content := range cifarFiles() {
		all[name] = content
	}
	for name, content := range files {
		all[name] = content
	}
	dir := write(t, all)
	for name, content := range files {
		if content == "" {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

func TestBadSpecs(t *testing.T) {
	for _, c := range []struct {
		spec Spec
		want string
	}{
		{Spec{Set: "mnist"}, "choose one of: idx, cifar10, csv, parquet, libsvm, npy, images, tokens, packed, generated, " +
			"generated_sparse, ratings, generated_ratings"},
		{Spec{Set: "idx"}, "set idx needs path"},
		{Spec{Set: "idx", Path: "x", Test: "y"}, "set idx does not take test; it takes: path rows test_rows classes scale"},
		{Spec{Set: "cifar10", Path: "x", Scale: 2}, "does not take scale"},
		{Spec{Set: "csv", Path: "x", Scale: -1}, "scale is -1"},
		{Spec{Set: "csv", Path: "x", Rows: -1}, "rows is -1"},
		{Spec{Set: "generated", Features: 2, Classes: 2}, "needs rows"},
		{Spec{Set: "generated", Rows: 2, Classes: 2}, "needs features"},
		{Spec{Set: "generated", Rows: 2, Features: 32, Classes: 2, Image: Image{Channels: 1, Height: 4, Width: 4}},
			"an image of 1 x 4 x 4 does not have features 32"},
		{Spec{Set: "generated", Rows: 2, Features: 4, Classes: 2, Image: Image{Channels: 1, Height: -2, Width: -2}},
			"an image of 1 x -2 x -2 does not have"},
		{Spec{Set: "csv", Path: "x", Image: Image{Channels: 1, Height: 2, Width: 2}}, "does not take image"},
		{Spec{Set: "generated", Rows: 2, Features: 2, Classes: 1}, "needs classes of at least 2, have 1"},
		{Spec{Set: "generated", Rows: 2, Features: 1 << 20, Classes: 1 << 20}, "for their product"},
		{Spec{Set: "generated", Path: "x", Rows: 2, Features: 2, Classes: 2}, "does not take path"},
	} {
		if _, err := Load(c.spec); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want %q in it", c.spec, err, c.want)
		}
	}
}
