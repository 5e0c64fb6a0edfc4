package convolution

import "fluentps/kernels/kernel"

// entries are the entries that compute conv_forward or conv_backward_data.
type entries struct {
	direct3, direct5     []directEntry // windows of 3 x 3 and of 5 x 5 at stride 1
	halved3              []directEntry // windows of 3 x 3 at stride 2, pad 1; a position is 2 x 2 values
	product3, productAny string        // as products: windows of 3 x 3, any windows
}

// directEntry computes tiles of width x 8 positions, for `groups` groups of 8 planes. A thread computes a strip of positions.
type directEntry struct {
	name                 string
	more                 string // the same with strips of 2, for launches with few warps; "": there is none
	width, groups, strip int
}

var (
	forwardEntries = entries{
		direct3: []directEntry{
			{"conv_forward_3_32", "", 32, 2, 4}, {"conv_forward_3_16", "conv_forward_3_16_more", 16, 4, 4},
			{"conv_forward_3_8", "conv_forward_3_8_more", 8, 8, 4},
		},
		direct5:  []directEntry{{"conv_forward_5_32", "", 32, 2, 4}, {"conv_forward_5_16", "", 16, 2, 4}},
		product3: "conv_forward_3", productAny: "conv_forward",
	}
	backwardEntries = entries{
		direct3: []directEntry{
			{"conv_backward_data_3_32", "", 32, 2, 4}, {"conv_backward_data_3_16", "conv_backward_data_3_16_more", 16, 4, 4},
			{"conv_backward_data_3_8", "conv_backward_data_3_8_more", 8, 8, 4},
		},
		direct5:  []directEntry{{"conv_backward_data_5_32", "", 32, 2, 4}, {"conv_backward_data_5_16", "", 16, 2, 4}},
		halved3:  []directEntry{{"conv_backward_data_3_halved_16", "", 16, 2, 2}, {"conv_backward_data_3_halved_8", "", 8, 4, 1}},
		product3: "conv_backward_data_3", productAny: "conv_backward_data",
	}
)

// steps returns the launch whose result has this many planes of height x width for each image.
func (e *entries) steps(n kernel.Sizes, planes, height, width int) (steps [4]kernel.Step) {
	images, side, stride, pad := n[0], n[5], n[6], n[7]
	if images*planes*height*width == 0 {
		return steps
	}
	inputs, weights, outputs := lengths(n)
	empty := inputs*weights*outputs == 0 // the direct entries read without checking for this
	switch {
	case stride == 1 && side == 3 && !empty:
		steps[0] = directStep(e.direct3, images, planes, height, width)
	case stride == 1 && side == 5 && !empty:
		steps[0] = directStep(e.direct5, images, planes, height, width)
	case stride == 2 && side == 3 && pad == 1 && !empty && e.halved3 != nil:
		steps[0] = directStep(e.halved3, images, planes, (height+1)/2, (width+1)/2)
	default:
		steps[0] = kernel.Step{Entry: e.productAny,
			Grid: [3]int{kernel.Blocks(images*height*width, 64), kernel.Blocks(planes, 32), 1}, Block: [3]int{128, 1, 1}}
		if side == 3 {
			steps[0].Entry = e.product3
		}
	}
	return steps
}

// warpsMin is how many warps keep the schedulers of a large GPU busy: three for each two of the 4 x 132 of an H100. With fewer, latency is
// hidden by neither other warps nor other blocks.
const warpsMin = 3 * 4 * 132 / 2

// directStep chooses the entry that computes the fewest values outside the result.
func directStep(entries []directEntry, images, planes, height, width int) kernel.Step {
	best, least := entries[0], 0
	for _, e := range entries {
		cost := kernel.Blocks(width, e.width) * e.width * kernel.Blocks(planes, 8*e.groups) * e.groups
		if least == 0 || cost < least {
			best, least = e, cost
		}
	}
	tiles := images * kernel.Blocks(width, best.width) * kernel.Blocks(height, 8)
	s := kernel.Step{Entry: best.name, Grid: [3]int{tiles, kernel.Blocks(planes, 8*best.groups), 1},
		Block: [3]int{best.width * 8 / best.strip * best.groups, 1, 1}}
	if best.more != "" && s.Grid[0]*s.Grid[1]*s.Block[0]/32 < warpsMin {
		s.Entry, s.Block[0] = best.more, s.Block[0]*best.strip/2
	}
	return s
}

// backwardSteps returns the launches of both gradients. An entry that knows how also adds up the shares of the
// filters' gradient, in a second layer of its grid.
func backwardSteps(n kernel.Sizes) [4]kernel.Step {
	filter, _ := filterSteps(n)
	data := backwardEntries.steps(n, n[1], n[2], n[3])[0]
	switch {
	case data.Entry == "":
		return filter
	case filter[0].Entry == "":
		return [4]kernel.Step{data}
	case filter[1].Entry == "":
		return [4]kernel.Step{filter[0], data}
	case data.Entry == backwardEntries.product3 || data.Entry == backwardEntries.productAny:
		return [4]kernel.Step{filter[0], filter[1], data}
	}
	data.Grid[2] = 2
	return [4]kernel.Step{filter[0], data}
}

// filterSteps returns the launches of conv_backward_filter and the length of their scratch.
func filterSteps(n kernel.Sizes) (steps [4]kernel.Step, scratch int) {
	images, channels, filters, side, stride := n[0], n[1], n[4], n[5], n[6]
	weights := channels * side * side
	if filters*weights == 0 {
		return steps, 0
	}
	rows, cols := ShapeOf(n).Shape.Outputs()
	terms := images * rows * cols
	if n[0]*n[2]*n[3]*terms > 0 && side == 3 && stride == 1 {
		return directFilterSteps(n, rows, cols)
	}
	across, down := kernel.Blocks(weights, 64), kernel.Blocks(filters, 32)
	layers := kernel.Shares(across*down, terms/64)
	steps[0] = kernel.Step{Entry: "conv_backward_filter", Grid: [3]int{across, down, layers}, Block: [3]int{128, 1, 1}}
	if layers > 1 {
		steps[1] = kernel.SumStep("conv_backward_filter_sum", filters*weights)
	}
	return steps, kernel.ShareScratch(layers, filters*weights)
}

// directFilterSteps is filterSteps for windows of 3 x 3 at stride 1. A block takes 16 filters and 16 channels, in tiles of
// width x 8 positions.
func directFilterSteps(n kernel.Sizes, rows, cols int) (steps [4]kernel.Step, scratch int) {
	width, entry := 32, "conv_backward_filter_3_32"
	if kernel.Blocks(cols, 16)*16 < kernel.Blocks(cols, width)*width {
		width, entry = 16, "conv_backward_filter_3_16"
	}
	if kernel.Blocks(cols, 8)*8 < kernel.Blocks(cols, width)*width {
		width, entry = 8, "conv_backward_filter_3_8"
	}
	down, across := kernel.Blocks(n[4], 16), kernel.Blocks(n[1], 16)
	layers := kernel.Shares(down*across, n[0]*kernel.Blocks(rows, 8)*kernel.Blocks(cols, width))
	results := down * across * 16 * 16 * 9
	steps[0] = kernel.Step{Entry: entry, Grid: [3]int{layers, down, across}, Block: [3]int{256, 1, 1}}
	steps[1] = kernel.SumStep("conv_backward_filter_3_sum", results)
	return steps, 1 + layers*results
}
