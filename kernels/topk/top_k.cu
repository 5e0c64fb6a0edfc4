#include "../gpu.cuh"

// top_k takes four steps of the same grid; block b has the b-th part of the elements in all of them. The first three
// count magnitudes by 11, 11 and 9 bits, upper bits first, each only those that have the bits found so far. Blocks keep
// counts of their own, from which the fourth step knows where each block's choice begins in what is sent. Counters are
// integers: their sums do not depend on an order.

enum : int { threads = 1024, bins = 2048 };

// Counts is what a block leaves in scratch.
struct Counts {
	int above_threshold;
	int of[3][bins];
};

// Head precedes them: what a step's first block found out from the counts of the step before.
struct Head {
	unsigned at[3]; // the upper 11, 22 and 31 bits of the k-th largest magnitude
	int left[3];    // how many of those that have these bits are chosen
};

DEVICE Head *head(float *scratch) { return reinterpret_cast<Head *>(scratch); }
DEVICE Counts *counts(float *scratch, int block) { return reinterpret_cast<Counts *>(scratch + sizeof(Head) / 4) + block; }

// magnitude is |x| as bits, which as integers have the order of the numbers.
DEVICE unsigned magnitude(float x) { return __float_as_uint(x) & 0x7fffffff; }

DEVICE int part_begin(int n, int block) { return (long long)n * block / gridDim.x; }

// scan returns the sum of v over the threads before this one, and in total that over all.
DEVICE int scan(int v, int part[32], int &total) {
	const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
	int sum = v;
	for (int d = 1; d < 32; d *= 2) {
		const int before = __shfl_up_sync(all_lanes, sum, d);
		sum += lane >= d ? before : 0;
	}
	if (lane == 31)
		part[warp] = sum;
	__syncthreads();
	int before = 0;
	total = 0;
	for (int i = 0; i < threads / 32; i++) {
		before += i < warp ? part[i] : 0;
		total += part[i];
	}
	__syncthreads();
	return before + sum - v;
}

// find looks for the bin, from the last one down, that holds the k-th element; its number of elements still wanted
// takes k's place. Thread t has bins 2047-2t and 2046-2t. All threads get the answer.
DEVICE void find(float *scratch, int pass, int &k, unsigned &bin, int part[32], int answer[2]) {
	const int upper = bins - 1 - 2 * threadIdx.x;
	int high = 0, low = 0, total;
	for (int b = 0, blocks = gridDim.x; b < blocks; b++) {
		high += counts(scratch, b)->of[pass][upper];
		low += counts(scratch, b)->of[pass][upper - 1];
	}
	const int before = scan(high + low, part, total);
	if (before < k && k <= before + high) {
		answer[0] = upper;
		answer[1] = k - before;
	} else if (before + high < k && k <= before + high + low) {
		answer[0] = upper - 1;
		answer[1] = k - before - high;
	}
	__syncthreads();
	bin = answer[0];
	k = answer[1];
	__syncthreads();
}

// count_bins leaves the block's counts of a pass; key(i) is the bin of element i, or -1.
template <class Key> DEVICE void count_bins(int *shelf, int *result, int begin, int end, Key key) {
	for (int i = threadIdx.x; i < bins; i += threads)
		shelf[i] = 0;
	__syncthreads();
	for (int i = begin + threadIdx.x; i < end; i += threads) {
		const int bin = key(i);
		if (bin >= 0)
			atomicAdd(&shelf[bin], 1);
	}
	__syncthreads();
	for (int i = threadIdx.x; i < bins; i += threads)
		result[i] = shelf[i];
}

extern "C" __global__ void __launch_bounds__(threads)
top_k(const float *x, float *residual, float *sent, int n, int k, float threshold, float *scratch) {
	__shared__ int shelf[bins], above[1];
	Counts *mine = counts(scratch, blockIdx.x);
	if (threadIdx.x == 0)
		above[0] = 0;
	__syncthreads();
	count_bins(shelf, mine->of[0], part_begin(n, blockIdx.x), part_begin(n, blockIdx.x + 1), [&](int i) {
		float v = x[i];
		if (residual)
			residual[i] = v = residual[i] + v;
		if (magnitude(v) > magnitude(threshold))
			atomicAdd(above, 1);
		return (int)(magnitude(v) >> 20);
	});
	if (threadIdx.x == 0)
		mine->above_threshold = above[0];
}

extern "C" __global__ void __launch_bounds__(threads)
top_k_second(const float *x, float *residual, float *sent, int n, int k, float threshold, float *scratch) {
	__shared__ int shelf[bins], part[32], answer[2];
	const float *v = residual ? residual : x;
	unsigned at = 0;
	k = min(k, n);
	if (k > 0)
		find(scratch, 0, k, at, part, answer);
	if (blockIdx.x + threadIdx.x == 0)
		*head(scratch) = Head{{at}, {k}};
	count_bins(shelf, counts(scratch, blockIdx.x)->of[1], part_begin(n, blockIdx.x), part_begin(n, blockIdx.x + 1),
	           [&](int i) { return magnitude(v[i]) >> 20 == at ? (int)(magnitude(v[i]) >> 9 & 2047) : -1; });
}

extern "C" __global__ void __launch_bounds__(threads)
top_k_third(const float *x, float *residual, float *sent, int n, int k, float threshold, float *scratch) {
	__shared__ int shelf[bins], part[32], answer[2];
	const float *v = residual ? residual : x;
	unsigned at = head(scratch)->at[0], bin = 0;
	k = head(scratch)->left[0];
	if (k > 0)
		find(scratch, 1, k, bin, part, answer);
	at = at << 11 | bin;
	if (blockIdx.x + threadIdx.x == 0) {
		head(scratch)->at[1] = at;
		head(scratch)->left[1] = k;
	}
	count_bins(shelf, counts(scratch, blockIdx.x)->of[2], part_begin(n, blockIdx.x), part_begin(n, blockIdx.x + 1),
	           [&](int i) { return magnitude(v[i]) >> 9 == at ? (int)(magnitude(v[i]) & 511) : -1; });
}

// Choice is what is sent: magnitudes above at, and the first `ties` of those equal to it.
struct Choice {
	unsigned at;
	int ties;
	bool by_threshold;
	unsigned bin[3]; // of at
};

// above is how many elements of a block are above the choice's magnitude.
DEVICE int above(float *scratch, const Choice &c, int block, int part[32]) {
	const Counts *of = counts(scratch, block);
	if (c.by_threshold)
		return of->above_threshold;
	int sum = 0, total;
	for (int pass = 0; pass < 3; pass++)
		for (int i = threadIdx.x; i < bins; i += threads)
			sum += i > (int)c.bin[pass] ? of->of[pass][i] : 0;
	scan(sum, part, total);
	return total;
}

extern "C" __global__ void __launch_bounds__(threads)
top_k_send(const float *x, float *residual, float *sent, int n, int k, float threshold, float *scratch) {
	__shared__ int part[32], answer[2];
	const float *v = residual ? residual : x;
	int over = 0, place = 0, tied = 0, left = head(scratch)->left[1], total;
	for (int b = 0, blocks = gridDim.x; b < blocks; b++)
		over += counts(scratch, b)->above_threshold;
	Choice c = {magnitude(threshold), 0, threshold >= 0 && over <= min(k, n), {0, 0, 0}};
	if (!c.by_threshold && left > 0) {
		find(scratch, 2, left, c.bin[2], part, answer);
		c.bin[0] = head(scratch)->at[0];
		c.bin[1] = head(scratch)->at[1] & 2047;
		c.at = head(scratch)->at[1] << 9 | c.bin[2];
		c.ties = left;
	}
	const bool none = !c.by_threshold && left == 0; // of no element k is 0
	for (int b = 0, before = blockIdx.x; b < before && !none; b++) {
		place += above(scratch, c, b, part);
		tied += c.by_threshold ? 0 : counts(scratch, b)->of[2][c.bin[2]];
	}
	const int begin = part_begin(n, blockIdx.x), end = part_begin(n, blockIdx.x + 1);
	for (int from = begin; from < end && !none; from += threads) {
		const int i = from + threadIdx.x;
		const unsigned m = i < end ? magnitude(v[i]) : 0;
		const bool more = i < end && m > c.at, equal = i < end && m == c.at;
		// Both counts of up to 1024 in one word.
		const int before = scan(more | equal << 16, part, total);
		const int ties = tied + (before >> 16);
		if (more || (equal && ties < c.ties)) {
			const int to = place + (before & 0xffff) + min(ties, c.ties);
			sent[1 + 2 * to] = __uint_as_float(i);
			sent[2 + 2 * to] = v[i];
			if (residual)
				residual[i] = 0;
		}
		place += total & 0xffff;
		tied += total >> 16;
	}
	if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0)
		sent[0] = __uint_as_float(none ? 0 : place + min(tied, c.ties));
}
