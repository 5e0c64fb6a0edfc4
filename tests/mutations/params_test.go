package mutations

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/disk/durable"
	"fluentps/internal/show/params"
)

// paramsReaders read the parameters that a run begins with, in each form.
func paramsReaders(t testing.TB) (all []*reader) {
	d, err := checkpoint.Begin(durable.Below(t.TempDir()), "7.1")
	if err != nil {
		t.Fatal(err)
	}
	e, err := checkpoint.WriteFile(d.In, checkpoint.ServerFile(0), 0, []float32{1, -2, 3.5, 1e-30, 5, 6, 0.25, 8})
	if err != nil {
		t.Fatal(err)
	}
	model := []params.Tensor{{Name: "fc1.weight", Shape: []int{2, 3}}, {Name: "fc1.bias", Shape: []int{2}}}
	m := &checkpoint.Manifest{Servers: 1, Workers: 1, Starts: []int64{0}, Files: []checkpoint.Entry{e}}
	for k, bytes := range []int64{24, 8} {
		at := e.Bytes - 32 + 24*int64(k)
		m.Parameters = append(m.Parameters,
			checkpoint.Tensor{Name: model[k].Name, Shape: model[k].Shape, DType: checkpoint.DType,
				Ranges: []checkpoint.Range{{File: e.Name, Offset: at, Bytes: bytes}}})
	}
	dir, err := d.Finish(m)
	if err != nil {
		t.Fatal(err)
	}
	from, err := checkpoint.OpenTensors(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	for _, form := range params.Forms() {
		path := filepath.Join(t.TempDir(), "model"+form)
		_, _, err := params.Export(from, path, false)
		text, failed := os.ReadFile(path)
		if err := errors.Join(err, failed); err != nil {
			t.Fatal(err)
		}
		all = append(all, &reader{name: "parameters " + form, share: 2, files: map[string][]byte{"model" + form: text},
			read: func(dir string) (string, string, error) {
				i, err := params.OpenInitial(filepath.Join(dir, "model"+form), model)
				if err != nil {
					return "", "", err
				}
				defer i.Close()
				weight, bias := make([]float32, 6), make([]float32, 2)
				err = errors.Join(i.Fill(weight, 0, 0), i.Fill(bias, 1, 0))
				return sum(weight, bias, i.SHA256()), "", err
			}})
	}
	return all
}
