//go:build cuemu

// Made by make ptx: the kernels, compiled for the emulator, each file in a namespace of its own, and its entries listed.
#include "cuemu.h"

#include "../gpu.cuh"

namespace adam_cu {
#include "../adam/adam.cu"
CUEMU_ENTRY(adam)
} // namespace adam_cu

namespace axpy_cu {
#include "../axpy/axpy.cu"
CUEMU_ENTRY(axpy)
CUEMU_ENTRY(scale)
} // namespace axpy_cu

namespace batch_norm_cu {
#include "../batchnorm/batch_norm.cu"
CUEMU_ENTRY(batch_norm)
CUEMU_ENTRY(batch_norm_apply)
CUEMU_ENTRY(batch_norm_eval)
CUEMU_ENTRY(batch_norm_grad)
CUEMU_ENTRY(batch_norm_grad_apply)
CUEMU_ENTRY(batch_norm_running)
} // namespace batch_norm_cu

namespace bias_grad_cu {
#include "../biasgrad/bias_grad.cu"
CUEMU_ENTRY(bias_grad)
CUEMU_ENTRY(bias_grad_sum)
} // namespace bias_grad_cu

namespace bias_relu_cu {
#include "../biasrelu/bias_relu.cu"
CUEMU_ENTRY(bias_relu)
CUEMU_ENTRY(relu_grad)
} // namespace bias_relu_cu

namespace channel_bias_cu {
#include "../channelbias/channel_bias.cu"
CUEMU_ENTRY(channel_bias_relu)
CUEMU_ENTRY(channel_bias_grad)
CUEMU_ENTRY(channel_bias_grad_sum)
} // namespace channel_bias_cu

namespace conv_cu {
#include "../convolution/conv.cu"
CUEMU_ENTRY(conv_forward_3_32)
CUEMU_ENTRY(conv_forward_3_16)
CUEMU_ENTRY(conv_forward_3_8)
CUEMU_ENTRY(conv_forward_5_32)
CUEMU_ENTRY(conv_forward_5_16)
CUEMU_ENTRY(conv_backward_data_3_32)
CUEMU_ENTRY(conv_backward_data_3_16)
CUEMU_ENTRY(conv_backward_data_3_8)
CUEMU_ENTRY(conv_backward_data_5_32)
CUEMU_ENTRY(conv_backward_data_5_16)
CUEMU_ENTRY(conv_forward_3)
CUEMU_ENTRY(conv_forward)
CUEMU_ENTRY(conv_backward_data_3)
CUEMU_ENTRY(conv_backward_data)
} // namespace conv_cu

namespace conv_backward_filter_cu {
#include "../convolution/conv_backward_filter.cu"
CUEMU_ENTRY(conv_backward_filter_3_32)
CUEMU_ENTRY(conv_backward_filter_3_16)
CUEMU_ENTRY(conv_backward_filter_3_8)
CUEMU_ENTRY(conv_backward_filter_3_sum)
CUEMU_ENTRY(conv_backward_filter)
CUEMU_ENTRY(conv_backward_filter_sum)
} // namespace conv_backward_filter_cu

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

namespace global_avg_pool_cu {
#include "../globalavgpool/global_avg_pool.cu"
CUEMU_ENTRY(global_avg_pool)
CUEMU_ENTRY(global_avg_pool_grad)
} // namespace global_avg_pool_cu

namespace max_pool_cu {
#include "../maxpool/max_pool.cu"
CUEMU_ENTRY(max_pool)
CUEMU_ENTRY(max_pool_grad)
} // namespace max_pool_cu

namespace sgd_cu {
#include "../sgd/sgd.cu"
CUEMU_ENTRY(sgd)
CUEMU_ENTRY(momentum)
CUEMU_ENTRY(nesterov)
} // namespace sgd_cu

namespace shortcut_pad_cu {
#include "../shortcutpad/shortcut_pad.cu"
CUEMU_ENTRY(shortcut_pad)
CUEMU_ENTRY(shortcut_pad_grad)
} // namespace shortcut_pad_cu

namespace sigmoid_xent_cu {
#include "../sigmoidxent/sigmoid_xent.cu"
CUEMU_ENTRY(sigmoid_xent)
} // namespace sigmoid_xent_cu

namespace softmax_xent_cu {
#include "../softmaxxent/softmax_xent.cu"
CUEMU_ENTRY(softmax_xent)
} // namespace softmax_xent_cu
