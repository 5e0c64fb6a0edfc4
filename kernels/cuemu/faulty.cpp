//go:build cuemu

// Kernels with the faults that the emulator must find, for its own tests.
#include "cuemu.h"

#include "../gpu.cuh"

namespace faulty {

// reverse_block reverses each block's part of x. It is correct unless the barrier is missing.
template <bool BARRIER> DEVICE void reverse_block(float *x, float *shelf) {
	int i = threadIdx.x;
	shelf[i] = x[blockIdx.x * blockDim.x + i];
	if (BARRIER)
		__syncthreads();
	x[blockIdx.x * blockDim.x + i] = shelf[blockDim.x - 1 - i];
}

extern "C" __global__ void with_barrier(float *x) {
	__shared__ float shelf[1024];
	reverse_block<true>(x, shelf);
}

extern "C" __global__ void missing_barrier(float *x) {
	__shared__ float shelf[1024];
	reverse_block<false>(x, shelf);
}

// In hasty_warp each warp writes twice to shared memory. x becomes the first value of warp 1, unless warp 1 has already
// written the second one.
extern "C" __global__ void hasty_warp(float *x) {
	__shared__ float shelf[32];
	int warp = threadIdx.x / 32;
	shelf[warp] = warp;
	__syncthreads();
	float seen = shelf[1];
	shelf[warp] = -1;
	x[threadIdx.x] = seen;
}

extern "C" __global__ void divergent_barrier(float *x) {
	if (threadIdx.x < 40)
		__syncthreads();
	x[threadIdx.x] = 1;
}

extern "C" __global__ void two_barriers(float *x) {
	if (threadIdx.x % 2 == 0)
		__syncthreads();
	else
		__syncthreads();
	x[threadIdx.x] = 1;
}

extern "C" __global__ void absent_lanes(float *x) {
	if (threadIdx.x % 32 < 16)
		x[threadIdx.x] = __shfl_xor_sync(all_lanes, x[threadIdx.x], 1);
}

extern "C" __global__ void beyond_the_end(float *x) { x[threadIdx.x + 1] = 1; }

extern "C" __global__ void before_the_start(float *x) {
	if (threadIdx.x == 0)
		x[-1] = 1;
}

extern "C" __global__ void division_by_zero(float *x) { x[0] = 7 / (int)(threadIdx.x - 3); }

extern "C" __global__ void __launch_bounds__(64) few_threads(float *x) { x[threadIdx.x] = 1; }

// positions writes each thread's position in the launch, and the values that other lanes of its warp send.
extern "C" __global__ void positions(float *x) {
	int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
	int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
	int i = block * blockDim.x * blockDim.y * blockDim.z + thread;
	float mine = thread % 32;
	x[6 * i] = i;
	x[6 * i + 1] = __shfl_down_sync(all_lanes, mine, 5);
	x[6 * i + 2] = __shfl_up_sync(all_lanes, mine, 7);
	x[6 * i + 3] = __shfl_xor_sync(all_lanes, mine, 9);
	x[6 * i + 4] = __shfl_sync(all_lanes, mine, 11);
	x[6 * i + 5] = warp_sum(mine);
}

CUEMU_ENTRY(with_barrier)
CUEMU_ENTRY(missing_barrier)
CUEMU_ENTRY(hasty_warp)
CUEMU_ENTRY(divergent_barrier)
CUEMU_ENTRY(two_barriers)
CUEMU_ENTRY(absent_lanes)
CUEMU_ENTRY(beyond_the_end)
CUEMU_ENTRY(before_the_start)
CUEMU_ENTRY(division_by_zero)
CUEMU_ENTRY(few_threads, 64)
CUEMU_ENTRY(positions)

} // namespace faulty
