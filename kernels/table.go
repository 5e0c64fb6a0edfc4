package kernels

import (
	"fluentps/kernels/adam"
	"fluentps/kernels/axpy"
	"fluentps/kernels/batchnorm"
	"fluentps/kernels/biasgrad"
	"fluentps/kernels/biasrelu"
	"fluentps/kernels/channelbias"
	"fluentps/kernels/convolution"
	"fluentps/kernels/fill"
	"fluentps/kernels/gemm"
	"fluentps/kernels/globalavgpool"
	"fluentps/kernels/kernel"
	"fluentps/kernels/maxpool"
	"fluentps/kernels/sgd"
	"fluentps/kernels/shortcutpad"
	"fluentps/kernels/sigmoidxent"
	"fluentps/kernels/softmaxxent"
	"fluentps/kernels/targetloss"
)

// Table lists every kernel, in the order of the lines below. Every device runs all of them.
var Table []*Kernel

// The kernels, as models name them. The row of a kernel is in its folder and documents the arguments.
var (
	GemmNN             = row(gemm.GemmNN)
	GemmNT             = row(gemm.GemmNT)
	GemmTN             = row(gemm.GemmTN)
	BiasReLU           = row(biasrelu.BiasReLU)
	ReLUGrad           = row(biasrelu.ReLUGrad)
	BiasGrad           = row(biasgrad.BiasGrad)
	SoftmaxXent        = row(softmaxxent.SoftmaxXent)
	SigmoidXent        = row(sigmoidxent.SigmoidXent)
	MSELoss            = row(targetloss.MSELoss)
	HuberLoss          = row(targetloss.HuberLoss)
	Fill               = row(fill.Fill)
	Axpy               = row(axpy.Axpy)
	Scale              = row(axpy.Scale)
	SGD                = row(sgd.SGD)
	Momentum           = row(sgd.Momentum)
	Nesterov           = row(sgd.Nesterov)
	Adam               = row(adam.Adam)
	ConvForward        = row(convolution.ConvForward)
	ConvBackwardData   = row(convolution.ConvBackwardData)
	ConvBackwardFilter = row(convolution.ConvBackwardFilter)
	ConvBackward       = row(convolution.ConvBackward)
	ChannelBiasReLU    = row(channelbias.ChannelBiasReLU)
	ChannelBiasGrad    = row(channelbias.ChannelBiasGrad)
	MaxPool            = row(maxpool.MaxPool)
	MaxPoolGrad        = row(maxpool.MaxPoolGrad)
	BatchNorm          = row(batchnorm.BatchNorm)
	BatchNormEval      = row(batchnorm.BatchNormEval)
	BatchNormGrad      = row(batchnorm.BatchNormGrad)
	GlobalAvgPool      = row(globalavgpool.GlobalAvgPool)
	GlobalAvgPoolGrad  = row(globalavgpool.GlobalAvgPoolGrad)
	ShortcutPad        = row(shortcutpad.ShortcutPad)
	ShortcutPadGrad    = row(shortcutpad.ShortcutPadGrad)
)

func row(k *Kernel) *Kernel {
	Table = append(Table, k)
	return k
}

// The types of a launch, from package kernel.
type (
	Kernel  = kernel.Kernel
	Args    = kernel.Args
	Vec     = kernel.Vec
	Vecs    = kernel.Vecs
	Sizes   = kernel.Sizes
	Scalars = kernel.Scalars
	Counts  = kernel.Counts
)

// VecsMax is the largest number of vectors that a kernel takes.
const VecsMax = kernel.VecsMax

// Windows returns how many windows a convolution with these sizes has in each direction: rows and columns of its output.
func Windows(n Sizes) (height, width int) { return convolution.ShapeOf(n).Shape.Outputs() }
