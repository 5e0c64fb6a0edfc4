#include "../gpu.cuh"

// Batch norm. A block takes a share of the values of one channel (x): at most 16 for each of its 256 threads. The shares lie in y, and
// in z where there are more than y can have. The first step leaves two numbers for each share in scratch; each block of the second
// step, which has the same grid, combines those of its channel for itself, which takes less time than a launch between them would.

enum : int { threads = 256, at_once = 16, batch = 4 };

DEVICE unsigned shares() { return gridDim.y * gridDim.z; }
DEVICE int own_share() { return blockIdx.z * gridDim.y + blockIdx.y; }

// Walk goes over a block's share of a channel's values, 256 apart: at is where the thread's next one lies. A value's
// place takes two divisions; from there on, each step's is found without.
struct Walk {
	int at, left;                // so many values are left to the block from this one on
	int position, positions;     // in the plane
	int planes, rest, to_next;   // 256 values are `planes` images and `rest` positions further

	__device__ __forceinline__ Walk(int images, int channels, int size) {
		const int values = images * size, share = (values + shares() - 1) / shares();
		const int begin = own_share() * share, i = begin + threadIdx.x;
		left = min(values, begin + share) - i;
		positions = size;
		position = i % size;
		at = (i / size * channels + blockIdx.x) * size + position;
		rest = threads % size;
		planes = threads / size * channels * size + rest;
		to_next = (channels - 1) * size;
	}

	// places gives where the next values lie, -1 past the last. Their loads are then under way together.
	__device__ __forceinline__ void places(int (&place)[batch]) {
#pragma unroll
		for (int i = 0; i < batch; i++, next())
			place[i] = left > 0 ? at : -1;
	}

	__device__ __forceinline__ void next() {
		left -= threads;
		at += planes;
		position += rest;
		if (position >= positions) {
			position -= positions;
			at += to_next;
		}
	}
};

// share_count is how many values share i of a channel has.
DEVICE int share_count(int values, int i) {
	const int share = (values + shares() - 1) / shares();
	return max(0, min(values, (i + 1) * share) - i * share);
}

DEVICE float *share_of(float *scratch, int i) { return scratch + 2 * (i * gridDim.x + blockIdx.x); }

extern "C" __global__ void __launch_bounds__(threads)
batch_norm(const float *x, const float *scale, const float *shift, float *y, float *saved, const float *r, int images,
           int channels, int positions, int relu, float epsilon, float *scratch) {
	__shared__ float part[32];
	float v[at_once], sum = 0, squares = 0;
	Walk walk(images, channels, positions);
	const int first_left = walk.left;
#pragma unroll
	for (int i = 0; i < at_once; i++, walk.next()) {
		v[i] = walk.left > 0 ? x[walk.at] : 0;
		sum += v[i];
	}
	const int count = share_count(images * positions, own_share());
	// The deviations are from the share's own mean: squares of the values themselves would cancel.
	const float mean = block_sum(sum, part) / max(1, count);
#pragma unroll
	for (int i = 0; i < at_once; i++)
		if (first_left > i * threads)
			squares += (v[i] - mean) * (v[i] - mean);
	squares = block_sum(squares, part);
	if (threadIdx.x == 0) {
		share_of(scratch, own_share())[0] = mean;
		share_of(scratch, own_share())[1] = squares;
	}
}

// moments combines the shares of the block's channel: each warp does all of it, in the same order.
DEVICE void moments(float *scratch, int values, float &mean, float &variance) {
	const int lane = threadIdx.x % 32, all = shares();
	float sum = 0, squares = 0;
	for (int i = lane; i < all; i += 32)
		sum += share_of(scratch, i)[0] * share_count(values, i);
	mean = warp_sum(sum) / values;
	for (int i = lane; i < all; i += 32) {
		const float d = share_of(scratch, i)[0] - mean;
		squares += share_of(scratch, i)[1] + d * d * share_count(values, i);
	}
	variance = warp_sum(squares) / values;
}

// normalize writes y for the block's values. The mean is subtracted first: next to a large mean, factor*x and
// factor*mean would cancel. NaN stays NaN.
DEVICE void normalize(const float *x, float *y, const float *r, int images, int channels, int positions, int relu,
                      float mean, float factor, float shift) {
	for (Walk walk(images, channels, positions); walk.left > 0;) {
		int at[batch];
		float v[batch], other[batch];
		walk.places(at);
#pragma unroll
		for (int i = 0; i < batch; i++) {
			v[i] = pick(x, at[i], at[i] >= 0);
			other[i] = r ? pick(r, at[i], at[i] >= 0) : 0;
		}
#pragma unroll
		for (int i = 0; i < batch; i++) {
			const float value = factor * (v[i] - mean) + shift + other[i];
			if (at[i] >= 0)
				y[at[i]] = relu && value < 0 ? 0 : value;
		}
	}
}

extern "C" __global__ void __launch_bounds__(threads)
batch_norm_apply(const float *x, const float *scale, const float *shift, float *y, float *saved, const float *r, int images,
                 int channels, int positions, int relu, float epsilon, float *scratch) {
	const int c = blockIdx.x;
	float mean, variance;
	moments(scratch, images * positions, mean, variance);
	const float inverse = 1 / sqrtf(variance + epsilon);
	if (own_share() == 0 && threadIdx.x == 0) {
		saved[c] = mean;
		saved[channels + c] = inverse;
	}
	normalize(x, y, r, images, channels, positions, relu, mean, scale[c] * inverse, shift[c]);
}

extern "C" __global__ void __launch_bounds__(threads)
batch_norm_eval(const float *x, const float *scale, const float *shift, const float *mean, const float *variance, float *y,
                const float *r, int images, int channels, int positions, int relu, float epsilon) {
	const int c = blockIdx.x;
	const float inverse = 1 / sqrtf(variance[c] + epsilon);
	normalize(x, y, r, images, channels, positions, relu, mean[c], scale[c] * inverse, shift[c]);
}

// Gradient is some values' gradients dY, cut off where relu did, and X - mean; 0 past the last value.
struct Gradient {
	int at[batch];
	float dy[batch], x[batch];

	__device__ __forceinline__ void read(Walk &walk, const float *gradient, const float *y, const float *input, int relu, float mean) {
		float out[batch];
		walk.places(at);
#pragma unroll
		for (int i = 0; i < batch; i++) {
			dy[i] = pick(gradient, at[i], at[i] >= 0);
			x[i] = pick(input, at[i], at[i] >= 0);
			out[i] = relu ? pick(y, at[i], at[i] >= 0) : 1;
		}
#pragma unroll
		for (int i = 0; i < batch; i++) {
			dy[i] = out[i] > 0 ? dy[i] : 0;
			x[i] = at[i] >= 0 ? x[i] - mean : 0;
		}
	}
};

// The first step leaves, for each share, the sums of dY, cut off where relu did, and of its products with X - mean.
extern "C" __global__ void __launch_bounds__(threads)
batch_norm_grad(float *dy, const float *y, const float *x, const float *scale, const float *saved, float *d_scale,
                float *d_shift, float *dx, const float *mean_now, const float *variance_now, float *mean_next, float *variance_next,
                int images, int channels, int positions, int relu, float momentum, float epsilon, float *scratch) {
	__shared__ float part[32];
	const float mean = saved[blockIdx.x];
	float total = 0, along = 0;
	for (Walk walk(images, channels, positions); walk.left > 0;) {
		Gradient g;
		g.read(walk, dy, y, x, relu, mean);
#pragma unroll
		for (int i = 0; i < batch; i++) {
			total += g.dy[i];
			along += g.dy[i] * g.x[i];
		}
	}
	total = block_sum(total, part);
	along = block_sum(along, part);
	if (threadIdx.x == 0) {
		share_of(scratch, own_share())[0] = total;
		share_of(scratch, own_share())[1] = along;
	}
}

// next_statistics gives what a worker pushes for the running statistics of a channel: images times the next values.
DEVICE void next_statistics(float mean, float inverse, float count, int images, float mean_now, float variance_now, float momentum,
                            float epsilon, float &mean_next, float &variance_next) {
	float batch = 1 / (inverse * inverse) - epsilon;
	batch = (batch < 0 ? 0 : batch) * count / (count > 1 ? count - 1 : 1);
	mean_next = images * ((1 - momentum) * mean_now + momentum * mean);
	variance_next = images * ((1 - momentum) * variance_now + momentum * batch);
}

// dx may be the memory of x or of dy: a thread reads a value's operands before it writes.
extern "C" __global__ void __launch_bounds__(threads)
batch_norm_grad_apply(float *dy, const float *y, const float *x, const float *scale, const float *saved, float *d_scale,
                      float *d_shift, float *dx, const float *mean_now, const float *variance_now, float *mean_next,
                      float *variance_next, int images, int channels, int positions, int relu, float momentum, float epsilon,
                      float *scratch) {
	const int c = blockIdx.x;
	const float mean = saved[c], inverse = saved[channels + c];
	float total = 0, along = 0;
	for (int i = threadIdx.x % 32, all = shares(); i < all; i += 32) {
		total += share_of(scratch, i)[0];
		along += share_of(scratch, i)[1];
	}
	total = warp_sum(total);
	along = warp_sum(along) * inverse;
	if (own_share() == 0 && threadIdx.x == 0) {
		d_shift[c] = total;
		d_scale[c] = along;
		next_statistics(mean, inverse, (float)images * positions, images, mean_now[c], variance_now[c], momentum, epsilon,
		                mean_next[c], variance_next[c]);
	}
	const float count = images * positions, factor = scale[c] * inverse;
	const float offset = total / count, slope = along * inverse / count;
	for (Walk walk(images, channels, positions); walk.left > 0;) {
		Gradient g;
		g.read(walk, dy, y, x, relu, mean);
#pragma unroll
		for (int i = 0; i < batch; i++) {
			if (g.at[i] < 0)
				continue;
			if (relu)
				dy[g.at[i]] = g.dy[i];
			dx[g.at[i]] = factor * (g.dy[i] - offset - slope * g.x[i]);
		}
	}
}
