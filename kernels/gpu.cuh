// What the kernels for GPUs share. Each .cu file includes this file and nothing else; it compiles with NVRTC, nvcc
// and, after cuemu/cuemu.h, with a plain C++ compiler.
#ifndef GPU_CUH
#define GPU_CUH

#define DEVICE static __device__ __forceinline__

enum : unsigned { all_lanes = 0xffffffffu };

// A thread of a one-dimensional grid takes the elements first(), first() + stride(), ...: neighbours in a warp take
// neighbours in memory, whatever the size of the grid.
DEVICE int first() { return blockIdx.x * blockDim.x + threadIdx.x; }
DEVICE int stride() { return gridDim.x * blockDim.x; }

// warp_sum returns the sum of v over the warp to all its lanes; each gets the same bits.
DEVICE float warp_sum(float v) {
	for (int d = 16; d > 0; d /= 2)
		v += __shfl_xor_sync(all_lanes, v, d);
	return v;
}

// block_sum returns the sum of v over a block of whole warps to all its threads. part is shared memory of the block,
// which may be used again at once.
DEVICE float block_sum(float v, float part[32]) {
	v = warp_sum(v);
	if (threadIdx.x % 32 == 0)
		part[threadIdx.x / 32] = v;
	__syncthreads();
	v = warp_sum(threadIdx.x % 32 < blockDim.x / 32 ? part[threadIdx.x % 32] : 0);
	__syncthreads();
	return v;
}

// sum_layers returns, to the first warp, sums over layers of values that lie `results` apart in memory: lane l gets
// those for result at + l, 0 past the last. Eight sums take every eighth layer each, and are added in their order; the
// block's WARPS warps share them.
template <int WARPS = 8> DEVICE float sum_layers(const float *x, int layers, int results, int at, float part[8][32]) {
	const int lane = threadIdx.x % 32;
	for (int from = threadIdx.x / 32; from < 8; from += WARPS) {
		float sum = 0;
		if (at + lane < results)
#pragma unroll 4
			for (int layer = from; layer < layers; layer += 8)
				sum += x[layer * results + at + lane];
		part[from][lane] = sum;
	}
	__syncthreads();
	float sum = 0;
	for (int i = 0; i < 8; i++)
		sum += part[i][lane];
	return sum;
}

// load reads N floats, an even number, in as few instructions as can be; p is aligned accordingly.
template <int N> DEVICE void load(float (&r)[N], const float *p) {
#pragma unroll
	for (int i = 0; i + 4 <= N; i += 4) {
		const float4 v = *reinterpret_cast<const float4 *>(p + i);
		r[i] = v.x, r[i + 1] = v.y, r[i + 2] = v.z, r[i + 3] = v.w;
	}
	if (N % 4 == 2) {
		const float2 v = *reinterpret_cast<const float2 *>(p + N - 2);
		r[N - 2] = v.x, r[N - 1] = v.y;
	}
}

// pick returns x[at] if that is inside of x, else 0. It reads x[0] then, so that no branch stands between loads: x must
// not be empty.
DEVICE float pick(const float *x, int at, bool inside) {
	const float v = x[inside ? at : 0];
	return inside ? v : 0;
}

// within says whether 0 <= i < n. Joined by &, not &&, such conditions take no branches.
DEVICE bool within(int i, int n) { return (unsigned)i < (unsigned)n; }

// Batch is a thread's part of COUNT values on their way to shared memory. fetch reads get(e) for each and for some e
// past the last, store hands them on with keep(e, value). Between the two all loads are under way at once, and the thread may do something else.
template <int COUNT, int THREADS> struct Batch {
	static const int EACH = (COUNT + THREADS - 1) / THREADS;
	float r[EACH];

	template <class Get> __device__ __forceinline__ void fetch(Get get) {
#pragma unroll
		for (int i = 0; i < EACH; i++) {
			const int e = i * THREADS + threadIdx.x;
			r[i] = get(e);
		}
	}

	template <class Keep> __device__ __forceinline__ void store(Keep keep) const {
#pragma unroll
		for (int i = 0; i < EACH; i++) {
			const int e = i * THREADS + threadIdx.x;
			if (e < COUNT)
				keep(e, r[i]);
		}
	}
};

// Tile is the part of a matrix product that a block of ROWS/P x COLS/P threads computes, P x P sums a thread.
// It takes TERMS terms at a time through shared memory, where the sums' operands lie side by side.
template <int ROWS, int COLS, int P> struct Tile {
	static const int TERMS = 16, THREADS = ROWS / P * COLS / P;
	static const int A = ROWS * TERMS / THREADS, B = COLS * TERMS / THREADS; // elements that each thread brings

	struct alignas(16) Shared {
		float a[TERMS][ROWS + 4], b[TERMS][COLS + 4]; // rows a bit longer, so that a column lies in many banks
	};

	float sum[P][P];

	// The thread's sums belong to rows row()..row()+P-1 and columns col()..col()+P-1 of the tile.
	static __device__ __forceinline__ int row() { return threadIdx.x / (COLS / P) * P; }
	static __device__ __forceinline__ int col() { return threadIdx.x % (COLS / P) * P; }

	// place says which element of an operand's tile the thread brings as its i-th. Neighbouring threads bring
	// neighbours in memory: terms where the operand is stored term by term, else rows.
	template <bool BY_TERM, int SIZE> static __device__ __forceinline__ void place(int i, int &at, int &term) {
		static_assert(THREADS % TERMS == 0 && THREADS % SIZE == 0, "a thread brings one term, or one row");
		at = BY_TERM ? threadIdx.x / TERMS + i * (THREADS / TERMS) : threadIdx.x % SIZE;
		term = BY_TERM ? threadIdx.x % TERMS : threadIdx.x / SIZE + i * (THREADS / SIZE);
	}

	template <int COUNT, int SIZE, class Operand>
	static __device__ __forceinline__ void fetch(float (&r)[COUNT], const Operand &x, int from, int term, int end) {
#pragma unroll
		for (int i = 0; i < COUNT; i++) {
			int at, t;
			place<Operand::BY_TERM, SIZE>(i, at, t);
			r[i] = x(from + at, term + t, term + t < end);
		}
	}

	template <int COUNT, int SIZE, class Operand, class Shelf>
	static __device__ __forceinline__ void store(Shelf &shelf, const float (&r)[COUNT]) {
#pragma unroll
		for (int i = 0; i < COUNT; i++) {
			int at, t;
			place<Operand::BY_TERM, SIZE>(i, at, t);
			shelf[t][at] = r[i];
		}
	}

	// multiply sums terms begin..end-1 for the tile at (row0, col0). a(row, term, there) and b(col, term, there) give the
	// operands' elements, and 0 outside of them or unless there. The next terms are on their way while these are
	// multiplied.
	template <class OpA, class OpB>
	__device__ __forceinline__ void multiply(Shared &s, const OpA &a, const OpB &b, int row0, int col0, int begin, int end) {
		float ra[A], rb[B];
#pragma unroll
		for (int i = 0; i < P; i++)
#pragma unroll
			for (int j = 0; j < P; j++)
				sum[i][j] = 0;
		if (begin >= end)
			return;
		fetch<A, ROWS>(ra, a, row0, begin, end);
		fetch<B, COLS>(rb, b, col0, begin, end);
		for (int term = begin; term < end; term += TERMS) {
			store<A, ROWS, OpA>(s.a, ra);
			store<B, COLS, OpB>(s.b, rb);
			__syncthreads();
			fetch<A, ROWS>(ra, a, row0, term + TERMS, end);
			fetch<B, COLS>(rb, b, col0, term + TERMS, end);
#pragma unroll
			for (int t = 0; t < TERMS; t++)
				add(&s.a[t][row()], &s.b[t][col()]);
			__syncthreads();
		}
	}

	__device__ __forceinline__ void add(const float *a, const float *b) {
		float x[P], y[P];
		load<P>(x, a);
		load<P>(y, b);
#pragma unroll
		for (int i = 0; i < P; i++)
#pragma unroll
			for (int j = 0; j < P; j++)
				sum[i][j] += x[i] * y[j];
	}
};

#endif
