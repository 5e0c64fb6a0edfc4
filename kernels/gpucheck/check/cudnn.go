//go:build cuda

package main

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"fluentps/kernels"
	"fluentps/kernels/cuda"
	"fluentps/kernels/gpucheck"
	"fluentps/kernels/kernel"
)

// convNet is the network whose convolutions cuDNN computes, too.
const convNet = "resnet20 "

// convCounts are how many convolutions of a shape a step of the network has.
var convCounts = map[string]int{"conv1": 1, "group1": 6, "group2 first": 1, "group2": 5, "group3 first": 1, "group3": 5}

// convLayers are its shapes.
func convLayers(s gpucheck.Sizes) (layers []kernel.Layer) {
	for _, l := range kernels.ConvForward.Bench.Layers {
		if strings.HasPrefix(l.Name, convNet) && len(layers) < s.ConvsMax {
			layers = append(layers, l)
		}
	}
	return layers
}

func convsOf(s gpucheck.Sizes) string {
	return fmt.Sprintf("%d shapes, batch %d", len(convLayers(s)), s.Batch)
}

// direction is what of a convolution is computed: by cuDNN, and by a kernel of ours, with its vectors.
type direction struct {
	name    string
	cudnn   cuda.Direction
	kernel  *kernels.Kernel
	operand [3]int // those of cuDNN, as indexes of images, filters and outputs: two operands and the result
	ours    [3]int // likewise the vectors of our kernel
}

var directions = []direction{
	{"forward", cuda.Forward, kernels.ConvForward, [3]int{0, 1, 2}, [3]int{0, 1, 2}},
	{"by data", cuda.ByData, kernels.ConvBackwardData, [3]int{1, 2, 0}, [3]int{2, 1, 0}},
	{"by filter", cuda.ByFilter, kernels.ConvBackwardFilter, [3]int{0, 2, 1}, [3]int{0, 2, 1}},
}

// comparison is what a class of cuDNN's precision takes. The orders of images are alternatives, of which the faster one counts.
type comparison struct {
	name   string
	orders []cuda.Precision
}

var comparisons = []comparison{
	{float32Class, []cuda.Precision{cuda.ConvFloat32}},
	{tf32Class, []cuda.Precision{cuda.ConvTF32, cuda.ConvTF32Last}},
	{bf16Class, []cuda.Precision{cuda.ConvBF16}},
}

// algorithmsMax is how many of the algorithms that cuDNN finds fastest are timed as our kernels are: cuDNN times each but a few times.
const algorithmsMax = 3

// convMax is how far results of cuDNN in float32 may be from ours, relative to the norm: otherwise it computes something else.
const convMax = 1e-3

// convolver computes convolutions of one shape, in both ways.
type convolver struct {
	*timer
	dnn   *cuda.CuDNN
	n     kernels.Sizes
	plain [3]kernels.Vec // images, filters, outputs, in float32
	half  [3]kernels.Vec // the same in bf16
}

// convolutions times cuDNN's best algorithm for each convolution of a network, beside our kernel. A row for each
// shape and direction, and one for all convolutions of a step.
func convolutions(r *gpucheck.Report) error {
	return onDevice(cuda.Options{}, func(d kernels.Device) error {
		dnn, err := cuda.OpenCuDNN(d, r.Sizes.Workspace)
		if isUnusable(err) {
			r.Skip(r.Name, convsOf(r.Sizes), "%v", err)
			return nil
		}
		if err != nil {
			return err
		}
		t, err := newTimer(d, r.Sizes)
		if err == nil {
			err = allConvolutions(r, &convolver{timer: t, dnn: dnn})
		}
		return errors.Join(err, dnn.Close())
	})
}

func allConvolutions(r *gpucheck.Report, c *convolver) error {
	total, of := make([]float64, len(comparisons)+1), 0 // seconds of a step: ours, then cuDNN's
	whole := true
	for _, l := range convLayers(r.Sizes) {
		layer := strings.TrimPrefix(l.Name, convNet)
		if err := c.shape(r.Sizes.Layer(l.N)); err != nil {
			return err
		}
		of += convCounts[layer]
		for _, dir := range directions {
			if layer == "conv1" && dir.cudnn == cuda.ByData {
				continue // nobody needs the gradient of the batch
			}
			took, err := c.row(r, dir, l.Name)
			if err != nil {
				return err
			}
			whole = whole && took != nil
			for i, seconds := range took {
				total[i] += float64(convCounts[layer]) * seconds
			}
		}
	}
	name, size := "cuDNN, all convolutions of a step", fmt.Sprintf("%s%d convolutions, batch %d", convNet, of, r.Sizes.Batch)
	if !whole {
		r.Skip(name, size, "a row above has no time")
		return nil
	}
	text := fmt.Sprintf("ours %.3f ms", 1e3*total[0])
	for i, seconds := range total[1:] {
		text += fmt.Sprintf("; %s %s", comparisons[i].name, against(total[0], seconds, 1e3, "ms", ""))
	}
	r.OK(name, size, "%s", text)
	return nil
}

// against describes a time of cuDNN beside ours.
func against(ours, theirs, scale float64, unit, how string) string {
	if math.IsInf(theirs, 1) || math.IsNaN(theirs) {
		return "none" + how
	}
	return fmt.Sprintf("%.3f %s%s, ours / cuDNN %.2f", scale*theirs, unit, how, ours/theirs)
}

// shape makes the operands of a convolution.
func (c *convolver) shape(n []int) error {
	c.n = kernels.Sizes{}
	copy(c.n[:], n)
	need := kernels.ConvForward.Need(c.n)
	for i := range c.plain {
		host := values(need[i], uint64(i)+1, false)
		halves := make([]float32, (len(host)+1)/2)
		for j, v := range host { // the upper half of a float32 is a bf16
			word := math.Float32bits(halves[j/2]) | math.Float32bits(v)>>16<<(16*(j%2))
			halves[j/2] = math.Float32frombits(word)
		}
		for _, made := range []struct {
			to   *kernels.Vec
			from []float32
		}{{&c.plain[i], host}, {&c.half[i], halves}} {
			v, err := c.device.Alloc(len(made.from))
			if err == nil {
				err = c.device.Upload(v, made.from)
			}
			if err != nil {
				return err
			}
			*made.to = v
		}
	}
	return nil
}

// row times a direction and sends its row. It returns the seconds: ours, then cuDNN's in each class, and nil if the row is no comparison.
func (c *convolver) row(r *gpucheck.Report, dir direction, layer string) (took []float64, err error) {
	name, size := fmt.Sprintf("cuDNN, %s: %s", dir.name, layer), gpucheck.By(c.n[:])
	ours := kernels.Args{V: kernels.Vecs{c.plain[dir.ours[0]], c.plain[dir.ours[1]], c.plain[dir.ours[2]]}, N: c.n}
	seconds, queued, err := c.timed(func() error { return c.device.Launch(dir.kernel, ours) })
	if err != nil {
		return nil, err
	}
	want := make([]float32, c.plain[dir.operand[2]].Len())
	if err := c.device.Download(want, c.plain[dir.operand[2]]); err != nil {
		return nil, err
	}
	text := fmt.Sprintf("ours %.2f us; cuDNN %s", 1e6*seconds, c.dnn.Version)
	took = append(took, seconds)
	for _, class := range comparisons {
		best, how := math.Inf(1), ""
		for _, p := range class.orders {
			theirs, by, also, err := c.theirs(dir, p)
			queued = queued && also
			if err != nil && class.name == float32Class {
				r.Fail(name, size, "ours %.2f us; %s: %v", 1e6*seconds, p.Name, err)
				return nil, nil
			}
			if err != nil && how == "" { // what this card or version does not compute is no fault
				how = fmt.Sprintf(" (%v)", err)
			}
			if err == nil && theirs < best {
				best, how = theirs, fmt.Sprintf(" (%s)", strings.TrimSpace(strings.TrimPrefix(p.Name, class.name)+" "+by))
			}
		}
		if class.name == float32Class {
			got := make([]float32, len(want))
			if err := c.device.Download(got, c.plain[dir.operand[2]]); err != nil {
				return nil, err
			}
			if off := distance(got, want); !(off <= convMax) {
				r.Fail(name, size, "cuDNN %s%s computes something else: its values are %.2g from ours, relative to the norm; "+
					"at most %.0g", c.dnn.Version, how, off, convMax)
				return nil, nil
			}
		}
		text += fmt.Sprintf("; %s %s", class.name, against(seconds, best, 1e6, "us", how))
		took = append(took, best)
	}
	if !queued {
		text += "; the GPU waited for launches"
	}
	r.OK(name, size, "%s", text)
	return took, nil
}

// theirs returns the seconds of cuDNN's best algorithm, and its name.
func (c *convolver) theirs(dir direction, p cuda.Precision) (best float64, by string, queued bool, err error) {
	v := c.plain
	if p == cuda.ConvBF16 {
		v = c.half
	}
	conv, err := c.dnn.Convolution(c.n, dir.cudnn, p, [2]kernels.Vec{v[dir.operand[0]], v[dir.operand[1]]}, v[dir.operand[2]])
	if err != nil {
		return 0, "", true, err
	}
	defer conv.Close()
	algorithms, err := conv.Find(algorithmsMax)
	if err != nil {
		return 0, "", true, err
	}
	best, queued = math.Inf(1), true
	var last error
	for _, a := range algorithms {
		if last = conv.Use(a); last != nil {
			continue
		}
		seconds, also, failed := c.timed(func() error { return conv.Run(a) })
		if last = failed; last == nil && seconds < best {
			best, by, queued = seconds, a.Name, also
		}
	}
	if by == "" {
		return 0, "", true, errors.Join(errors.New("no algorithm of cuDNN computes it"), last)
	}
	return best, by, queued, nil
}
