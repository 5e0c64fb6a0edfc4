package workload

import (
	"fmt"

	"fluentps/kernels"
)

const (
	residualSide = 8    // the least height and width of an image; the last group works on a quarter of it
	normEpsilon  = 1e-5 // added to variances, as in PyTorch
	normMomentum = 0.1  // share of the newest batch in the running statistics, as in PyTorch
)

// residual is the network for CIFAR-10 of He, Zhang, Ren and Sun (Deep residual learning for image recognition, CVPR
// 2016), section 4.2, with 6n+2 layers: a convolution, three groups of n blocks of two convolutions each, the mean over positions,
// and a fully connected layer. The groups have 16, 32 and 64 filters, and the second and third begin with a stride of 2. Every
// convolution is followed by a batch norm and a ReLU. Shortcuts have no parameters (option A).
func residual(n int) func(ModelSpec, Samples) []stage {
	return func(s ModelSpec, from Samples) []stage {
		top := newConvNorm(1, from.Image, 16, 1)
		stages := []stage{top}
		for group, filters := range []int{16, 32, 64} {
			var inner *convNorm // the first middle of a block in this group, whose grad the later middles share
			for block := range n {
				stride := 1
				if group > 0 && block == 0 {
					stride, inner = 2, nil
				}
				middle := newConvNorm(len(stages)+1, top.conv.out, filters, stride)
				middle.adds, middle.gradOf = true, inner
				if inner == nil {
					inner = middle
				}
				end := newConvNorm(len(stages)+2, middle.conv.out, filters, 1)
				end.from = top
				if stride == 1 {
					end.gradOf = top
				}
				stages, top = append(stages, middle, end), end
			}
		}
		return append(stages,
			&pooledDense{in: top.conv.out,
				dense: dense{layerName: "fc", inputs: top.conv.out.Channels, outs: outputs(s, from), fan: top.conv.out.Channels, last: true}})
	}
}

func residualImages(s ModelSpec, from Samples) error {
	if err := noHidden(s, from); err != nil {
		return err
	}
	if i := from.Image; i.Height < residualSide || i.Width < residualSide {
		return fmt.Errorf("model %s: images of %d x %d are too small for three groups that each halve them; need at least %d x %d, or choose mlp",
			s.Name, i.Height, i.Width, residualSide, residualSide)
	}
	return nil
}

// convNorm is a stage: a convolution of 3 x 3, batch norm, at the end of a block the addition of the block's input, ReLU.
//
// The gradient of a block's input is a sum of two: that of the shortcut, and that of the block's first convolution, its middle. The
// gradient of the shortcut is the gradient of the end after the ReLU, which batch norm leaves in place. So the gradients of the end
// and of the input share memory, and the middle adds to it. If the shortcut halves the images, the end writes the gradient of the
// input to memory of its own.
type convNorm struct {
	number int // conv1, bn1; conv2, bn2; ...
	conv   convolution
	from   *convNorm // at the end of a block: the stage whose output is the block's input; otherwise nil
	adds   bool      // in a middle: the gradient of its input already contains that of the shortcut
	gradOf *convNorm // the stage whose grad this one shares; nil: it has its own

	x        kernels.Vec // batch x conv.out: output of the convolution; after backward its gradient
	saved    kernels.Vec // statistics of batch norm for backward
	shortcut kernels.Vec // batch x conv.out: the block's input, if it was halved
	out      kernels.Vec // batch x conv.out
	grad     kernels.Vec // of out
}

func newConvNorm(number int, in Image, filters, stride int) *convNorm {
	return &convNorm{number: number, conv: newConvolution(in, filters, 3, stride, 1)}
}

func (s *convNorm) name() string { return fmt.Sprintf("conv%d", s.number) }

func (s *convNorm) params() []Param {
	norm := fmt.Sprintf("bn%d.", s.number)
	channels := []int{s.conv.out.Channels}
	return []Param{
		{Name: s.name() + ".weight", Shape: s.conv.filters(), Fan: s.conv.terms},
		{Name: norm + "scale", Shape: channels, Start: 1},
		{Name: norm + "shift", Shape: channels},
		{Name: norm + "mean", Shape: channels, Stat: true},
		{Name: norm + "variance", Shape: channels, Stat: true, Start: 1},
	}
}

func (s *convNorm) allocate(perSample, once func(int) kernels.Vec) {
	values := s.conv.out.Values()
	s.x, s.out, s.saved = perSample(values), perSample(values), once(2*s.conv.out.Channels)
	if s.gradOf != nil {
		s.grad = s.gradOf.grad // already allocated, because stages are allocated from below
	} else {
		s.grad = perSample(values)
	}
	if s.halves() {
		s.shortcut = perSample(values)
	}
}

func (s *convNorm) ends() (out, grad kernels.Vec) { return s.out, s.grad }

// halves says whether the block that ends here halves the images.
func (s *convNorm) halves() bool { return s.from != nil && s.from.conv.out != s.conv.out }

// sizes are the sizes of the kernels of batch norm, with ReLU.
func (s *convNorm) sizes(n int) kernels.Sizes {
	return kernels.Sizes{n, s.conv.out.Channels, s.conv.out.Height * s.conv.out.Width, 1}
}

// padSizes are the sizes of the kernels of the shortcut.
func (s *convNorm) padSizes(n int) kernels.Sizes {
	in := s.from.conv.out
	return kernels.Sizes{n, in.Channels, in.Height, in.Width, s.conv.out.Channels}
}

func (s *convNorm) forward(dev *stream, p pass) {
	weight, scale, shift, mean, variance := p.params[0], p.params[1], p.params[2], p.params[3], p.params[4]
	s.conv.forward(dev, p.n, p.in, weight, s.x)
	var shortcut kernels.Vec
	switch {
	case s.halves():
		shortcut = s.shortcut
		dev.launch(kernels.ShortcutPad, kernels.Args{V: kernels.Vecs{s.from.out, shortcut}, N: s.padSizes(p.n)})
	case s.from != nil:
		shortcut = s.from.out
	}
	a := kernels.Args{N: s.sizes(p.n), F: kernels.Scalars{normEpsilon}}
	if p.train {
		a.V = kernels.Vecs{s.x, scale, shift, s.out, s.saved, shortcut}
		dev.launch(kernels.BatchNorm, a)
		return
	}
	a.V = kernels.Vecs{s.x, scale, shift, mean, variance, s.out, shortcut}
	dev.launch(kernels.BatchNormEval, a)
}

func (s *convNorm) backward(dev *stream, p pass) {
	weight, scale, mean, variance := p.params[0], p.params[1], p.params[3], p.params[4]
	dev.launch(kernels.BatchNormGrad, kernels.Args{
		V: kernels.Vecs{s.grad, s.out, s.x, scale, s.saved, p.grads[1], p.grads[2], s.x, mean, variance, p.grads[3], p.grads[4]},
		N: s.sizes(p.n), F: kernels.Scalars{normMomentum, normEpsilon}})
	if s.halves() {
		dev.launch(kernels.Fill, kernels.Args{V: kernels.Vecs{s.from.grad}, N: kernels.Sizes{p.n * s.from.conv.out.Values()}})
		dev.launch(kernels.ShortcutPadGrad, kernels.Args{V: kernels.Vecs{s.grad, s.from.grad}, N: s.padSizes(p.n)})
	}
	if p.below.Len() == 0 {
		s.conv.backwardFilter(dev, p.n, p.in, s.x, p.grads[0])
		return
	}
	beta := float32(0)
	if s.adds {
		beta = 1
	}
	s.conv.backward(dev, p.n, p.in, s.x, weight, p.below, p.grads[0], beta)
}

// pooledDense is a fully connected stage on the means of the channels.
type pooledDense struct {
	dense
	in     Image
	pooled kernels.Vec // batch x channels
	dPool  kernels.Vec // its gradient
}

func (d *pooledDense) allocate(perSample, once func(int) kernels.Vec) {
	d.pooled, d.dPool = perSample(d.inputs), perSample(d.inputs)
	d.dense.allocate(perSample, once)
}

func (d *pooledDense) sizes(n int) kernels.Sizes {
	return kernels.Sizes{n, d.in.Channels, d.in.Height * d.in.Width}
}

func (d *pooledDense) forward(dev *stream, p pass) {
	dev.launch(kernels.GlobalAvgPool, kernels.Args{V: kernels.Vecs{p.in, d.pooled}, N: d.sizes(p.n)})
	p.in = d.pooled
	d.dense.forward(dev, p)
}

func (d *pooledDense) backward(dev *stream, p pass) {
	below := p.below
	p.in, p.below = d.pooled, d.dPool
	d.dense.backward(dev, p)
	dev.launch(kernels.GlobalAvgPoolGrad, kernels.Args{V: kernels.Vecs{d.dPool, below}, N: d.sizes(p.n)})
}
