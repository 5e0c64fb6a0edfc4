//go:build cuemu && !races

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

// In hasty_warp the first lane of each warp writes twice to shared memory. x becomes the first value of warp 1, unless warp 1 has already
// written the second one.
extern "C" __global__ void hasty_warp(float *x) {
	__shared__ float shelf[32];
	int warp = threadIdx.x / 32;
	if (threadIdx.x % 32 == 0)
		shelf[warp] = warp;
	__syncthreads();
	float seen = shelf[1];
	if (threadIdx.x % 32 == 0)
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

extern "C" __global__ void before_the_scratch(float *x, float *scratch) {
	if (threadIdx.x == 0)
		scratch[-1] = x[0];
}

extern "C" __global__ void division_by_zero(float *x) { x[threadIdx.x] = 7 / (int)(threadIdx.x - 3); }

extern "C" __global__ void __launch_bounds__(64) few_threads(float *x) { x[threadIdx.y * 5 + threadIdx.x] = 1; }

// In same_element all blocks write one element, though with one value.
extern "C" __global__ void same_element(float *x) {
	if (threadIdx.x == 0)
		x[2] = 1;
}

// In next_block each block reads what the next one writes.
extern "C" __global__ void next_block(float *x) {
	if (threadIdx.x == 0)
		x[blockIdx.x] = x[blockIdx.x + 1];
}

// In reverse_warp a lane reads what another lane of its warp has written. A shuffle orders no memory.
template <int ORDER> DEVICE void reverse_warp(float *x, float *shelf) {
	const int lane = threadIdx.x % 32;
	shelf[threadIdx.x] = x[threadIdx.x];
	if (ORDER == 1)
		warp_sum(0);
	if (ORDER == 2)
		__syncwarp();
	x[threadIdx.x] = shelf[threadIdx.x - lane + 31 - lane];
}

extern "C" __global__ void warp_in_order(float *x) {
	__shared__ float shelf[64];
	reverse_warp<2>(x, shelf);
}

extern "C" __global__ void warp_shuffled(float *x) {
	__shared__ float shelf[64];
	reverse_warp<1>(x, shelf);
}

// In some_lanes the lanes that wait for each other are not those that exchange something, if ALL is not set.
template <bool ALL> DEVICE void some_lanes(float *x, float *shelf) {
	shelf[threadIdx.x] = x[threadIdx.x];
	if (ALL || threadIdx.x % 2 == 0)
		__syncwarp(ALL ? all_lanes : 0x55555555u);
	x[threadIdx.x] = shelf[threadIdx.x % 2 == 0 ? (threadIdx.x + 2) % 32 : (threadIdx.x + (ALL ? 2 : 0)) % 32];
	__syncwarp(ALL ? all_lanes : 0x0000ffffu << threadIdx.x / 16 * 16);
	shelf[threadIdx.x] = 0;
}

extern "C" __global__ void all_lanes_wait(float *x) {
	__shared__ float shelf[32];
	some_lanes<true>(x, shelf);
}

extern "C" __global__ void half_of_lanes_wait(float *x) {
	__shared__ float shelf[32];
	some_lanes<false>(x, shelf);
}

// In forgotten only half of the elements that are read were written, the others hold what the block before has left.
extern "C" __global__ void forgotten(float *x) {
	__shared__ float shelf[64];
	if (blockIdx.x == 0 || threadIdx.x < 40)
		shelf[threadIdx.x] = 1;
	__syncthreads();
	x[blockIdx.x * blockDim.x + threadIdx.x] = shelf[threadIdx.x];
}

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
CUEMU_ENTRY(before_the_scratch)
CUEMU_ENTRY(division_by_zero)
CUEMU_ENTRY(few_threads, 64)
CUEMU_ENTRY(same_element)
CUEMU_ENTRY(next_block)
CUEMU_ENTRY(warp_in_order)
CUEMU_ENTRY(warp_shuffled)
CUEMU_ENTRY(all_lanes_wait)
CUEMU_ENTRY(half_of_lanes_wait)
CUEMU_ENTRY(forgotten)
CUEMU_ENTRY(positions)

} // namespace faulty
