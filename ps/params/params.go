// Package params writes and reads files of parameters that other programs know: safetensors, and the npz of NumPy.
//
// A tensor is a named array of float32 in row-major order, little endian. ps/checkpoint/README.md says what the parameters of each
// model are called, and which axis is which.
//
// Files come from anywhere, so a reader holds every number of theirs to a limit before it takes memory for it, and takes a file
// only if its tensors are just those of the model (Initial).
package params

import (
	"fmt"
	"path/filepath"
	"strings"

	"fluentps/ps/workload"
)

// Tensor is what a file says of an array.
type Tensor struct {
	Name  string
	Shape []int
}

const elemBytes = 4 // of a float32

// bytes is the size of its elements; its shape is one of a model.
func (t *Tensor) bytes() int64 {
	n := int64(elemBytes)
	for _, d := range t.Shape {
		n *= int64(d)
	}
	return n
}

// Forms lists the suffixes of files that are written and read.
func Forms() []string { return []string{suffixSafetensors, suffixNPZ} }

const (
	suffixSafetensors = ".safetensors"
	suffixNPZ         = ".npz"
)

// FormOf is the suffix of a file; an error says which there are.
func FormOf(path string) (string, error) {
	suffix := filepath.Ext(path)
	for _, form := range Forms() {
		if suffix == form {
			return form, nil
		}
	}
	return "", fmt.Errorf("%q does not end in %s, which says what form the file has; choose one of the two", path, strings.Join(Forms(), " or "))
}

// Of are the parameters of a model as a file has them, in model order.
func Of(model []workload.Param) []Tensor {
	all := make([]Tensor, len(model))
	for k, p := range model {
		all[k] = Tensor{p.Name, p.Shape}
	}
	return all
}
