//go:build cuemu

// The kernels, compiled for the emulator: each file in a namespace of its own, and its entries listed.
#include "cuemu.h"

#include "../gpu.cuh"

namespace bias_relu_cu {
#include "../biasrelu/bias_relu.cu"
CUEMU_ENTRY(bias_relu)
CUEMU_ENTRY(relu_grad)
} // namespace bias_relu_cu

namespace fill_cu {
#include "../fill/fill.cu"
CUEMU_ENTRY(fill)
} // namespace fill_cu

namespace gemm_cu {
#include "../gemm/gemm.cu"
CUEMU_ENTRY(gemm_nn)
CUEMU_ENTRY(gemm_nt)
CUEMU_ENTRY(gemm_tn)
CUEMU_ENTRY(gemm_nn_small)
CUEMU_ENTRY(gemm_nt_small)
CUEMU_ENTRY(gemm_tn_small)
CUEMU_ENTRY(gemm_sum)
} // namespace gemm_cu
