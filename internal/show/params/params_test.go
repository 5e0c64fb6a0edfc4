package params

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"
)

// testModel is a list of tensors with their elements.
type testModel struct {
	tensors []Tensor
	values  [][]float32
}

func (m *testModel) put(w io.Writer, k int) error {
	return binary.Write(w, binary.LittleEndian, m.values[k])
}

// text is the file of the model in a format.
func (m *testModel) text(t interface{ Fatal(...any) }, form string, metadata map[string]string) []byte {
	var b bytes.Buffer
	var err error
	if form == suffixNPZ {
		err = writeNPZ(&b, m.tensors, m.put)
	} else {
		err = writeSafetensors(&b, m.tensors, metadata, m.put)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// small is a model of two parameters.
func small() *testModel {
	return &testModel{[]Tensor{{"fc1.weight", []int{2, 3}}, {"fc1.bias", []int{2}}}, [][]float32{{1, 2, 3, 4, 5, 6}, {-1, 0.5}}}
}

func drawModel(t *rapid.T) *testModel {
	m := &testModel{}
	names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z]{1,3}[0-9]{0,2}(\.[a-z"\\é ]{1,9})?`), 1, 6, rapid.ID).Draw(t, "names")
	for _, name := range names {
		tensor := Tensor{name, rapid.SliceOfN(rapid.IntRange(1, 5), 0, 4).Draw(t, "shape")}
		bits := rapid.SliceOfN(rapid.Uint32().Filter(func(b uint32) bool { return b>>23&0xff != 0xff }), int(tensor.bytes()/elemBytes), -1)
		values := make([]float32, tensor.bytes()/elemBytes)
		for i, b := range bits.Draw(t, "values")[:len(values)] {
			values[i] = math.Float32frombits(b)
		}
		m.tensors, m.values = append(m.tensors, tensor), append(m.values, values)
	}
	return m
}

func write(t interface{ Fatal(...any) }, dir, form string, text []byte) string {
	path := filepath.Join(dir, "model"+form)
	if err := os.WriteFile(path, text, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// A file reads back to the bit, in both formats, as a whole and in any parts, in any order of the model's parameters.
func TestFilesReadBack(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		m := drawModel(t)
		form := rapid.SampledFrom(Forms()).Draw(t, "form")
		path := write(t, dir, form, m.text(t, form, map[string]string{"model": "mlp"}))
		order := rapid.Permutation(indices(len(m.tensors))).Draw(t, "order")
		var model []Tensor
		for _, k := range order {
			model = append(model, m.tensors[k])
		}
		i, err := OpenInitial(path, model)
		if err != nil {
			t.Fatal(err)
		}
		defer i.Close()
		for at, k := range order {
			want := m.values[k]
			lo := rapid.IntRange(0, len(want)).Draw(t, "lo")
			hi := rapid.IntRange(lo, len(want)).Draw(t, "hi")
			for _, part := range [][2]int{{0, len(want)}, {lo, hi}} {
				got := make([]float32, part[1]-part[0])
				if err := i.Fill(got, at, part[0]); err != nil {
					t.Fatal(err)
				}
				if !slices.EqualFunc(got, want[part[0]:part[1]], func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }) {
					t.Fatalf("%s: %v, want %v", m.tensors[k].Name, got, want[part[0]:part[1]])
				}
			}
		}
	})
}

func indices(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// A file with a changed byte is refused, or its tensors are still those of the model, and finite.
func TestAChangedByteIsFoundOrHarmless(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		m := drawModel(t)
		form := rapid.SampledFrom(Forms()).Draw(t, "form")
		text := m.text(t, form, nil)
		at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
		text[at] ^= byte(rapid.IntRange(1, 255).Draw(t, "by"))
		if rapid.Bool().Draw(t, "cut") {
			text = text[:at]
		}
		i, err := OpenInitial(write(t, dir, form, text), m.tensors)
		if err != nil {
			return
		}
		defer i.Close()
		for k, want := range m.values {
			got := make([]float32, len(want))
			if err := i.Fill(got, k, 0); err != nil {
				t.Fatal(err)
			}
			for e, x := range got {
				if x-x != 0 {
					t.Fatalf("element %d of %s is %v", e, m.tensors[k].Name, x)
				}
			}
			if form == suffixNPZ && !slices.Equal(got, want) { // a zip has checksums
				t.Fatalf("%s: %v, want %v", m.tensors[k].Name, got, want)
			}
		}
	})
}

// Each error names the file, the tensor, what the tensor has and what the model needs.
func TestErrorsNameTheTensor(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m *testModel)
		form   string // "": both
		meta   map[string]string
		edit   func(text string) string
		want   string
	}{
		"missing": {change: func(m *testModel) { m.tensors[1].Name = "fc1.bia" }, want: "fc1.bias is missing: the model needs shape [2]"},
		"extra":   {change: func(m *testModel) { m.tensors[1].Name = "fc1.bia" }, want: `"fc1.bia", of shape [2], is not in the model`},
		"shape": {change: func(m *testModel) { m.tensors[0].Shape = []int{3, 2} },
			want: "fc1.weight has shape [3 2], but the model needs [2 3]"},
		"flat": {change: func(m *testModel) { m.tensors[0].Shape = []int{6} },
			want: "fc1.weight has shape [6], but the model needs [2 3]"},
		"NaN":       {change: func(m *testModel) { m.values[0][4] = float32(math.NaN()) }, want: `"fc1.weight": element 4 is NaN`},
		"infinite":  {change: func(m *testModel) { m.values[1][1] = float32(math.Inf(-1)) }, want: `"fc1.bias": element 1 is -Inf`},
		"optimizer": {change: func(m *testModel) { m.tensors[1].Name = "optimizer.velocity.fc1.weight" }, want: "export without --optimizer"},
		"float16": {form: suffixSafetensors,
			edit: func(s string) string { return strings.Replace(s, `"F32"`, `"F16"`, 1) },
			want: `fc1.weight has elements of type "F16", must be F32`},
		"float64": {form: suffixNPZ, edit: func(s string) string { return strings.Replace(s, "<f4", "<f8", 1) },
			want: `fc1.weight has elements of type "<f8", must be <f4`},
		"big endian": {form: suffixNPZ, edit: func(s string) string { return strings.Replace(s, "<f4", ">f4", 1) },
			want: `fc1.weight has elements of type ">f4", must be <f4`},
		"Fortran": {form: suffixNPZ, edit: func(s string) string { return strings.Replace(s, "False, ", "True,  ", 1) },
			want: "its elements are in Fortran order"},
		"version 2": {form: suffixNPZ,
			edit: func(s string) string { return strings.Replace(s, "NUMPY\x01", "NUMPY\x02", 1) }, want: "write it with numpy.savez"},
		"an element": {form: suffixNPZ,
			edit: func(s string) string { return strings.Replace(s, "\x00\x00\x80\x3f", "\x00\x00\x00\x3f", 1) }, want: "checksum error"},
		"another sum": {form: suffixSafetensors, meta: map[string]string{metaSHA256: "00"}, want: `but its header says "00": it is damaged`},
		"cut off":     {edit: func(s string) string { return s[:len(s)-1] }, want: "it was cut off"},
		"empty": {form: suffixSafetensors, edit: func(string) string { return "" },
			want: "it has 0 bytes, but the parameters of the model have 32"},
		"empty zip": {form: suffixNPZ, edit: func(string) string { return "" }, want: "it was cut off, or is not an npz"},
		"packed": {form: suffixNPZ, edit: func(string) string { return packed(t) },
			want: "it is compressed; write it with numpy.savez, not savez_compressed"},
		"a long name": {change: func(m *testModel) { m.tensors[1].Name = strings.Repeat("w", 60000) }, want: "bytes more"},
		"a text": {form: suffixSafetensors, edit: func(string) string { return strings.Repeat("words ", 20) },
			want: "it is damaged, or not safetensors"},
		"no zip": {form: suffixNPZ, edit: func(string) string { return strings.Repeat("words ", 20) },
			want: "it was cut off, or is not an npz"},
		"a hole": {form: suffixSafetensors,
			edit: func(s string) string { return strings.Replace(s, `[24,32]`, `[25,33]`, 1) },
			want: `"fc1.bias" lies at 25 to 33 of 32 bytes, must begin at 24`},
		"an overlap": {form: suffixSafetensors,
			edit: func(s string) string { return strings.Replace(s, `[24,32]`, `[20,32]`, 1) },
			want: `"fc1.bias" lies at 20 to 32 of 32 bytes, must begin at 24`},
		"a tail": {form: suffixSafetensors, edit: func(s string) string { return s + "more" },
			want: "its tensors have 32 bytes, but 36 follow the header"},
		"twice": {form: suffixSafetensors,
			edit: func(s string) string { return strings.Replace(s, `"fc1.bias":`, `"fc1.weight":`, 1) }, want: "it has \"fc1.weight\" twice"},
	} {
		for _, form := range Forms() {
			if c.form != "" && c.form != form {
				continue
			}
			t.Run(name+form, func(t *testing.T) {
				m, model := small(), small().tensors
				if c.change != nil {
					c.change(m)
				}
				text := string(m.text(t, form, c.meta))
				if c.edit != nil {
					text = c.edit(text)
				}
				if name == "twice" { // the header is as long as before
					text = strings.Replace(text, " ", "", 2)
				}
				path := write(t, t.TempDir(), form, []byte(text))
				i, err := OpenInitial(path, model)
				if err == nil {
					i.Close()
				}
				if err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > textMax+500 ||
					!strings.HasPrefix(err.Error(), "model.init: "+path+": ") {
					t.Errorf("%v, want %q", err, c.want)
				}
			})
		}
	}
}

// A path that is missing or not a regular file is refused at once.
func TestOnlyRegularFilesAreOpened(t *testing.T) {
	dir := t.TempDir()
	fifo, folder, none := filepath.Join(dir, "fifo.npz"), filepath.Join(dir, "folder.npz"), filepath.Join(dir, "none.npz")
	if err := syscall.Mkfifo(fifo, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{fifo: "is a FIFO, must be a regular file",
		folder: "is a folder, must be a regular file", none: "does not exist",
		filepath.Join(dir, "x.bin"): "does not end in .safetensors or .npz"} {
		if _, err := OpenInitial(path, small().tensors); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.HasPrefix(err.Error(), "model.init: ") {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A size that a file claims takes no memory: neither a long header, nor a long directory, nor a file that is mostly a hole.
func TestLongFilesAreRefused(t *testing.T) {
	dir := t.TempDir()
	sparse := filepath.Join(dir, "sparse.safetensors")
	head := binary.LittleEndian.AppendUint64(nil, headerMax+1)
	if err := os.WriteFile(sparse, head, 0o666); err != nil {
		t.Fatal(err)
	}
	for size, want := range map[int64]string{1 << 40: "it is of another model",
		sizeOver: fmt.Sprintf("its header has %d bytes, but the limit is %d", headerMax+1, headerMax)} {
		if err := os.Truncate(sparse, size); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenInitial(sparse, small().tensors); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d bytes: %v, want %q", size, err, want)
		}
	}
	m := &testModel{}
	for k := range 1 << 16 {
		m.tensors, m.values = append(m.tensors, Tensor{fmt.Sprintf("%0200d", k), []int{1}}), append(m.values, []float32{1})
	}
	path := write(t, dir, suffixNPZ, m.text(t, suffixNPZ, nil))
	if _, err := OpenInitial(path, []Tensor{{"a", []int{1 << 20}}}); err == nil ||
		!strings.Contains(err.Error(), "the directory of the zip has more than") {
		t.Error(err)
	}
}

// packed is a compressed npz that is smaller than the parameters of the model.
func packed(t *testing.T) string {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	f, err := z.CreateHeader(&zip.FileHeader{Name: "fc1.weight.npy", Method: zip.Deflate})
	if err == nil {
		_, err = f.Write(append(npyHeader([]int{2, 3}), make([]byte, 24)...))
	}
	if err = errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
