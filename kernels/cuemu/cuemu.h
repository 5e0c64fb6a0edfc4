// CUDA C++ for a plain C++ compiler: the parts of the language that the kernels' .cu files use, implemented by the emulator
// (cuemu.cpp). C callers see only the functions at the top.
#ifndef CUEMU_H
#define CUEMU_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// cuemu_launch runs every thread of a launch and returns 0. It returns nonzero if the launch failed; cuemu_error says why.
// args points to one value for each parameter, like the kernelParams of cuLaunchKernel. One launch runs at a time.
int cuemu_launch(const char *entry, const unsigned grid[3], const unsigned block[3], unsigned shared_bytes, void **args);

// cuemu_error describes the latest failed launch of the calling thread.
const char *cuemu_error(void);

// cuemu_has reports whether an entry of this name is compiled in.
int cuemu_has(const char *entry);

// cuemu_threads_max returns how many threads a block of the entry may have; 0: there is no such entry.
unsigned cuemu_threads_max(const char *entry);

// cuemu_reverse(1) makes blocks, and threads between two barriers, run in descending order; 0: ascending.
void cuemu_reverse(int on);

// cuemu_alloc returns zeroed memory whose last byte lies just before a page that faults, or NULL if there is no memory.
// The host cannot access it: where it tries, a line says so, and the program gets its SIGSEGV. The environment variable
// CUEMU_OPEN=1 leaves memory open, for networks that reach a GPU's memory. cuemu_free releases it. It returns nonzero if bytes
// in front of the memory were written.
void *cuemu_alloc(size_t bytes);
int cuemu_free(void *memory);

// cuemu_copy copies memory, of the host or of the device. cuemu_set writes a value of 4 bytes count times. They return nonzero
// where the race check finds that nothing orders them after an earlier access.
int cuemu_copy(void *to, const void *from, size_t bytes);
int cuemu_set(void *to, unsigned value, size_t count);

// cuemu_touch tells the race check that some computation of the host reads or writes device memory now.
int cuemu_touch(const void *memory, size_t bytes, int writes);

// cuemu_begin tells the race check that what follows belongs to an operation of a stream, which comes behind the first before[i] operations
// of each stream i. Without it, each launch and each copy comes behind all earlier ones.
void cuemu_begin(unsigned stream, const unsigned *before, unsigned streams, const char *what);

// Between cuemu_open and cuemu_close the host can access the vector that contains an address. Each open needs a close.
// Addresses of the host change nothing.
void cuemu_open(const void *address);
void cuemu_close(const void *address);

#ifdef __cplusplus
} // extern "C"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

namespace cuemu {

struct uint3 {
	unsigned x, y, z;
};

// Position is the position of the running thread in the launch.
struct Position {
	uint3 thread, block, block_dim, grid_dim;
};
extern Position position;

void barrier(int line);
void sync_warp(int line, unsigned mask = ~0u);
uint64_t shuffle(int line, unsigned mask, uint64_t value, unsigned from);
unsigned lane();

// Entry is a __global__ function that launches find by its name. Entries live for ever.
struct Entry {
	const char *name;
	void (*run)(void **args);
	unsigned pointers;    // a bit for each parameter, the first one lowest: it is an address
	unsigned threads_max; // of a block: .maxntid of the PTX
	const Entry *next;
	Entry(const char *name, void (*run)(void **args), unsigned pointers, unsigned threads_max = 1024);
};

template <class... A> unsigned pointers(void (*)(A...)) {
	unsigned bits = 0, at = 1;
	for (bool is : {false, std::is_pointer<A>::value...})
		at *= 2, bits |= is ? at / 4 : 0;
	return bits;
}

template <class... A, size_t... I> void apply(void (*f)(A...), void **args, std::index_sequence<I...>) {
	f(*static_cast<A *>(args[I])...);
}

template <class... A> void apply(void (*f)(A...), void **args) { apply(f, args, std::index_sequence_for<A...>()); }

template <class T> T exchange(int line, unsigned mask, T value, unsigned from) {
	static_assert(sizeof(T) <= sizeof(uint64_t), "a shuffle moves at most 8 bytes");
	uint64_t bits = 0;
	memcpy(&bits, &value, sizeof value);
	bits = shuffle(line, mask, bits, from);
	memcpy(&value, &bits, sizeof value);
	return value;
}

// source returns the lane that a shuffle within groups of width lanes reads. Outside the group it is the lane itself.
inline unsigned source_down(unsigned delta, unsigned width) {
	return lane() % width + delta < width ? lane() + delta : lane();
}
inline unsigned source_up(unsigned delta, unsigned width) { return lane() % width >= delta ? lane() - delta : lane(); }
inline unsigned source_xor(unsigned bits, unsigned width) {
	unsigned other = lane() ^ bits;
	return other / width <= lane() / width ? other : lane();
}
inline unsigned source_lane(unsigned index, unsigned width) { return lane() / width * width + index % width; }

} // namespace cuemu

// CUEMU_ENTRY(function, threads) lists a __global__ function. Blocks may have at most so many threads, or 1024.
#define CUEMU_ENTRY(function, ...)                                                                                     \
	static void function##_run(void **args) { cuemu::apply(function, args); }                                      \
	static cuemu::Entry function##_entry(#function, function##_run, cuemu::pointers(function) __VA_OPT__(, ) __VA_ARGS__);

// The language. Shared memory of all kernels lies in one section, which each block finds filled with 0xff.
#define __global__
#define __device__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __shared__ static __attribute__((section("cuemu_shared")))
#define threadIdx (cuemu::position.thread)
#define blockIdx (cuemu::position.block)
#define blockDim (cuemu::position.block_dim)
#define gridDim (cuemu::position.grid_dim)
#define warpSize 32

#define __syncthreads() cuemu::barrier(__LINE__)
#define __syncwarp(...) cuemu::sync_warp(__LINE__ __VA_OPT__(, ) __VA_ARGS__)
#define __shfl_down_sync(mask, value, delta)                                                                           \
	cuemu::exchange(__LINE__, mask, value, cuemu::source_down(delta, 32))
#define __shfl_up_sync(mask, value, delta) cuemu::exchange(__LINE__, mask, value, cuemu::source_up(delta, 32))
#define __shfl_xor_sync(mask, value, bits) cuemu::exchange(__LINE__, mask, value, cuemu::source_xor(bits, 32))
#define __shfl_sync(mask, value, index) cuemu::exchange(__LINE__, mask, value, cuemu::source_lane(index, 32))

struct alignas(8) float2 {
	float x, y;
};
struct alignas(16) float4 {
	float x, y, z, w;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }
inline float rsqrtf(float x) { return 1 / sqrtf(x); }
inline unsigned __float_as_uint(float x) {
	unsigned bits;
	memcpy(&bits, &x, sizeof bits);
	return bits;
}
inline float __uint_as_float(unsigned bits) {
	float x;
	memcpy(&x, &bits, sizeof x);
	return x;
}
// One thread runs at a time.
inline int atomicAdd(int *p, int v) {
	int old = *p;
	*p += v;
	return old;
}
template <class T> T __ldg(const T *p) { return *p; }

#endif // __cplusplus
#endif
