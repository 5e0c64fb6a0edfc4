// Package params writes and reads parameters in formats that other programs know: safetensors, and the npz of NumPy.
//
// A tensor is a named array of float32 in row-major order, little endian. internal/disk/checkpoint/README.md lists the names of the
// parameters of each model, and their axes.
//
// A file may come from anywhere. So a reader checks every number of the file against a limit before it allocates memory, and accepts a
// file only if its tensors are exactly those of the model (Initial).
package params

import (
	"fmt"
	"path/filepath"
	"strings"

	"fluentps/ps/workload"
)

// Tensor is the name and the shape of an array.
type Tensor struct {
	Name  string
	Shape []int
}

const elemBytes = 4 // of a float32

// bytes returns the size of the elements. It does not overflow, because the shape is one of a model.
func (t *Tensor) bytes() int64 {
	n := int64(elemBytes)
	for _, d := range t.Shape {
		n *= int64(d)
	}
	return n
}

// Forms lists the suffixes of the formats that are written and read.
func Forms() []string { return []string{suffixSafetensors, suffixNPZ} }

const (
	suffixSafetensors = ".safetensors"
	suffixNPZ         = ".npz"
)

// FormOf returns the suffix of a file. The error for another suffix lists those of Forms.
func FormOf(path string) (string, error) {
	suffix := filepath.Ext(path)
	for _, form := range Forms() {
		if suffix == form {
			return form, nil
		}
	}
	return "", fmt.Errorf("%q does not end in %s, which selects the format of the file; choose one of the two", path,
		strings.Join(Forms(), " or "))
}

// Of returns the parameters of a model as tensors, in model order.
func Of(model []workload.Param) []Tensor {
	all := make([]Tensor, len(model))
	for k, p := range model {
		all[k] = Tensor{p.Name, p.Shape}
	}
	return all
}
