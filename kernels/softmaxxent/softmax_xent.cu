#include "../gpu.cuh"

// best_of keeps the larger of two logits, of equal ones the first.
DEVICE void best_of(float &top, int &best, float v, int j) {
	if (v > top || (v == top && j < best)) {
		top = v;
		best = j;
	}
}

// A warp takes a row. Lanes read and write the same columns, so that g may be z. The first logit and the label's are read by all
// lanes: __syncwarp makes sure that they have done so before any lane writes. An exchange does not order memory. A NaN
// anywhere in the row makes the sum NaN.
extern "C" __global__ void __launch_bounds__(256)
softmax_xent(const float *z, const float *labels, float *g, float *loss, float *hit, int rows, int cols) {
	const int lane = threadIdx.x % 32;
	for (int i = first() / 32; i < rows; i += stride() / 32) {
		const float *row = z + i * cols;
		const int label = (int)labels[i];
		const float target = row[label];
		float top = row[0], sum = 0;
		int best = 0;
		for (int j = lane; j < cols; j += 32)
			best_of(top, best, row[j], j);
		for (int d = 16; d > 0; d /= 2) {
			float v = __shfl_xor_sync(all_lanes, top, d);
			int j = __shfl_xor_sync(all_lanes, best, d);
			best_of(top, best, v, j);
		}
		for (int j = lane; j < cols; j += 32)
			sum += expf(row[j] - top);
		sum = warp_sum(sum);
		const float cost = logf(sum) + (top - target);
		if (lane == 0) {
			loss[i] = cost;
			hit[i] = best == label && cost == cost;
		}
		__syncwarp();
		if (g)
			for (int j = lane; j < cols; j += 32)
				g[i * cols + j] = expf(row[j] - top) / sum - (j == label);
	}
}
