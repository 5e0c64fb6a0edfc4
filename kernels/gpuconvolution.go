package kernels

import "fluentps/kernels/convolution"

var (
	gpuConvForward = &CUDA{
		Source: convolution.Source, PTX: convolution.PTX, Vecs: 3, Sizes: 8,
		Steps: func(n Sizes) [4]Step {
			height, width := Windows(n)
			return forwardEntries.steps(n, n[4], height, width)
		},
	}
	gpuConvBackwardData = &CUDA{
		Source: convolution.Source, PTX: convolution.PTX, Vecs: 3, Sizes: 8, Scalars: 1,
		Steps: func(n Sizes) [4]Step { return backwardEntries.steps(n, n[1], n[2], n[3]) },
	}
	gpuConvBackwardFilter = &CUDA{
		Source: convolution.FilterSource, PTX: convolution.FilterPTX, Vecs: 3, Sizes: 8,
		Scratch: func(n Sizes) int { _, scratch := filterSteps(n); return scratch },
		Steps:   func(n Sizes) [4]Step { steps, _ := filterSteps(n); return steps },
	}
)

// convolutionEntries are the ways to compute conv_forward or conv_backward_data.
type convolutionEntries struct {
	direct3, direct5   []directEntry // at stride 1
	product3, product0 string        // windows of 3 x 3, any windows
}

// directEntry computes tiles of width x 8 positions, of 8 planes in each of so many groups.
type directEntry struct {
	name          string
	width, groups int
}

var (
	forwardEntries = convolutionEntries{
		direct3:  []directEntry{{"conv_forward_3_32", 32, 2}, {"conv_forward_3_16", 16, 4}, {"conv_forward_3_8", 8, 8}},
		direct5:  []directEntry{{"conv_forward_5_32", 32, 2}, {"conv_forward_5_16", 16, 2}},
		product3: "conv_forward_3", product0: "conv_forward",
	}
	backwardEntries = convolutionEntries{
		direct3: []directEntry{
			{"conv_backward_data_3_32", 32, 2}, {"conv_backward_data_3_16", 16, 4}, {"conv_backward_data_3_8", 8, 8},
		},
		direct5:  []directEntry{{"conv_backward_data_5_32", 32, 2}, {"conv_backward_data_5_16", 16, 2}},
		product3: "conv_backward_data_3", product0: "conv_backward_data",
	}
)

// steps is the launch whose result has so many planes of height x width for each image.
func (e *convolutionEntries) steps(n Sizes, planes, height, width int) (steps [4]Step) {
	images, kernel, stride := n[0], n[5], n[6]
	if images*planes*height*width == 0 {
		return steps
	}
	inputs, weights, outputs := convolved(n)
	empty := inputs*weights*outputs == 0 // then there is nothing to read, which the direct way does not check
	switch {
	case stride == 1 && kernel == 3 && !empty:
		steps[0] = directStep(e.direct3, images, planes, height, width)
	case stride == 1 && kernel == 5 && !empty:
		steps[0] = directStep(e.direct5, images, planes, height, width)
	default:
		steps[0] = Step{e.product0, [3]int{blocks(images*height*width, 64), blocks(planes, 32), 1}, [3]int{128, 1, 1}}
		if kernel == 3 {
			steps[0].Entry = e.product3
		}
	}
	return steps
}

// directStep takes the entry that computes the least in vain.
func directStep(entries []directEntry, images, planes, height, width int) Step {
	best, least := entries[0], 0
	for _, e := range entries {
		cost := blocks(width, e.width) * e.width * blocks(planes, 8*e.groups) * e.groups
		if least == 0 || cost < least {
			best, least = e, cost
		}
	}
	tiles := images * blocks(width, best.width) * blocks(height, 8)
	return Step{best.name, [3]int{tiles, blocks(planes, 8*best.groups), 1}, [3]int{best.width * 2 * best.groups, 1, 1}}
}

// filterSteps are the launches of conv_backward_filter, and the scratch between them.
func filterSteps(n Sizes) (steps [4]Step, scratch int) {
	images, channels, filters, kernel, stride := n[0], n[1], n[4], n[5], n[6]
	weights := channels * kernel * kernel
	if filters*weights == 0 {
		return steps, 0
	}
	rows, cols := Windows(n)
	terms := images * rows * cols
	if n[0]*n[2]*n[3]*terms > 0 && kernel == 3 && stride == 1 {
		return directFilterSteps(n, rows, cols)
	}
	across, down := blocks(weights, 64), blocks(filters, 32)
	layers := shares(across*down, terms/64)
	steps[0] = Step{"conv_backward_filter", [3]int{across, down, layers}, [3]int{128, 1, 1}}
	if layers > 1 {
		steps[1] = sumStep("conv_backward_filter_sum", filters*weights)
	}
	return steps, shareScratch(layers, filters*weights)
}

// directFilterSteps does so for windows of 3 x 3 at stride 1: squares of 16 filters and 16 channels, tiles of width x 8
// positions.
func directFilterSteps(n Sizes, rows, cols int) (steps [4]Step, scratch int) {
	width, entry := 32, "conv_backward_filter_3_32"
	if blocks(cols, 16)*16 < blocks(cols, width)*width {
		width, entry = 16, "conv_backward_filter_3_16"
	}
	if blocks(cols, 8)*8 < blocks(cols, width)*width {
		width, entry = 8, "conv_backward_filter_3_8"
	}
	down, across := blocks(n[4], 16), blocks(n[1], 16)
	layers := shares(down*across, n[0]*blocks(rows, 8)*blocks(cols, width))
	results := down * across * 16 * 16 * 9
	steps[0] = Step{entry, [3]int{layers, down, across}, [3]int{256, 1, 1}}
	steps[1] = sumStep("conv_backward_filter_3_sum", results)
	return steps, 1 + layers*results
}
