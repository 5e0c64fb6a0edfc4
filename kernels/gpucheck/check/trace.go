//go:build cuda

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"fluentps/kernels"
	"fluentps/kernels/cuda"
	"fluentps/kernels/gpucheck"
)

// What kernels are for, in the order of a row.
const (
	convolutionKind = "convolution"
	productKind     = "product"
	normKind        = "norm"
	elementKind     = "element-wise"
	optimizerKind   = "optimizer"
	copyKind        = "copy"
	otherKind       = "other"
)

var kinds = []string{convolutionKind, productKind, normKind, elementKind, optimizerKind, copyKind, otherKind}

// kindWords tell the kind of a kernel from its name: ours, and those of PyTorch, cuDNN and cuBLAS. The first line
// with a word of the name counts.
var kindWords = []struct {
	kind  string
	words []string
}{
	{copyKind, []string{"memcpy", "memset"}},
	{optimizerKind, []string{"momentum", "nesterov", "sgd", "adam", "multi_tensor"}},
	{normKind, []string{"batch_norm", "batchnorm", "bn_fw", "bn_bw"}},
	// cuDNN's kernels that are no norms convolve, or change the order of images for a convolution.
	{convolutionKind, []string{"conv", "wgrad", "dgrad", "fprop", "winograd", "fft", "cudnn", "nchwtonhwc", "nhwctonchw"}},
	{productKind, []string{"gemm", "gemv", "cublas", "cutlass", "splitk", "nvjet"}},
	{elementKind, []string{"elementwise", "relu", "pool", "softmax", "xent", "nll", "_loss", "reduce", "bias", "fill", "axpy",
		"scale", "shortcut", "copy", "cat"}},
}

// kindOf says what a kernel is for.
func kindOf(name string) string {
	name = strings.ToLower(name)
	// A kernel that torch.compile has made is called after all that it computes: triton_poi_fused_convolution_relu is what stands around a
	// convolution. Only a template (tem) is the convolution, or the product.
	if rest, compiled := strings.CutPrefix(name, "triton_"); compiled {
		template := strings.HasPrefix(rest, "tem_") || strings.HasPrefix(rest, "mm") || strings.HasPrefix(rest, "conv")
		switch {
		case template && strings.Contains(rest, "conv"):
			return convolutionKind
		case template:
			return productKind
		case strings.Contains(rest, "norm"):
			return normKind
		}
		return elementKind
	}
	for _, k := range kindWords {
		if slices.ContainsFunc(k.words, func(word string) bool { return strings.Contains(name, word) }) {
			return k.kind
		}
	}
	return otherKind
}

// ran is a kernel of a step.
type ran struct {
	Name  string
	Count float64 // launches of a step
	MS    float64 // of all launches of a step
}

// sharesOf describes the kernels of a step that takes so many milliseconds, in which kernels run for so many: the
// share of each kind, that of the gaps between kernels, and the kernel that takes longest.
func sharesOf(step, busy float64, kernels []ran) string {
	by, launches := map[string]float64{}, 0.0
	for _, k := range kernels {
		by[kindOf(k.Name)] += k.MS
		launches += k.Count
	}
	part := func(name string, ms float64) string {
		return fmt.Sprintf("%s %.3f ms (%.0f %%)", name, ms, 100*ms/step)
	}
	var parts []string
	for _, kind := range kinds {
		if by[kind] > 0 {
			parts = append(parts, part(kind, by[kind]))
		}
	}
	longest := slices.MaxFunc(kernels, func(a, b ran) int { return cmp.Compare(a.MS, b.MS) })
	name := longest.Name
	if len(name) > 60 {
		name = name[:60] + "..."
	}
	return fmt.Sprintf("%s, %s of %.3f ms; %.0f launches, the longest kernel: %s", strings.Join(parts, ", "),
		part("gap", max(0, step-busy)), step, launches, part(name, longest.MS))
}

// marking is a device that calls back behind each launch.
type marking struct {
	kernels.Device
	launched *func(name string) error
}

func (d marking) Launch(k *kernels.Kernel, a kernels.Args) error {
	if err := d.Device.Launch(k, a); err != nil || *d.launched == nil {
		return err
	}
	return (*d.launched)(k.Name)
}

// launchesMax is how many launches of one step are traced at most. ResNet-56 makes about 400.
const launchesMax = 2000

// ourKernels sends the row of a step's kernels: events between launches, all of which the host has queued before the
// GPU begins, so that the GPU waits for nothing. An event takes time itself. So the kernels' times are reduced to
// what the same launches take without events, and the rest of a step, as it is without a queue, is the gap.
func ourKernels(r *gpucheck.Report, f figure) error {
	name, size := fmt.Sprintf("our step by kernel, %s: %s", f.Class, f.Model), netSize(f.Model)(r.Sizes)
	return onDevice(ourOptions(f.Class), func(d kernels.Device) error {
		var launched func(string) error
		step, err := residentStep(marking{d, &launched}, f.Model, r.Sizes, true)
		if err != nil {
			return err
		}
		t, err := newTimer(d, r.Sizes)
		if err != nil {
			return err
		}
		if err := times(2, step); err != nil { // a batch for each of the model's two buffers
			return err
		}
		busy, queued, err := cuda.Timed(d, t.keepBusy, step)
		if err != nil {
			return err
		}
		var names []string
		between, alsoQueued, err := cuda.Intervals(d, launchesMax, t.keepBusy, func(mark func() error) error {
			launched = func(name string) error {
				names = append(names, name)
				return mark()
			}
			defer func() { launched = nil }()
			return step()
		})
		if err != nil {
			return err
		}
		text := sharesOf(f.MS, busy, scaled(names, between, busy))
		if !queued || !alsoQueued {
			text += "; the GPU waited for launches"
		}
		r.OK(name, size, "%s", text)
		return nil
	})
}

// scaled adds up the times of launches by kernel, and reduces their sum to that of all of them without events.
func scaled(names []string, between []float64, busy float64) (kernels []ran) {
	sum := 0.0
	for _, ms := range between {
		sum += ms
	}
	scale := 1.0
	if sum > busy && busy > 0 {
		scale = busy / sum
	}
	at := map[string]int{}
	for i, name := range names {
		if _, have := at[name]; !have {
			at[name] = len(kernels)
			kernels = append(kernels, ran{Name: name})
		}
		k := &kernels[at[name]]
		k.Count++
		k.MS += scale * between[i]
	}
	return kernels
}
