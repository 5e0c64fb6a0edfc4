package params

import (
	"bytes"
	"io"
	"slices"
	"testing"
)

// checkInFile fails if an accepted tensor lies outside its file.
func checkInFile(t *testing.T, c *contents, size int64) {
	for name, e := range c.entries {
		if e.Name != name {
			t.Fatalf("%q is called %q", name, e.Name)
		}
		if f32 := e.dtype == safetensorsF32 || e.dtype == npyF32; f32 && (e.at < 0 || e.at > size || e.bytes() > size-e.at) {
			t.Fatalf("%q: %v at %d of %d bytes", name, e.Shape, e.at, size)
		}
		_ = e.verify(io.Discard)
	}
}

func fuzz(f *testing.F, form string) {
	m := small()
	f.Add(m.text(f, form, map[string]string{"model": "mlp"}))
	m.tensors[1].Shape = []int{2, 1, 1}
	f.Add(m.text(f, form, nil))
	f.Fuzz(func(t *testing.T, text []byte) {
		if c, err := open(bytes.NewReader(text), int64(len(text)), form); err == nil {
			checkInFile(t, c, int64(len(text)))
		}
	})
}

// FuzzSafetensors: a file is refused, or its tensors lie in it.
func FuzzSafetensors(f *testing.F) { fuzz(f, suffixSafetensors) }

// FuzzNPZ: a file is refused, or its arrays lie in it.
func FuzzNPZ(f *testing.F) { fuzz(f, suffixNPZ) }

// FuzzNPY: the header of an array is refused, or the header that we write for the same shape reads back equal.
func FuzzNPY(f *testing.F) {
	for _, shape := range [][]int{nil, {1}, {7}, {2, 3}, {1, 2, 3, 4}} {
		f.Add(npyHeader(shape))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		dtype, shape, n, err := readNPY(bytes.NewReader(text))
		if err != nil {
			return
		}
		if n > int64(len(text)) {
			t.Fatalf("%d bytes of %d", n, len(text))
		}
		again, other, _, err := readNPY(bytes.NewReader(npyHeader(shape)))
		if err != nil || again != npyF32 || !slices.Equal(shape, other) {
			t.Fatalf("%q %v is read as %q %v, %v", dtype, shape, again, other, err)
		}
	})
}
