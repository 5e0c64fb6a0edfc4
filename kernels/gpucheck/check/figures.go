//go:build cuda

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"

	"fluentps/kernels/cuda"
	"fluentps/kernels/gpucheck"
)

// The classes of precision in which steps are compared.
const (
	float32Class = "float32"
	tf32Class    = "TF32"
	bf16Class    = "bf16"
)

var classes = []string{float32Class, tf32Class, bf16Class}

// ourOptions are the options of our step beside a class of PyTorch's. We have no bf16: beside that stands our
// fastest, with the products of dense layers in TF32.
func ourOptions(class string) cuda.Options {
	o := cuda.Options{Gemm: cuda.Auto}
	if class != float32Class {
		o.Math = cuda.TF32
	}
	return o
}

// ourClass names the precision of our step beside a class of PyTorch's.
func ourClass(class string) string {
	if class == bf16Class {
		return tf32Class
	}
	return class
}

// figuresVar names a file in which checks, which are processes, keep what they have measured for those behind them.
const figuresVar = "GPU_CHECK_FIGURES"

// ourWay is the way of our own steps, among those of PyTorch.
const ourWay = "ours"

// figure is what the steps of one way take.
type figure struct {
	Way, Class, Model string
	MS, WithoutMS     float64 // of a step with the optimizer, and of one without
}

// keep adds a figure to the file, if there is one.
func (f figure) keep() error {
	path := os.Getenv(figuresVar)
	if path == "" {
		return nil
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(file).Encode(f); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}

// figures are those of a class and a model that earlier checks have kept.
func figures(class, model string) (found []figure) {
	file, err := os.Open(os.Getenv(figuresVar))
	if err != nil {
		return nil // none was kept
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var f figure
		// A check that was ended may have left half a line.
		if json.Unmarshal(lines.Bytes(), &f) == nil && f.Class == class && f.Model == model && f.MS > 0 && f.WithoutMS > 0 {
			found = append(found, f)
		}
	}
	return found
}

// ours returns what our steps take, beside a class of PyTorch's. It measures them if no check has yet: not while PyTorch computes.
func ours(class, model string, s gpucheck.Sizes) (f figure, err error) {
	class = ourClass(class)
	for _, kept := range figures(class, model) {
		if kept.Way == ourWay {
			return kept, nil
		}
	}
	f = figure{Way: ourWay, Class: class, Model: model}
	if f.MS, err = residentTime(model, s, ourOptions(class), true); err != nil {
		return f, err
	}
	if f.WithoutMS, err = residentTime(model, s, ourOptions(class), false); err != nil {
		return f, err
	}
	return f, f.keep()
}

// ourSteps measures our steps for the comparison with PyTorch's, and lists the kernels of one model.
func ourSteps(r *gpucheck.Report) error {
	for _, model := range r.Sizes.PeerModels {
		for _, class := range classes[:2] {
			f, err := ours(class, model, r.Sizes)
			if err != nil {
				return err
			}
			r.OK(fmt.Sprintf("our step, %s: %s", class, model), netSize(model)(r.Sizes), "%.3f ms, %.3f ms without the optimizer", f.MS, f.WithoutMS)
			if model == r.Sizes.TraceModel {
				if err := ourKernels(r, f); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// best sends a row for each model and class: our step beside the fastest of PyTorch's.
func best(r *gpucheck.Report) error {
	for _, model := range r.Sizes.PeerModels {
		for _, class := range classes {
			name, size := fmt.Sprintf("%s, %s: %s", r.Name, class, model), netSize(model)(r.Sizes)
			var have []string
			with, without := figure{MS: math.Inf(1)}, figure{WithoutMS: math.Inf(1)}
			for _, f := range figures(class, model) {
				if f.Way == ourWay {
					continue
				}
				have = append(have, f.Way)
				if f.MS < with.MS {
					with = f
				}
				if f.WithoutMS < without.WithoutMS {
					without = f
				}
			}
			if len(have) == 0 {
				r.Skip(name, size, "no row of PyTorch has a time")
				continue
			}
			us, err := ours(class, model, r.Sizes)
			if err != nil {
				return err
			}
			text := fmt.Sprintf("%.2f with the optimizer (%.3f ms / %.3f ms of %s), %.2f without (%.3f ms / %.3f ms of %s); "+
				"PyTorch's ways: %s", us.MS/with.MS, us.MS, with.MS, with.Way,
				us.WithoutMS/without.WithoutMS, us.WithoutMS, without.WithoutMS, without.Way, strings.Join(have, ", "))
			if us.Class != class {
				text += "; ours is in " + us.Class
			}
			r.OK(name, size, "%s", text)
		}
	}
	return nil
}
