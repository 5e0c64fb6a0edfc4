//go:build cuemu && !races

// Made by make ptx: the kernels, compiled for the emulator, each file in a namespace of its own, and its entries listed.
#include "cuemu.h"

#include "../gpu.cuh"
#include "pick.h"

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
CUEMU_ENTRY(batch_norm, 256)
CUEMU_ENTRY(batch_norm_apply, 256)
CUEMU_ENTRY(batch_norm_eval, 256)
CUEMU_ENTRY(batch_norm_grad, 256)
CUEMU_ENTRY(batch_norm_grad_apply, 256)
} // namespace batch_norm_cu

namespace bias_grad_cu {
#include "../biasgrad/bias_grad.cu"
CUEMU_ENTRY(bias_grad, 256)
CUEMU_ENTRY(bias_grad_sum, 256)
} // namespace bias_grad_cu

namespace bias_relu_cu {
#include "../biasrelu/bias_relu.cu"
CUEMU_ENTRY(bias_relu)
CUEMU_ENTRY(relu_grad)
} // namespace bias_relu_cu

namespace channel_bias_cu {
#include "../channelbias/channel_bias.cu"
CUEMU_ENTRY(channel_bias_relu)
CUEMU_ENTRY(channel_bias_grad, 256)
CUEMU_ENTRY(channel_bias_grad_sum, 256)
} // namespace channel_bias_cu

namespace conv_cu {
#include "../convolution/conv.cu"
CUEMU_ENTRY(conv_forward_3_32, 128)
CUEMU_ENTRY(conv_forward_3_16, 128)
CUEMU_ENTRY(conv_forward_3_16_more, 256)
CUEMU_ENTRY(conv_forward_3_8, 128)
CUEMU_ENTRY(conv_forward_3_8_more, 256)
CUEMU_ENTRY(conv_forward_5_32, 128)
CUEMU_ENTRY(conv_forward_5_16, 64)
CUEMU_ENTRY(conv_forward_3, 128)
CUEMU_ENTRY(conv_forward, 128)
} // namespace conv_cu

namespace conv_backward_cu {
#include "../convolution/conv_backward.cu"
CUEMU_ENTRY(conv_backward_data_3_32, 128)
CUEMU_ENTRY(conv_backward_data_3_16, 128)
CUEMU_ENTRY(conv_backward_data_3_16_more, 256)
CUEMU_ENTRY(conv_backward_data_3_8, 128)
CUEMU_ENTRY(conv_backward_data_3_8_more, 256)
CUEMU_ENTRY(conv_backward_data_5_32, 128)
CUEMU_ENTRY(conv_backward_data_5_16, 64)
CUEMU_ENTRY(conv_backward_data_3_halved_16, 128)
CUEMU_ENTRY(conv_backward_data_3_halved_8, 256)
CUEMU_ENTRY(conv_backward_data_3, 128)
CUEMU_ENTRY(conv_backward_data, 128)
CUEMU_ENTRY(conv_backward_filter_3_32, 256)
CUEMU_ENTRY(conv_backward_filter_3_16, 256)
CUEMU_ENTRY(conv_backward_filter_3_8, 256)
CUEMU_ENTRY(conv_backward_filter, 128)
CUEMU_ENTRY(conv_backward_filter_3_sum, 256)
CUEMU_ENTRY(conv_backward_filter_sum, 256)
} // namespace conv_backward_cu

namespace fill_cu {
#include "../fill/fill.cu"
CUEMU_ENTRY(fill)
} // namespace fill_cu

namespace gemm_cu {
#include "../gemm/gemm.cu"
CUEMU_ENTRY(gemm_nn, 256)
CUEMU_ENTRY(gemm_nt, 256)
CUEMU_ENTRY(gemm_tn, 256)
CUEMU_ENTRY(gemm_nn_small, 256)
CUEMU_ENTRY(gemm_nt_small, 256)
CUEMU_ENTRY(gemm_tn_small, 256)
CUEMU_ENTRY(gemm_sum, 256)
} // namespace gemm_cu

namespace global_avg_pool_cu {
#include "../globalavgpool/global_avg_pool.cu"
CUEMU_ENTRY(global_avg_pool, 256)
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
CUEMU_ENTRY(softmax_xent, 256)
} // namespace softmax_xent_cu

namespace target_loss_cu {
#include "../targetloss/target_loss.cu"
CUEMU_ENTRY(mse_loss)
CUEMU_ENTRY(huber_loss)
} // namespace target_loss_cu
