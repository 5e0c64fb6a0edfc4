package kernels

import (
	"fluentps/kernels/adam"
	"fluentps/kernels/axpy"
	"fluentps/kernels/lars"
	"fluentps/kernels/residualadd"
	"fluentps/kernels/sgd"
	"fluentps/kernels/sumofparts"
)

var (
	gpuAxpy        = gpuElements(axpy.Source, axpy.PTX, "axpy", 2, 1, 1)
	gpuScale       = gpuElements(axpy.Source, axpy.PTX, "scale", 2, 1, 1)
	gpuResidualAdd = gpuElements(residualadd.Source, residualadd.PTX, "residual_add", 3, 1, 0)
	gpuSumOfParts  = gpuElements(sumofparts.Source, sumofparts.PTX, "sum_of_parts", 2, 3, 0)
	gpuSGD         = gpuElements(sgd.Source, sgd.PTX, "sgd", 3, 1, 3)
	gpuMomentum    = gpuElements(sgd.Source, sgd.PTX, "momentum", 4, 1, 4)
	gpuNesterov    = gpuElements(sgd.Source, sgd.PTX, "nesterov", 4, 1, 4)
	gpuAdam        = gpuElements(adam.Source, adam.PTX, "adam", 6, 1, 4)
	gpuLARS        = gpuElements(lars.Source, lars.PTX, "lars", 5, 1, 4)

	gpuLARSRate = &CUDA{
		Source: lars.Source, PTX: lars.PTX, Vecs: 3, Sizes: 1, Scalars: 3,
		Scratch: func(n Sizes) int { return 1 + 4*rateBlocks(n) },
		Steps: func(n Sizes) [4]Step {
			block := [3]int{gpuThreads, 1, 1}
			return [4]Step{{"lars_rate", [3]int{rateBlocks(n), 1, 1}, block}, {"lars_rate_sum", [3]int{1, 1, 1}, block}}
		},
	}
)

// gpuElements is a kernel whose first size counts the elements that it walks over.
func gpuElements(source, ptx, entry string, vecs, sizes, scalars int) *CUDA {
	return &CUDA{
		Source: source, PTX: ptx, Vecs: vecs, Sizes: sizes, Scalars: scalars,
		Steps: func(n Sizes) [4]Step { return elements(entry, n[0]) },
	}
}

func rateBlocks(n Sizes) int { return max(1, min(blocks(n[0], 8*gpuThreads), gpuBlocks)) }
