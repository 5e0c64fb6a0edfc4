package numpy_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"fluentps/ps/workload/dataset/mapped"
	"fluentps/ps/workload/dataset/numpy"
	"fluentps/ps/workload/dataset/numpy/numpytest"
)

func plenty(int64) error { return nil }

// all are the arrays of a file.
func all(f *numpy.File, err error) (arrays []*numpy.Array, _ error) {
	if err != nil {
		return nil, err
	}
	names := f.Names
	if names == nil {
		names = []string{""}
	}
	for _, name := range names {
		a, err := f.Array(name)
		if err != nil {
			return nil, err
		}
		arrays = append(arrays, a)
	}
	return arrays, nil
}

func written(t testing.TB, name string, b []byte) string {
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// kinds are the element types that are read, each with numbers of Go, and what they are as float32.
func kinds(r *rapid.T, n int) (descr string, v any, want []float32) {
	descr = rapid.SampledFrom([]string{"b1", "?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"}).Draw(r, "type")
	bits := make([]uint64, n)
	for i := range bits {
		bits[i] = rapid.Uint64().Draw(r, "bits")
	}
	want = make([]float32, n)
	switch descr {
	case "b1", "?":
		out := make([]uint8, n)
		for i := range out {
			out[i] = uint8(bits[i] & 1)
			want[i] = float32(out[i])
		}
		return descr, out, want
	case "i1":
		return descr, numbers[int8](bits, want), want
	case "u1":
		return descr, numbers[uint8](bits, want), want
	case "i2":
		return descr, numbers[int16](bits, want), want
	case "u2":
		return descr, numbers[uint16](bits, want), want
	case "i4":
		return descr, numbers[int32](bits, want), want
	case "u4":
		return descr, numbers[uint32](bits, want), want
	case "i8":
		return descr, numbers[int64](bits, want), want
	case "u8":
		return descr, numbers[uint64](bits, want), want
	case "f4":
		out := make([]float32, n)
		for i := range out {
			out[i] = float32(int32(bits[i])) / 1024
			want[i] = out[i]
		}
		return descr, out, want
	}
	out := make([]float64, n)
	for i := range out {
		out[i] = float64(int64(bits[i])) / 1024
		want[i] = float32(out[i])
	}
	return descr, out, want
}

func numbers[T int8 | uint8 | int16 | uint16 | int32 | uint32 | int64 | uint64](bits []uint64, want []float32) []T {
	out := make([]T, len(bits))
	for i := range out {
		out[i] = T(bits[i])
		want[i] = float32(out[i])
	}
	return out
}

// What is written is read: each type, order of bytes, version and shape, alone or in an archive, stored or packed.
func TestWrittenArraysAreRead(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		shape := rapid.SliceOfN(rapid.IntRange(1, 5), 0, 4).Draw(r, "shape")
		n := 1
		for _, d := range shape {
			n *= d
		}
		descr, v, want := kinds(r, n)
		order, mark := binary.ByteOrder(binary.LittleEndian), "<"
		if rapid.Bool().Draw(r, "big") {
			order, mark = binary.BigEndian, ">"
		}
		version := rapid.SampledFrom([]byte{1, 2, 3}).Draw(r, "version")
		file := numpytest.File(version, mark+descr, false, shape, numpytest.Bytes(order, v))
		in := rapid.SampledFrom([]string{"alone", "stored", "packed"}).Draw(r, "in")
		if in != "alone" {
			other := numpytest.File(1, "<f4", false, []int{1}, numpytest.Float32s(7))
			file = numpytest.Archive(t, in == "packed", numpytest.Entry{Name: "other", File: other}, numpytest.Entry{Name: "it", File: file})
		}
		arrays, err := all(numpy.Open(written(t, "a", file), plenty))
		if err != nil {
			r.Fatal(err)
		}
		a := arrays[len(arrays)-1]
		got := make([]float32, n)
		a.Floats(got, 0)
		if !slices.Equal(got, want) || !slices.Equal(a.Shape, shape) && len(shape) > 0 || a.IsMapped() != (in != "packed") {
			r.Fatalf("%s%s %v in %s: %v, want %v; shape %v, mapped %t", mark, descr, shape, in, got, want, a.Shape, a.IsMapped())
		}
		for i, x := range want {
			if v, ok := a.Whole(i); ok && math.Abs(float64(x)) < 1<<24 && float32(v) != x || ok != isWhole(a, i) {
				r.Fatalf("element %d of %s is %v, and as a whole number %v %t", i, descr, x, v, ok)
			}
		}
	})
}

// isWhole says the same as Whole by the element's own value.
func isWhole(a *numpy.Array, i int) bool {
	x := a.Float(i)
	if a.Type.Kind == 'f' {
		return x == math.Trunc(x) && math.Abs(x) <= 1<<53
	}
	return x < 1<<63
}

// Arrays in Fortran order are those of C order.
func TestFortranOrder(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		shape := rapid.SliceOfN(rapid.IntRange(1, 4), 2, 4).Draw(r, "shape")
		n := 1
		for _, d := range shape {
			n *= d
		}
		data, want := make([]float32, n), make([]float32, n)
		for at := range n { // the index of element at in C order
			rest, from, stride := at, 0, 1
			index := make([]int, len(shape))
			for d := len(shape) - 1; d >= 0; d-- {
				index[d], rest = rest%shape[d], rest/shape[d]
			}
			for d := range shape {
				from += index[d] * stride
				stride *= shape[d]
			}
			want[at] = float32(at)
			data[from] = float32(at)
		}
		asked := int64(0)
		f, err := all(numpy.Open(written(t, "f.npy", numpytest.File(1, "<f4", true, shape, numpytest.Float32s(data...))),
			func(bytes int64) error { asked += bytes; return nil }))
		if err != nil {
			r.Fatal(err)
		}
		got := make([]float32, n)
		f[0].Floats(got, 0)
		if !slices.Equal(got, want) || !f[0].Fortran || asked != int64(4*n) {
			r.Fatalf("%v, want %v, with %d bytes", got, want, asked)
		}
	})
}

// All 65,536 halves are what the definition of IEEE 754 says.
func TestHalves(t *testing.T) {
	data := make([]uint16, 1<<16)
	for i := range data {
		data[i] = uint16(i)
	}
	file := numpytest.File(1, "<f2", false, []int{1 << 16}, numpytest.Bytes(binary.LittleEndian, data))
	f, err := all(numpy.Open(written(t, "h.npy", file), plenty))
	if err != nil {
		t.Fatal(err)
	}
	got := make([]float32, len(data))
	f[0].Floats(got, 0)
	for i, x := range got {
		sign, e, m := 1.0, i>>10&31, float64(i&1023)
		if i >= 1<<15 {
			sign = -1
		}
		want := sign * math.Ldexp(1+m/1024, e-15)
		switch {
		case e == 0:
			want = sign * math.Ldexp(m/1024, -14)
		case e == 31 && m == 0:
			want = math.Inf(int(sign))
		case e == 31:
			want = math.NaN()
		}
		if float64(x) != want && !(math.IsNaN(want) && math.IsNaN(float64(x))) {
			t.Fatalf("half %#x is %v, want %v", i, x, want)
		}
	}
}

// What cannot be read is named, with a way out.
func TestRefusals(t *testing.T) {
	ones := numpytest.Float32s(1, 1, 1, 1)
	good := numpytest.File(1, "<f4", false, []int{2, 2}, ones)
	archive := numpytest.Archive(t, false, numpytest.Entry{Name: "x", File: good})
	for name, k := range map[string]struct {
		file []byte
		want string
	}{
		"empty":         {nil, "is empty"},
		"text":          {[]byte("1,2,3\n4,5,6\n"), "is it an .npy file?"},
		"gzip":          {[]byte("\x1f\x8b\x08 and more bytes"), "it is of gzip: unpack it with gunzip"},
		"hdf5":          {[]byte("\x89HDF\r\n\x1a\n and more"), "it is of HDF5: write it as .npy"},
		"pickle":        {[]byte("\x80\x04\x95 and more bytes"), "it can run code"},
		"version":       {numpytest.Raw(9, "{}", nil), "version 9 of the format"},
		"cut header":    {good[:40], "it is cut short"},
		"cut":           {good[:len(good)-1], "promises 16 bytes behind the header, and there are 15: it is cut short"},
		"longer":        {append(slices.Clone(good), 0), "were several arrays saved to one file?"},
		"lies":          {numpytest.File(1, "<f4", false, []int{1 << 40, 1 << 20}, ones), "more elements than any file"},
		"lies less":     {numpytest.File(1, "<f4", false, []int{1 << 30}, ones), "promises 4294967296 bytes"},
		"objects":       {numpytest.File(1, "|O", false, []int{1}, ones), "reading those would run code"},
		"texts":         {numpytest.File(1, "<U5", false, []int{1}, ones), "return_inverse=True"},
		"complex":       {numpytest.File(1, "<c8", false, []int{1}, ones), "complex numbers"},
		"long double":   {numpytest.File(1, "<f16", false, []int{1}, ones), `dtype "<f16" is not read`},
		"time":          {numpytest.File(1, "<M8[ns]", false, []int{1}, ones), "is not read"},
		"records":       {numpytest.Raw(1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", ones[:4]), "structured array"},
		"no dictionary": {numpytest.Raw(1, "import os", nil), "is not a dictionary"},
		"unknown key": {numpytest.Raw(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}", ones[:4]),
			`has the key "more"`},
		"lacks shape":    {numpytest.Raw(1, "{'descr': '<f4', 'fortran_order': False}", ones[:4]), "has not exactly"},
		"negative":       {numpytest.Raw(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", ones[:4]), "shape is not a tuple"},
		"archive cut":    {archive[:len(archive)-4], "it is damaged or cut short"},
		"other archive":  {[]byte(strings.ReplaceAll(string(archive), "x.npy", "x.txt")), "the archive has no .npy"},
		"bad in archive": {numpytest.Archive(t, true, numpytest.Entry{Name: "x", File: good[:60]}), "array x: "},
	} {
		f, err := all(numpy.Open(written(t, "file", k.file), plenty))
		if err == nil || !strings.Contains(err.Error(), k.want) {
			t.Errorf("%s: %v, want %q; %v", name, err, k.want, f)
		}
	}
	full := errors.New("full")
	packed := numpytest.Archive(t, true, numpytest.Entry{Name: "x", File: good})
	if _, err := all(numpy.Open(written(t, "x.npz", packed), func(int64) error { return full })); !errors.Is(err, full) {
		t.Errorf("without memory: %v", err)
	}
	twice := numpytest.Archive(t, false, numpytest.Entry{Name: "x", File: good}, numpytest.Entry{Name: "x", File: good})
	if _, err := numpy.Open(written(t, "x.npz", twice), plenty); err == nil || !strings.Contains(err.Error(), "two arrays x") {
		t.Errorf("two arrays of a name: %v", err)
	}
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := numpy.Open(fifo, plenty); err == nil || !strings.Contains(err.Error(), "is not a file") {
		t.Errorf("a pipe: %v", err)
	}
	if _, err := numpy.Open(t.TempDir(), plenty); err == nil || !strings.Contains(err.Error(), "is not a file") {
		t.Errorf("a folder: %v", err)
	}
}

// A file that becomes shorter while it is in use is an error of who reads it, not the end of the process.
func TestAFileThatBecomesShorter(t *testing.T) {
	path := written(t, "x.npy", numpytest.File(1, "<f4", false, []int{1 << 16}, make([]byte, 4<<16)))
	f, err := numpy.Open(path, plenty)
	if err != nil {
		t.Fatal(err)
	}
	a, err := f.Array("")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 4096); err != nil {
		t.Fatal(err)
	}
	x := make([]float32, 8)
	err = mapped.Guard(func() { a.Floats(x, 1<<16-8) })
	if err == nil || !strings.Contains(err.Error(), "made shorter while it is in use") {
		t.Errorf("got %v", err)
	}
	if _, err = f.Sum(); err == nil {
		t.Error("the sum of pages that are gone")
	}
	defer func() {
		if recover() == nil {
			t.Error("a nil pointer is taken for a page that is gone")
		}
	}()
	var none *numpy.Array
	_ = mapped.Guard(func() { none.Floats(x, 0) })
}

// The sum is that of the size and of blocks: of a small file, of all of it.
func TestSum(t *testing.T) {
	sum := func(b []byte) string {
		f, err := numpy.Open(written(t, "x.npy", b), plenty)
		if err != nil {
			t.Fatal(err)
		}
		s, err := f.Sum()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	data := make([]byte, 4*500)
	before := sum(numpytest.File(1, "<f4", false, []int{500}, data))
	for at := 3; at < len(data); at += 99 {
		changed := slices.Clone(data)
		changed[at]++
		if sum(numpytest.File(1, "<f4", false, []int{500}, changed)) == before {
			t.Errorf("a changed byte %d is not seen", at)
		}
	}
	if sum(numpytest.File(1, "<f4", false, []int{500}, data)) != before {
		t.Error("the sum is not that of the content")
	}
}

// Files that NumPy itself writes are read, element by element.
func TestFilesOfNumPy(t *testing.T) {
	python := "/usr/bin/python3"
	if exec.Command(python, "-c", "import numpy").Run() != nil {
		t.Skip("no NumPy for " + python + ": apt-get install python3-numpy")
	}
	dir := t.TempDir()
	out, err := exec.Command(python, "-c", `
import sys, numpy as np
d = sys.argv[1]
types = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 >i2 >u4 >f4 >f8".split()
for i, t in enumerate(types):
    a = (np.arange(24) % 7).astype(t).reshape(2, 3, 4)
    np.save(f"{d}/c{i}.npy", a)
    np.save(f"{d}/f{i}.npy", np.asfortranarray(a))
    np.savez(f"{d}/s{i}.npz", a=a, b=a[1:])
    np.savez_compressed(f"{d}/z{i}.npz", a=a, b=a[1:])
print(len(types))
`, dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	types := 0
	fmt.Sscan(string(out), &types)
	files, err := filepath.Glob(dir + "/*")
	if err != nil || len(files) != 4*types || types < 16 {
		t.Fatalf("%d files of %d types: %v", len(files), types, err)
	}
	for _, path := range files {
		arrays, err := all(numpy.Open(path, plenty))
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		for i, a := range arrays {
			got := make([]float32, a.Elements())
			a.Floats(got, 0)
			for k, x := range got {
				want := float32((k + 12*i) % 7)
				if a.Type.Kind == 'b' {
					want = min(want, 1)
				}
				if x != want {
					t.Fatalf("%s, array %d, %s: element %d is %v, want %v", filepath.Base(path), i, a.Type, k, x, want)
				}
			}
		}
	}
}

// mutated changes, removes or adds some bytes.
func mutated(b []byte, r *rand.Rand) []byte {
	b = slices.Clone(b)
	for range 1 + r.IntN(4) {
		at := r.IntN(len(b))
		switch r.IntN(4) {
		case 0:
			b[at] ^= 1 << r.IntN(8)
		case 1:
			b[at] = byte(r.Uint32())
		case 2:
			b = slices.Delete(b, at, min(len(b), at+1+r.IntN(8)))
		default:
			b = slices.Insert(b, at, byte(r.Uint32()))
		}
		if len(b) == 0 {
			return []byte{0}
		}
	}
	return b
}

// Damaged files are read, or refused: they end nothing, and ask for no more memory than the format allows.
func TestMutatedFiles(t *testing.T) {
	file := numpytest.File(1, "<f4", false, []int{3, 5}, make([]byte, 60))
	fortran := numpytest.File(2, ">u2", true, []int{3, 5}, make([]byte, 30))
	entries := []numpytest.Entry{{Name: "x", File: file}, {Name: "y", File: fortran}}
	kinds := [][]byte{file, fortran, numpytest.Archive(t, false, entries...), numpytest.Archive(t, true, entries...)}
	r := rand.New(rand.NewPCG(1, 2))
	path := filepath.Join(t.TempDir(), "file")
	read := 0
	for i := range 4000 {
		b := mutated(kinds[i%len(kinds)], r)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		asked := int64(0)
		f, err := numpy.Open(path, func(n int64) error { asked += n; return nil })
		arrays, err := all(f, err)
		if most := int64(1100 * len(b)); asked > most {
			t.Fatalf("%d bytes for a file of %d", asked, len(b))
		}
		if err != nil {
			continue
		}
		read++
		for _, a := range arrays {
			x := make([]float32, a.Elements())
			a.Floats(x, 0)
		}
		if _, err := f.Sum(); err != nil {
			t.Fatal(err)
		}
	}
	if read < 100 || read > 3900 {
		t.Errorf("%d of 4000 files were read", read)
	}
}
