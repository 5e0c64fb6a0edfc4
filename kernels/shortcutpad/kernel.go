package shortcutpad

import (
	_ "embed" // shortcut_pad.ptx

	"fluentps/kernels/kernel"
)

//go:embed shortcut_pad.ptx
var ptx string

var (
	// ShortcutPad: V: X, Y. N: images, channels, height, width, channels out. Y (images x channels out x (height+1)/2 x
	// (width+1)/2) becomes every second row and column of X, from the first on. The channels that X lacks become 0. This is
	// option A of He et al. (CVPR 2016), section 4.1.
	ShortcutPad = &kernel.Kernel{
		Name: "shortcut_pad", Tol: 0, Cost: cost,
		Need:  func(n kernel.Sizes) kernel.Counts { return kernel.Counts{shapeOf(n).Inputs(), shapeOf(n).Outputs()} },
		CPU:   func(a kernel.Args) { forward(a.V[1].Host, a.V[0].Host, shapeOf(a.N)) },
		CUDA:  cuda("shortcut_pad"),
		Cases: forwardCases,
		Bench: bench,
	}
	// ShortcutPadGrad: V: dY, dX. N: as ShortcutPad. It adds dY to dX where ShortcutPad took its values from.
	ShortcutPadGrad = &kernel.Kernel{
		Name: "shortcut_pad_grad", Tol: 1, Cost: cost,
		Need:  func(n kernel.Sizes) kernel.Counts { return kernel.Counts{shapeOf(n).Outputs(), shapeOf(n).Inputs()} },
		CPU:   func(a kernel.Args) { backward(a.V[1].Host, a.V[0].Host, shapeOf(a.N)) },
		CUDA:  cuda("shortcut_pad_grad"),
		Cases: backwardCases,
		Bench: bench,
	}
	bench = kernel.Bench{Layers: []kernel.Layer{
		{Name: "resnet20 group2", N: []int{128, 16, 32, 32, 32}}, {Name: "resnet20 group3", N: []int{128, 32, 16, 16, 64}},
	}}
)

func cuda(entry string) *kernel.CUDA {
	return &kernel.CUDA{
		PTX: ptx, Vecs: 2, Sizes: 5,
		Steps: func(n kernel.Sizes) [4]kernel.Step { return kernel.Elements(entry, shapeOf(n).Outputs()) },
	}
}

func shapeOf(n kernel.Sizes) shape {
	return shape{Images: n[0], Channels: n[1], Height: n[2], Width: n[3], Out: n[4]}
}

func cost(n kernel.Sizes) (flops, bytes float64) {
	s := shapeOf(n)
	return 0, float64(4 * (s.Inputs()/2 + s.Outputs()))
}
