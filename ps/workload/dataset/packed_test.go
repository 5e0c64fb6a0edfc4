package dataset

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"fluentps/ps/workload/dataset/csv"
)

// packed writes the pack of a set, and loads it.
func packed(t testing.TB, set *Set, change func(s *Spec)) (*Set, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "set.fps")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows := 0
	if _, err := set.Pack(f, "test", func(done, all int) {
		if rows = done; all != set.Train.Rows()+set.Test.Rows() {
			t.Errorf("%d rows of %d", done, all)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if rows != set.Train.Rows()+set.Test.Rows() {
		t.Errorf("%d rows were reported", rows)
	}
	s := Spec{Set: packedSet, Path: path, Regress: Regression{On: set.Targets != Targets{}}}
	if change != nil {
		change(&s)
	}
	return Load(s)
}

// sameRows compares the rows of two tables to the bit, dense and sparse.
func sameRows(t *testing.T, name string, a, b *Set) {
	t.Helper()
	for part, tables := range map[string][2]Table{"train": {a.Train, b.Train}, "test": {a.Test, b.Test}} {
		n := tables[0].Rows()
		if tables[1].Rows() != n {
			t.Errorf("%s, %s: %d rows, want %d", name, part, tables[1].Rows(), n)
			continue
		}
		rows := make([]int32, n)
		for i := range rows {
			rows[i] = int32((i*7 + 3) % n)
		}
		for _, isSparse := range []bool{false, true} {
			if isSparse && a.Matrix != (Matrix{}) {
				continue
			}
			x, y := NewBatch(isSparse, a.Samples(), n), NewBatch(isSparse, b.Samples(), n)
			if err := x.Take(tables[0], rows); err != nil {
				t.Fatal(err)
			}
			if err := y.Take(tables[1], rows); err != nil {
				t.Fatalf("%s, %s: %v", name, part, err)
			}
			bits := func(v []float32) (all []uint32) {
				for _, f := range v {
					all = append(all, math.Float32bits(f))
				}
				return all
			}
			if !slices.Equal(bits(x.X), bits(y.X)) || !slices.Equal(x.Y, y.Y) || !slices.Equal(x.Entries.Index, y.Entries.Index) ||
				!slices.Equal(x.Entries.Start, y.Entries.Start) || !slices.Equal(bits(x.Entries.Value), bits(y.Entries.Value)) ||
				!slices.Equal(bits(x.Targets), bits(y.Targets)) {
				t.Errorf("%s, %s, sparse %v: other rows", name, part, isSparse)
			}
		}
	}
}

// packable are sets of every kind.
func packable(t *testing.T) map[string]*Set {
	dir := write(t, map[string]string{
		"a.csv": "age,city,buys\n31,Rome,yes\n44,Oslo,no\n27,Rome,yes\n50,Bern,no\n", "b.svm": "-1 1:0.5 7:2\n1 2:1\n1 \n-1 3:4\n",
		"r.csv": "user,item,rating\nann,x,3\nbob,y,4\nann,y,1\n", "p.csv": "1,2,10.5\n3,4,-2\n5,6,7\n",
	})
	all := map[string]*Set{}
	add := func(name string, s Spec) {
		t.Helper()
		if s.Path != "" {
			s.Path = filepath.Join(dir, s.Path)
		}
		set, err := Load(s)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all[name] = set
	}
	add("csv", Spec{Set: "csv", Path: "a.csv", CSV: csv.Options{Columns: "onehot city"}, Split: Split{Test: 0.25}})
	add("csv, entries", Spec{Set: "csv", Path: "a.csv", CSV: csv.Options{Columns: "onehot city\nonehot age"}, Label: "buys"})
	add("csv, groups", Spec{Set: "csv", Path: "a.csv", CSV: csv.Options{Group: "city"}, Split: Split{Test: 0.5, Seed: 4}})
	add("csv, groups of ages", Spec{Set: "csv", Path: "a.csv", Label: "buys", Split: Split{Test: 0.5},
		CSV: csv.Options{Group: "age", Columns: "onehot city"}})
	add("csv, targets", Spec{Set: "csv", Path: "p.csv", Regress: Regression{true, true}})
	add("libsvm", Spec{Set: "libsvm", Path: "b.svm", Split: Split{Test: 0.25}})
	add("ratings", Spec{Set: "ratings", Path: "r.csv", Split: Split{Test: 0.34}})
	add("generated", Spec{Set: "generated", Rows: 700, TestRows: 30, Features: 12, Classes: 3, Image: Image{Channels: 1, Height: 3, Width: 4}})
	add("generated, sparse", Spec{Set: "generated_sparse", Rows: 300, TestRows: 20, Features: 50, Nonzeros: 6})
	for name, files := range map[string]map[string]string{"idx": idxFiles(), "cifar10": cifarFiles()} {
		set, err := Load(Spec{Set: name, Path: write(t, files), Normalize: name == "idx"})
		if err != nil {
			t.Fatal(err)
		}
		all[name] = set
	}
	return all
}

// A pack has the rows of its set to the bit, and says the same of them; so does the pack of a pack.
func TestAPackIsItsSet(t *testing.T) {
	for name, set := range packable(t) {
		got, err := packed(t, set, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		sameRows(t, name, set, got)
		if got.Samples() != set.Samples() || !slices.Equal(got.ClassNames, set.ClassNames) || got.Targets != set.Targets ||
			!reflect.DeepEqual(got.Columns, set.Columns) || !slices.Equal(got.RowNames, set.RowNames) {
			t.Errorf("%s: %+v, want %+v", name, got, set)
		}
		if got.MappedBytes() == 0 || got.Bytes() > 256*4*3+4*int64(set.Train.Rows()+set.Test.Rows()) {
			t.Errorf("%s: %d bytes mapped, %d in memory", name, got.MappedBytes(), got.Bytes())
		}
		for part, tables := range map[string][2]Table{"train": {set.Train, got.Train}, "test": {set.Test, got.Test}} {
			if a, b := set.describe(tables[0]), got.describe(tables[1]); !reflect.DeepEqual(a, b) {
				t.Errorf("%s: %s is described as %+v, want %+v", name, part, b, a)
			}
		}
		again, err := packed(t, got, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		sameRows(t, name+" twice", set, again)
		for _, by := range map[bool][]string{true: {byRow, byColumn}, false: {byClass, "city"}}[set.Matrix != Matrix{}] {
			k := Skew{By: by}
			if set.Targets != (Targets{}) || by == "city" && name != "csv, groups" {
				continue
			}
			a, errA := set.Shares(k, 2, 1)
			b, errB := got.Shares(k, 2, 1)
			if fmt.Sprint(errA) != fmt.Sprint(errB) || !reflect.DeepEqual(a, b) {
				t.Errorf("%s: shares by class differ: %v, %v", name, errA, errB)
			}
		}
	}
}

// Pictures that are decoded one after the other while they are packed make the pack of those in memory, to the byte.
func TestPicturesArePackedAsAStream(t *testing.T) {
	files := map[string]string{}
	for i := range 300 {
		p := image.NewRGBA(image.Rect(0, 0, 5, 4))
		for k := range p.Pix {
			p.Pix[k] = uint8(i*k + i)
			if k%4 == 3 {
				p.Pix[k] = 255
			}
		}
		var b bytes.Buffer
		if err := png.Encode(&b, p); err != nil {
			t.Fatal(err)
		}
		files[fmt.Sprintf("%d.png", i)] = b.String()
		files["l.csv"] += fmt.Sprintf("%d.png,%d\n", i, i%3)
	}
	dir := write(t, files)
	for _, normalize := range []bool{false, true} {
		var sums []string
		for _, isStream := range []bool{false, true} {
			s := Spec{Set: "images", Path: filepath.Join(dir, "l.csv"), Split: Split{Test: 0.1}, Normalize: normalize}
			s.Pictures.Stream = isStream
			set, err := Load(s)
			if err != nil {
				t.Fatal(err)
			}
			if isStream && set.Bytes() > 300*60 {
				t.Errorf("%d bytes are in memory", set.Bytes())
			}
			got, err := packed(t, set, nil)
			if err != nil {
				t.Fatal(err)
			}
			sums = append(sums, got.Files[0].SHA256)
			if !isStream {
				sameRows(t, "pictures", set, got)
			}
		}
		if sums[0] != sums[1] {
			t.Errorf("normalize %v: the packs are %s and %s", normalize, sums[0], sums[1])
		}
	}
}

// Bytes stay bytes: a pack of images is about as large as they are.
func TestPacksKeepBytes(t *testing.T) {
	set, err := Load(Spec{Set: "cifar10", Path: write(t, cifarFiles())})
	if err != nil {
		t.Fatal(err)
	}
	got, err := packed(t, set, nil)
	if err != nil {
		t.Fatal(err)
	}
	n := int64(set.Train.Rows()+set.Test.Rows()) * 3 * 32 * 32
	if mapped := got.MappedBytes(); mapped != n {
		t.Errorf("%d bytes mapped of %d", mapped, n)
	}
}

// The hash of a pack's index names it: two packs of one set are the same data, and those of others are not. The name of the file is no
// matter.
func TestPacksAreNamedByTheirIndex(t *testing.T) {
	sums := map[string]bool{}
	for name, set := range packable(t) {
		a, err := packed(t, set, nil)
		if err != nil {
			t.Fatal(err)
		}
		b, err := packed(t, set, func(s *Spec) {
			moved := filepath.Join(t.TempDir(), "other.fps")
			if err := os.Rename(s.Path, moved); err != nil {
				t.Fatal(err)
			}
			s.Path = moved
		})
		if err != nil || a.SHA256() != b.SHA256() || sums[a.SHA256()] {
			t.Errorf("%s: %v, sums %s and %s", name, err, a.SHA256(), b.SHA256())
		}
		sums[a.SHA256()] = true
	}
}

// A block that is damaged is an error of the batch that first takes a row of it; a file that has become shorter as well.
func TestDamagedPacksFailTheBatch(t *testing.T) {
	set := packable(t)["generated"]
	var path string
	good, err := packed(t, set, func(s *Spec) { path = s.Path })
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[4096+4*12*5] ^= 1 // in row 5
	bad := filepath.Join(t.TempDir(), "bad.fps")
	if err := os.WriteFile(bad, b, 0o666); err != nil {
		t.Fatal(err)
	}
	damaged, err := Load(Spec{Set: packedSet, Path: bad})
	if err != nil {
		t.Fatal(err)
	}
	batch := NewBatch(false, damaged.Samples(), 1)
	if err := batch.Take(damaged.Train, []int32{5}); err == nil || !strings.Contains(err.Error(), "bad.fps: block 0 of section train/x") {
		t.Errorf("a damaged block: %v", err)
	}
	if _, err := described(Spec{Set: packedSet, Path: bad}); err == nil || !strings.Contains(err.Error(), "block 0 of section train/x") {
		t.Errorf("fluentps data finds nothing: %v", err)
	}
	if err := os.Truncate(path, 4096); err != nil {
		t.Fatal(err)
	}
	batch = NewBatch(false, good.Samples(), 1)
	if err := batch.Take(good.Train, []int32{600}); err == nil || !strings.Contains(err.Error(), "made shorter while it is in use") {
		t.Errorf("a file that was cut: %v", err)
	}
}

// Ratings whose places lie outside of the matrix fail the batch, and so the run: a model would read outside of its factors.
func TestPackedRatingsLieInTheMatrix(t *testing.T) {
	for _, place := range []float32{-1, 20, float32(math.NaN()), 1e9} {
		set := &Set{Name: "ratings", Train: &rowsTable{x: []float32{1, 2, 3, place, 1, 2}, y: make([]int32, 2), cols: 3},
			Test: &rowsTable{cols: 3}, Matrix: Matrix{Rows: 20, Columns: 5}}
		got, err := packed(t, set, nil)
		if err != nil {
			t.Fatal(err)
		}
		b := NewBatch(false, got.Samples(), 1)
		if err := b.Take(got.Train, []int32{0}); err != nil {
			t.Errorf("a good row: %v", err)
		}
		if err := b.Take(got.Train, []int32{1}); err == nil || !strings.Contains(err.Error(), "row 1 is of place") {
			t.Errorf("place %v: %v", place, err)
		}
	}
}

// What a pack says must fit its rows, and what the configuration says must fit the pack.
func TestPacksThatDoNotFit(t *testing.T) {
	all := packable(t)
	for _, c := range []struct {
		set    string
		change func(s *Spec)
		want   string
	}{
		{"csv, targets", func(s *Spec) { s.Regress.On = false }, "has targets, which are numbers to predict: set data.task: regress"},
		{"csv, targets", func(s *Spec) { s.Regress.Standardize = true }, "targets are as they were packed"},
		{"csv", func(s *Spec) { s.Regress.On = true }, "has no targets: leave out data.task"},
		{"csv", func(s *Spec) { s.Path += "x" }, "does not exist; fluentps data pack CONFIG --out"},
		{"csv", func(s *Spec) { s.Rows = 1000 }, "rows is 1000, but the files have 3"},
		{"csv", func(s *Spec) { s.Scale = 2 }, "set packed does not take scale"},
		{"idx", func(s *Spec) {
			b, _ := os.ReadFile(s.Path)
			os.WriteFile(s.Path, bytes.Replace(b, []byte("fpspack1"), []byte("hello fl"), 1), 0o666)
		}, "it is no pack: fluentps data pack"},
	} {
		if _, err := packed(t, all[c.set], c.change); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.set, err, c.want)
		}
	}
	for name, change := range map[string]func(s *Set){
		"targets": func(s *Set) { s.Targets, s.Classes = Targets{1e300, 1e300}, 0 },
		"classes": func(s *Set) { s.Classes = 1 }, "class": func(s *Set) { s.Classes = 2 }, "image": func(s *Set) { s.Image.Width = 9 },
	} {
		set := *all["generated"]
		change(&set)
		if _, err := packed(t, &set, nil); err == nil || !strings.Contains(err.Error(), "pack the set again") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// BenchmarkPacked gathers batches of rows of bytes and of float32, from a pack and from memory.
func BenchmarkPacked(b *testing.B) {
	const rows, size = 1 << 14, 64
	pictures := make([]byte, rows*32*32*3)
	for i := range pictures {
		pictures[i] = byte(i * i >> 5)
	}
	records := make([]byte, 0, rows*3073)
	for r := range rows {
		records = append(append(records, byte(r%10)), pictures[r*3072:][:3072]...)
	}
	files := map[string]string{"test_batch.bin": string(records[:3073])}
	for i := range 5 {
		files[fmt.Sprintf("data_batch_%d.bin", i+1)] = string(records[i*rows/5*3073:][:rows/5*3073])
	}
	asBytes, err := Load(Spec{Set: "cifar10", Path: write(b, files)})
	if err != nil {
		b.Fatal(err)
	}
	values := &rowsTable{x: make([]float32, rows*1024), y: make([]int32, rows), cols: 1024}
	for i := range values.x {
		values.x[i] = float32(i % 1000)
	}
	asFloats := &Set{Name: "csv", Train: values, Test: &rowsTable{cols: 1024}, Classes: 2}
	for name, set := range map[string]*Set{"bytes": asBytes, "floats": asFloats} {
		mapped, err := packed(b, set, nil)
		if err != nil {
			b.Fatal(err)
		}
		n := set.Train.Rows()
		all := make([]int32, n)
		for i := range all {
			all[i] = int32(i)
		}
		for where, table := range map[string]Table{"pack": mapped.Train, "memory": set.Train} {
			b.Run(name+"/"+where, func(b *testing.B) {
				batch, sampler := NewBatch(false, set.Samples(), size), NewSampler(all, size, 1, 0)
				var picked []int32
				for i := range b.N {
					picked = sampler.Batch(int64(i), picked)
					if err := batch.Take(table, picked); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "samples/s")
			})
		}
	}
}
