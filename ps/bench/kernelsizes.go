package bench

import "fluentps/kernels"

// kernelLaunch is the sizes of a kernel in a layer, for batches of 128.
type kernelLaunch struct {
	layer string
	n     []int
}

func (l kernelLaunch) sizes() (n kernels.Sizes) {
	copy(n[:], l.n)
	return n
}

// Layers of the MLP 784-256-128-10, of LeNet on images of 28 x 28, and of ResNet-20 on 32 x 32 x 3.
var (
	forwardProducts = []kernelLaunch{
		{"mlp fc1", []int{128, 256, 784}}, {"mlp fc2", []int{128, 128, 256}}, {"mlp fc3", []int{128, 10, 128}},
		{"lenet fc1", []int{128, 120, 400}}, {"resnet20 fc", []int{128, 10, 64}},
	}
	inputProducts = []kernelLaunch{
		{"mlp fc2", []int{128, 256, 128}}, {"mlp fc3", []int{128, 128, 10}}, {"lenet fc1", []int{128, 400, 120}}, {"resnet20 fc", []int{128, 64, 10}},
	}
	weightProducts = []kernelLaunch{
		{"mlp fc1", []int{256, 784, 128}}, {"mlp fc2", []int{128, 256, 128}}, {"mlp fc3", []int{10, 128, 128}},
		{"lenet fc1", []int{120, 400, 128}}, {"resnet20 fc", []int{10, 64, 128}},
	}
	convolutions = []kernelLaunch{
		{"lenet conv1", []int{128, 1, 28, 28, 6, 5, 1, 2}}, {"lenet conv2", []int{128, 6, 14, 14, 16, 5, 1, 0}},
		{"resnet20 conv1", []int{128, 3, 32, 32, 16, 3, 1, 1}}, {"resnet20 group1", []int{128, 16, 32, 32, 16, 3, 1, 1}},
		{"resnet20 group2 first", []int{128, 16, 32, 32, 32, 3, 2, 1}}, {"resnet20 group2", []int{128, 32, 16, 16, 32, 3, 1, 1}},
		{"resnet20 group3 first", []int{128, 32, 16, 16, 64, 3, 2, 1}}, {"resnet20 group3", []int{128, 64, 8, 8, 64, 3, 1, 1}},
	}
	denseOutputs   = []kernelLaunch{{"mlp fc1", []int{128, 256}}, {"mlp fc2", []int{128, 128}}, {"lenet fc1", []int{128, 120}}}
	logits         = []kernelLaunch{{"mlp", []int{128, 10}}}
	channelOutputs = []kernelLaunch{{"lenet conv1", []int{128, 6, 784}}, {"lenet conv2", []int{128, 16, 100}}}
	pools          = []kernelLaunch{{"lenet pool1", []int{768, 28, 28}}, {"lenet pool2", []int{2048, 10, 10}}}
	normalized     = []kernelLaunch{
		{"resnet20 group1", []int{128, 16, 1024, 1}}, {"resnet20 group2", []int{128, 32, 256, 1}}, {"resnet20 group3", []int{128, 64, 64, 1}},
	}
	averages  = []kernelLaunch{{"resnet20", []int{128, 64, 64}}}
	shortcuts = []kernelLaunch{{"resnet20 group2", []int{128, 16, 32, 32, 32}}, {"resnet20 group3", []int{128, 32, 16, 16, 64}}}
	additions = []kernelLaunch{{"resnet20 group1", []int{2_097_152}}, {"resnet20 group2", []int{1_048_576}}, {"resnet20 group3", []int{524_288}}}
	models    = []kernelLaunch{{"lenet", []int{61_706}}, {"mlp", []int{235_146}}, {"resnet20", []int{269_722}}}
	parts     = []kernelLaunch{{"mlp, 8 workers", []int{235_146, 8, 235_146}}, {"resnet20, 8 workers", []int{269_722, 8, 269_722}}}
	largest   = []kernelLaunch{{"mlp, 1 %", []int{235_146, 2352}}, {"resnet20, 1 %", []int{269_722, 2698}}}
)

// launchesOf lists what of k is timed; a kernel that is not named here works on all parameters of a model.
func launchesOf(k *kernels.Kernel) []kernelLaunch {
	switch k {
	case kernels.GemmNT:
		return forwardProducts
	case kernels.GemmNN:
		return inputProducts
	case kernels.GemmTN:
		return weightProducts
	case kernels.ConvForward, kernels.ConvBackwardData, kernels.ConvBackwardFilter:
		return convolutions
	case kernels.BiasReLU, kernels.ReLUGrad, kernels.BiasGrad:
		return denseOutputs
	case kernels.SoftmaxXent:
		return logits
	case kernels.SigmoidXent:
		return []kernelLaunch{{"logistic", []int{128}}}
	case kernels.ChannelBiasReLU, kernels.ChannelBiasGrad:
		return channelOutputs
	case kernels.MaxPool, kernels.MaxPoolGrad:
		return pools
	case kernels.BatchNorm, kernels.BatchNormEval, kernels.BatchNormGrad, kernels.BatchNormRunning:
		return normalized
	case kernels.GlobalAvgPool, kernels.GlobalAvgPoolGrad:
		return averages
	case kernels.ShortcutPad, kernels.ShortcutPadGrad:
		return shortcuts
	case kernels.ResidualAdd:
		return additions
	case kernels.SumOfParts:
		return parts
	case kernels.TopK:
		return largest
	}
	return models
}

// scalarsOf are such that a kernel launched many times over its own output stays finite.
func scalarsOf(k *kernels.Kernel) kernels.Scalars {
	const rate, perSample, decay, momentum, epsilon = 0.01, 1. / 128, 1e-4, 0.9, 1e-5
	switch k {
	case kernels.BatchNorm, kernels.BatchNormEval:
		return kernels.Scalars{epsilon}
	case kernels.BatchNormRunning:
		return kernels.Scalars{0.1, epsilon}
	case kernels.SGD, kernels.Momentum, kernels.Nesterov, kernels.LARS:
		return kernels.Scalars{rate, perSample, decay, momentum}
	case kernels.Adam:
		return kernels.Scalars{perSample, decay, rate, 1}
	case kernels.LARSRate:
		return kernels.Scalars{perSample, decay, rate}
	case kernels.TopK:
		return kernels.Scalars{-1}
	case kernels.Axpy, kernels.Scale, kernels.Fill:
		return kernels.Scalars{rate}
	}
	return kernels.Scalars{} // products and convolutions: nothing is added to what was there
}

// isPositive says that values of vector v lie in [0, 1): class numbers, all 0 then, places in a block, and variances.
func isPositive(k *kernels.Kernel, v int) bool {
	switch k {
	case kernels.SoftmaxXent, kernels.SigmoidXent, kernels.MaxPoolGrad:
		return v == 1
	case kernels.BatchNormEval, kernels.Adam:
		return v == 4
	case kernels.BatchNormRunning:
		return v == 2
	}
	return false
}
