//go:build cuda

package main

import (
	"fmt"

	"fluentps/kernels"
	"fluentps/kernels/cuda"
	"fluentps/kernels/gpucheck"
)

// long runs kernels on vectors with so many elements that an address of 32 bits overflows. Every element of a piece has the same value,
// so the result of each is known.
func long(r *gpucheck.Report) error {
	gpus, err := cuda.GPUs()
	if err != nil {
		return err
	}
	elements := max(r.Sizes.LongMin, r.Sizes.LongImages*imageElements)
	if need := int64(3 * 4 * elements); gpus[0].Memory < need+need/8 {
		r.Skip(r.Name, fmt.Sprint(elements), "it takes %d MB, the GPU has %d MB", need>>20, gpus[0].Memory>>20)
		return nil
	}
	if err := onDevice(cuda.Options{}, func(d kernels.Device) error { return longElements(r, d) }); err != nil {
		return err
	}
	return onDevice(cuda.Options{}, func(d kernels.Device) error { return longImages(r, d) })
}

// pieces calls do for each piece of n elements.
func pieces(n, piece int, do func(k, lo, hi int) error) error {
	for k, lo := 0, 0; lo < n; k, lo = k+1, lo+piece {
		if err := do(k, lo, min(lo+piece, n)); err != nil {
			return err
		}
	}
	return nil
}

// fill sets all elements of a vector.
func fill(d kernels.Device, v kernels.Vec, value float32) error {
	return d.Launch(kernels.Fill, kernels.Args{V: kernels.Vecs{v}, N: kernels.Sizes{v.Len()}, F: kernels.Scalars{value}})
}

// valueOf is the value of piece k: a small whole number, so that results have no rounding.
func valueOf(k int) float32 { return float32(k%251 + 1) }

// longElements adds twice x to y, and takes a step of SGD with momentum on it.
func longElements(r *gpucheck.Report, d kernels.Device) error {
	n, piece := r.Sizes.LongMin, r.Sizes.LongPiece
	var v [3]kernels.Vec
	for i := range v {
		made, err := d.Alloc(n + 1)
		if err != nil {
			return err
		}
		v[i] = made.Slice(0, n)
		if err := fill(d, made.Slice(n, n+1), -7); err != nil { // no kernel may write behind the end
			return err
		}
	}
	x, y, m := v[0], v[1], v[2]
	if err := pieces(n, piece, func(k, lo, hi int) error { return fill(d, x.Slice(lo, hi), valueOf(k)) }); err != nil {
		return err
	}
	for _, launch := range []error{
		fill(d, y, 0.5), fill(d, m, 4),
		d.Launch(kernels.Axpy, kernels.Args{V: kernels.Vecs{x, y}, N: kernels.Sizes{n}, F: kernels.Scalars{2}}),
		d.Launch(kernels.Momentum, kernels.Args{V: kernels.Vecs{y, x, y, m}, N: kernels.Sizes{n}, F: kernels.Scalars{0.5, 1, 0, 0.25}}),
	} {
		if launch != nil {
			return launch
		}
	}
	got := make([]float32, piece)
	err := pieces(n, piece, func(k, lo, hi int) error {
		if err := d.Download(got[:hi-lo], y.Slice(lo, hi)); err != nil {
			return err
		}
		want := 0.5 + 2*valueOf(k) - 0.5*(0.25*4+valueOf(k))
		for i, g := range got[:hi-lo] {
			if g != want {
				return fmt.Errorf("axpy and momentum: element %d of %d is %g, must be %g", lo+i, n, g, want)
			}
		}
		return nil
	})
	for _, of := range v {
		of.N++
		if last := make([]float32, 1); err == nil {
			if err = d.Download(last, of.Slice(n, n+1)); err == nil && last[0] != -7 {
				err = fmt.Errorf("a kernel wrote behind the end of a vector of %d elements", n)
			}
		}
	}
	if err == nil {
		r.OK(r.Name+": fill, axpy, momentum", fmt.Sprint(n), "every element is exact")
	}
	return err
}

// imageValue is the value of the images of group k: so small that the sums of the gradient stay exact for long.
func imageValue(k int) float32 { return float32(k%4 + 1) }

// The images of longImages, and the filters.
const (
	channels, side, window = 16, 32, 3
	imageElements          = channels * side * side
	weight                 = 0.125
)

// longImages convolves images, all of whose values are the same, with filters whose weights are, and sums up the gradient of the filters.
func longImages(r *gpucheck.Report, d kernels.Device) error {
	images := r.Sizes.LongImages
	n := kernels.Sizes{images, channels, side, side, channels, window, 1, 1}
	elements, weights := images*imageElements, channels*channels*window*window
	var v [4]kernels.Vec // images, filters, their gradient, outputs
	for i, count := range []int{elements, weights, weights, elements} {
		made, err := d.Alloc(count)
		if err != nil {
			return err
		}
		v[i] = made
	}
	const group = 64 // images with one value
	for _, err := range []error{
		pieces(elements, group*imageElements, func(k, lo, hi int) error { return fill(d, v[0].Slice(lo, hi), imageValue(k)) }),
		fill(d, v[1], weight),
		d.Launch(kernels.ConvForward, kernels.Args{V: kernels.Vecs{v[0], v[1], v[3]}, N: n}),
	} {
		if err != nil {
			return err
		}
	}
	got := make([]float32, group*imageElements)
	total := 0.0 // of the values of all images
	err := pieces(elements, len(got), func(k, lo, hi int) error {
		total += float64(imageValue(k)) * float64((hi-lo)/imageElements)
		if err := d.Download(got[:hi-lo], v[3].Slice(lo, hi)); err != nil {
			return err
		}
		for i, g := range got[:hi-lo] {
			if want := weight * channels * imageValue(k) * float32(seen(i/side%side)*seen(i%side)); g != want {
				return fmt.Errorf("conv_forward: element %d of %d is %g, must be %g", lo+i, elements, g, want)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := fill(d, v[3], 1); err != nil {
		return err
	}
	if err := d.Launch(kernels.ConvBackwardFilter, kernels.Args{V: kernels.Vecs{v[0], v[3], v[2]}, N: n}); err != nil {
		return err
	}
	got = got[:weights]
	if err := d.Download(got, v[2]); err != nil {
		return err
	}
	for i, g := range got {
		rows, cols := float64(side), float64(side)
		if i/window%window != 1 { // the windows at one edge have no value there
			rows--
		}
		if i%window != 1 {
			cols--
		}
		want := total * rows * cols
		if off := float64(g)/want - 1; !(max(off, -off) <= 1e-4) {
			return fmt.Errorf("conv_backward_filter: element %d is %g, must be %g", i, g, want)
		}
	}
	r.OK(r.Name+": conv_forward, conv_backward_filter", gpucheck.By(n[:]), "every output is exact, and every sum within 1e-4")
	return nil
}

// seen is how many of the rows (or columns) of a window around this one lie in the image.
func seen(at int) int {
	if at == 0 || at == side-1 {
		return window - 1
	}
	return window
}
