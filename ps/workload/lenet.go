package workload

import (
	"fmt"

	"fluentps/kernels"
)

// lenetSide is the least height and width of an image for which the last pooling still has a value: half of it, less 4 for the
// second convolution, is 2.
const lenetSide = 12

// lenetStages is LeNet-5 (LeCun et al., Gradient-based learning applied to document recognition, Proc. IEEE 1998, section II.B) in
// its modern form: padding instead of larger images, ReLU, max pooling instead of a trained mean, all channels connected, softmax.
func lenetStages(s ModelSpec, from Samples) []stage {
	conv1 := newConvPool("conv1", newConvolution(from.Image, 6, 5, 1, 2))
	conv2 := newConvPool("conv2", newConvolution(conv1.pooled, 16, 5, 1, 0))
	return append([]stage{conv1, conv2}, denseStages([]int{conv2.pooled.Values(), 120, 84, outputs(s, from)})...)
}

func lenetImages(s ModelSpec, from Samples) error {
	if err := noHidden(s, from); err != nil {
		return err
	}
	if i := from.Image; i.Height < lenetSide || i.Width < lenetSide {
		return fmt.Errorf("model %s: images of %d x %d are too small for two convolutions and poolings; need at least %d x %d, or choose mlp",
			s.Name, i.Height, i.Width, lenetSide, lenetSide)
	}
	return nil
}

// convPool is a stage: a convolution, then the largest value of each 2 x 2 block, then bias and ReLU. Bias and ReLU keep the order
// of values. So after the pooling they give the same bits as before it, for a quarter of the work.
type convPool struct {
	layerName string
	conv      convolution
	pooled    Image

	y     kernels.Vec // batch x conv.out; after backward its gradient
	which kernels.Vec // batch x pooled: the places where MaxPool found the values
	out   kernels.Vec // batch x pooled
	grad  kernels.Vec // of out
}

func newConvPool(name string, conv convolution) *convPool {
	pooled := Image{Channels: conv.out.Channels, Height: conv.out.Height / 2, Width: conv.out.Width / 2}
	return &convPool{layerName: name, conv: conv, pooled: pooled}
}

func (s *convPool) name() string { return s.layerName }

func (s *convPool) params() []Param {
	return affine(s.layerName, s.conv.filters(), []int{s.conv.out.Channels}, s.conv.terms)
}

func (s *convPool) allocate(perSample, _ func(int) kernels.Vec) {
	s.y = perSample(s.conv.out.Values())
	s.which, s.out, s.grad = perSample(s.pooled.Values()), perSample(s.pooled.Values()), perSample(s.pooled.Values())
}

func (s *convPool) ends() (out, grad kernels.Vec) { return s.out, s.grad }

func (s *convPool) forward(dev *stream, p pass) {
	s.conv.forward(dev, p.n, p.in, p.params[0], s.y)
	dev.launch(kernels.MaxPool, kernels.Args{V: kernels.Vecs{s.y, s.out, s.which}, N: s.planes(p.n)})
	dev.launch(kernels.ChannelBiasReLU, kernels.Args{V: kernels.Vecs{s.out, p.params[1]}, N: s.positions(p.n)})
}

func (s *convPool) backward(dev *stream, p pass) {
	dev.launch(kernels.ReLUGrad, kernels.Args{V: kernels.Vecs{s.grad, s.out}, N: kernels.Sizes{p.n, s.pooled.Values()}})
	dev.launch(kernels.ChannelBiasGrad, kernels.Args{V: kernels.Vecs{s.grad, p.grads[1]}, N: s.positions(p.n)})
	dev.launch(kernels.MaxPoolGrad, kernels.Args{V: kernels.Vecs{s.grad, s.which, s.y}, N: s.planes(p.n)})
	if p.below.Len() == 0 {
		s.conv.backwardFilter(dev, p.n, p.in, s.y, p.grads[0])
		return
	}
	s.conv.backward(dev, p.n, p.in, s.y, p.params[0], p.below, p.grads[0], 0)
}

// planes are the sizes of MaxPool.
func (s *convPool) planes(n int) kernels.Sizes {
	return kernels.Sizes{n * s.conv.out.Channels, s.conv.out.Height, s.conv.out.Width}
}

// positions are the sizes of the kernels of a channel's bias.
func (s *convPool) positions(n int) kernels.Sizes {
	return kernels.Sizes{n, s.pooled.Channels, s.pooled.Height * s.pooled.Width}
}
