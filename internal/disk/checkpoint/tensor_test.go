package checkpoint

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fluentps/internal/disk/durable"
)

// writeWithTensor writes a checkpoint of one file. Its vector 0 1 2 3 4 5 is a tensor in two ranges, the last two elements first.
func writeWithTensor(t *testing.T, change func(m *Manifest)) string {
	t.Helper()
	d, err := Begin(durable.Below(t.TempDir()), "7.1")
	if err != nil {
		t.Fatal(err)
	}
	e, err := WriteFile(d.In, ServerFile(0), 7, []float32{0, 1, 2, 3, 4, 5})
	if err != nil {
		t.Fatal(err)
	}
	at := e.Bytes - 6*elemBytes
	m := &Manifest{Servers: 1, Workers: 1, Starts: []int64{0}, Files: []Entry{e},
		Parameters: []Tensor{{Name: "fc1.weight", Shape: []int{2, 3}, DType: DType,
			Ranges: []Range{{e.Name, at + 4*elemBytes, 2 * elemBytes}, {e.Name, at, 4 * elemBytes}}}}}
	if change != nil {
		change(m)
	}
	dir, err := d.Finish(m)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestTensorsAreReadFromTheirRanges(t *testing.T) {
	from, err := OpenTensors(writeWithTensor(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	got, err := io.ReadAll(from.Reader(&from.Manifest.Parameters[0]))
	if want := asBytes([]float32{4, 5, 0, 1, 2, 3}); err != nil || littleEndian && string(got) != string(want) {
		t.Errorf("% x, %v, want % x", got, err, want)
	}
}

// A list that no run writes is refused even with a valid checksum. So is a damaged file.
func TestListsThatDoNotFitTheirFilesAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m *Manifest)
		want   string
	}{
		"no name":        {func(m *Manifest) { m.Parameters[0].Name = "" }, "its name is empty"},
		"twice":          {func(m *Manifest) { m.Optimizer = m.Parameters }, "or occurs twice"},
		"a type":         {func(m *Manifest) { m.Parameters[0].DType = "float64" }, "or its type is not float32"},
		"a shape":        {func(m *Manifest) { m.Parameters[0].Shape[1] = 4 }, "of shape [2 4], but its ranges have another number of elements"},
		"no dimension":   {func(m *Manifest) { m.Parameters[0].Shape = []int{2, 3, 0} }, "of shape [2 3 0]"},
		"overflow":       {func(m *Manifest) { m.Parameters[0].Shape = []int{1 << 62, 1 << 62, 6} }, "another number of elements"},
		"another file":   {func(m *Manifest) { m.Parameters[0].Ranges[0].File = "../x" }, `of "../x" for the tensor "fc1.weight"`},
		"before":         {func(m *Manifest) { m.Parameters[0].Ranges[0].Offset = -1 }, "8 bytes at -1"},
		"behind":         {func(m *Manifest) { m.Parameters[0].Ranges[0].Offset++ }, "which are not in its files"},
		"far behind":     {func(m *Manifest) { m.Parameters[0].Ranges[0].Bytes = 1<<63 - 1 }, "which are not in its files"},
		"half a number":  {func(m *Manifest) { m.Parameters[0].Ranges[1].Bytes-- }, "another number of elements"},
		"more than all":  {func(m *Manifest) { m.Optimizer = copies(m.Parameters[0], 9) }, "its tensors have more bytes than its files"},
		"none":           {func(m *Manifest) { m.Parameters = nil }, "its manifest does not list the parameters"},
		"a damaged file": {func(m *Manifest) { m.Files[0].CRC32C++ }, "its bytes are not those that were written"},
	} {
		t.Run(name, func(t *testing.T) {
			if from, err := OpenTensors(writeWithTensor(t, c.change)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
				if err == nil {
					from.Close()
				}
			}
		})
	}
}

// copies returns n tensors of other names with the same ranges.
func copies(of Tensor, n int) (all []Tensor) {
	for k := range n {
		of.Name = strings.Repeat("x", k+1)
		all = append(all, of)
	}
	return all
}

// Both formats of the checksum work, and any change of the text is found.
func TestSealedManifests(t *testing.T) {
	for _, format := range []int{FormatLined, Format} {
		dir := writeWithTensor(t, nil)
		m, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		m.Format = format
		in := durable.Below(dir)
		if err := errors.Join(Amend(in, m), in.Close()); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, manifestName)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := Open(dir); err != nil || again.Format != format {
			t.Errorf("format %d: %+v, %v", format, again, err)
		}
		for at := range text {
			text[at] ^= 1
			if _, err := parse(text); err == nil {
				t.Errorf("format %d: byte %d of %d is %q, and parse accepts it", format, at, len(text), text[at])
			}
			text[at] ^= 1
		}
	}
}
