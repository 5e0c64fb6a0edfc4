// An emulated CUDA driver: libcuda.so.1 for tests on a machine without a GPU. It has the calls that package cuda makes,
// computes kernels with the emulator, and is stricter than the real driver where an incorrect program could work by luck:
//   - calls without a current context fail, on whichever thread
//   - asynchronous copies take pinned memory only, lie inside one allocation, and overwrite their host destination with
//     NaN until they are done
//   - no work is done before the program waits for it (order.cpp)
//   - fresh memory holds NaN and ends at an unmapped page, and the host cannot access it
//   - the release of a context fails, and names what is left, if the program has not released all its resources
// The environment configures it. It is read when a context is made:
//   CUEMU_DEVICES=n          GPUs, 1 by default; 0: none
//   CUEMU_MIG=1              the GPUs are slices of one GPU
//   CUEMU_FAIL=call:n[:code] the n-th call of that name fails with this code, by default CUDA_ERROR_OUT_OF_MEMORY (2) or
//                            CUDA_ERROR_UNKNOWN (999); kernel:n is a failure that appears when the n-th kernel runs
//   CUEMU_POLL=no            waits that poll fail: those in a context, or for an event, that was not made to sleep
//   CUEMU_ORDER=eager        see order.cpp
//   CUEMU_OPEN=1             the host can access memory that is allocated from now on, as an MPI does that knows GPUs
//   CUEMU_COPIES=FILE        gets a line for each context that is released: the bytes copied to the host, and the bytes
//                            copied to the GPU
//   CUEMU_CALLS=FILE         gets a line for each context that is released: launches, copies to the host, copies to the GPU
//   CUEMU_KERNELS=none       no kernel is computed, so that a test can count the launches of large batches
#include "state.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

using namespace cuemu;

thread_local Context *cuemu::current = nullptr;

static std::recursive_mutex lock;
static Context contexts[16];
static bool initialized;

// The failure that the environment requests.
static std::string fail_call;
static long fail_at, fail_seen;
static CUresult fail_code;

static void read_failure()
{
	const char *text = getenv("CUEMU_FAIL");
	fail_call.clear();
	fail_seen = 0;
	if (!text || !*text) {
		return;
	}
	char name[64];
	int at = 1, code = 0;
	if (sscanf(text, "%63[^:]:%d:%d", name, &at, &code) < 2) {
		fprintf(stderr, "cuemu: CUEMU_FAIL is %s, must be call:n or call:n:code\n", text);
		abort();
	}
	fail_call = name;
	fail_at = at;
	fail_code = static_cast<CUresult>(code ? code : strstr(name, "Alloc") ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_UNKNOWN);
}

static bool fails(const char *call) { return fail_call == call && ++fail_seen == fail_at; }

static bool without_kernels()
{
	const char *text = getenv("CUEMU_KERNELS");
	return text && strcmp(text, "none") == 0;
}

// lasts reports whether an error makes its context useless.
static bool lasts(CUresult code)
{
	const std::set<int> lasting = {214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721, 806, 810, 999};
	return lasting.count(code) == 1;
}

static int devices()
{
	const char *n = getenv("CUEMU_DEVICES");
	return n ? atoi(n) : 1;
}

// Every call begins with one of these.
#define ANYWHERE(call)                                 \
	std::lock_guard<std::recursive_mutex> held(lock);  \
	if (!initialized) {                                \
		return CUDA_ERROR_NOT_INITIALIZED;             \
	}                                                  \
	if (fails(call)) {                                 \
		if (current && lasts(fail_code)) {             \
			current->sticky = fail_code;               \
		}                                              \
		return fail_code;                              \
	}
#define IN_CONTEXT(call)                               \
	ANYWHERE(call)                                     \
	if (!current || current->users == 0) {             \
		return CUDA_ERROR_INVALID_CONTEXT;             \
	}                                                  \
	if (current->sticky != CUDA_SUCCESS) {             \
		return current->sticky;                        \
	}
#define NEEDS(condition)                               \
	if (!(condition)) {                                \
		fprintf(stderr, "cuemu: %s: needs %s\n", __func__, #condition); \
		return CUDA_ERROR_INVALID_VALUE;               \
	}

#define API extern "C" __attribute__((visibility("default"))) CUresult

API cuInit(unsigned)
{
	std::lock_guard<std::recursive_mutex> held(lock);
	read_failure();
	if (fails("cuInit")) {
		return fail_code;
	}
	if (devices() == 0) {
		return CUDA_ERROR_NO_DEVICE;
	}
	initialized = true;
	return CUDA_SUCCESS;
}

API cuDriverGetVersion(int *v)
{
	*v = 12020;
	return CUDA_SUCCESS;
}

API cuDeviceGetCount(int *n)
{
	ANYWHERE("cuDeviceGetCount")
	*n = devices();
	return CUDA_SUCCESS;
}

API cuDeviceGet(CUdevice *d, int ordinal)
{
	ANYWHERE("cuDeviceGet")
	if (ordinal < 0 || ordinal >= devices()) {
		return CUDA_ERROR_INVALID_DEVICE;
	}
	*d = ordinal;
	return CUDA_SUCCESS;
}

API cuDeviceGetName(char *name, int n, CUdevice d)
{
	ANYWHERE("cuDeviceGetName")
	snprintf(name, n, "Emulated GPU %d", d);
	return CUDA_SUCCESS;
}

// With CUEMU_MIG=1 the devices are slices of one GPU: the first version of the call returns the GPU's UUID, the second the slice's.
static CUresult uuid(CUuuid *u, int device)
{
	memset(u, 0, sizeof *u);
	u->bytes[15] = static_cast<char>(device + 1);
	return CUDA_SUCCESS;
}

API cuDeviceGetUuid_v2(CUuuid *u, CUdevice d)
{
	ANYWHERE("cuDeviceGetUuid")
	return uuid(u, d);
}

#undef cuDeviceGetUuid
API cuDeviceGetUuid(CUuuid *u, CUdevice d)
{
	ANYWHERE("cuDeviceGetUuid")
	return uuid(u, getenv("CUEMU_MIG") ? -1 : d);
}

API cuDeviceTotalMem_v2(size_t *n, CUdevice)
{
	ANYWHERE("cuDeviceTotalMem")
	*n = size_t{16} << 30;
	return CUDA_SUCCESS;
}

API cuDeviceGetAttribute(int *v, CUdevice_attribute a, CUdevice)
{
	ANYWHERE("cuDeviceGetAttribute")
	*v = 0;
	switch (a) { // a card whose peaks are round numbers: 1.28 TFLOP/s and 0.064 TB/s
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *v = 7; break;
	case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *v = 10; break;
	case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: *v = 1000000; break;
	case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: *v = 1000000; break;
	case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH: *v = 256; break;
	default: break;
	}
	return CUDA_SUCCESS;
}

API cuDevicePrimaryCtxSetFlags_v2(CUdevice d, unsigned flags)
{
	ANYWHERE("cuDevicePrimaryCtxSetFlags")
	if (contexts[d].users > 0) {
		return CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE;
	}
	contexts[d].flags = flags;
	return CUDA_SUCCESS;
}

// may_wait reports whether a wait that sleeps, or polls, is possible.
static bool may_wait(bool sleeps)
{
	const char *poll = getenv("CUEMU_POLL");
	return sleeps || !poll || strcmp(poll, "no") != 0;
}

API cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice d)
{
	std::lock_guard<std::recursive_mutex> held(lock);
	Context &x = contexts[d];
	bool others = false;
	for (Context &any : contexts) {
		others = others || any.users > 0;
	}
	if (!others) {
		read_failure();
	}
	if (fails("cuDevicePrimaryCtxRetain")) {
		return fail_code;
	}
	x.device = d;
	x.users++;
	*c = reinterpret_cast<CUcontext>(&x);
	return CUDA_SUCCESS;
}

// append adds a line to the file that a variable names, if it is set.
static void append(const char *variable, const std::string &line)
{
	const char *path = getenv(variable);
	if (!path || !*path) {
		return;
	}
	FILE *f = fopen(path, "a"); // in append mode, short lines of several processes do not mix
	if (!f || fprintf(f, "%s\n", line.c_str()) < 0 || fclose(f) != 0) {
		fprintf(stderr, "cuemu: cannot write %s %s\n", variable, path);
		abort();
	}
}

// tell writes what a context has copied and launched.
static void tell(const Context &c)
{
	append("CUEMU_COPIES", std::to_string(c.to_host) + " " + std::to_string(c.to_gpu));
	append("CUEMU_CALLS", std::to_string(c.launches) + " " + std::to_string(c.copies_to_host) + " " + std::to_string(c.copies_to_gpu));
}

// forget empties a context, so that the next context of the device is a new one.
static void forget(Context *c)
{
	for (auto &m : c->memory) {
		cuemu_free(reinterpret_cast<void *>(m.first));
	}
	c->memory.clear();
	c->pinned.clear();
	c->registered.clear();
	c->streams.clear();
	c->events.clear();
	c->modules.clear();
	c->legacy.todo.clear();
	c->to_host = c->to_gpu = 0;
	c->flags = 0;
	c->launches = c->copies_to_host = c->copies_to_gpu = 0;
	c->sticky = CUDA_SUCCESS;
}

API cuDevicePrimaryCtxRelease_v2(CUdevice d)
{
	ANYWHERE("cuDevicePrimaryCtxRelease")
	Context &x = contexts[d];
	NEEDS(x.users > 0)
	if (--x.users > 0) {
		return CUDA_SUCCESS;
	}
	bool failed = x.sticky != CUDA_SUCCESS;
	std::string left = leftovers(&x);
	tell(x);
	forget(&x);
	if (!left.empty() && !failed) {
		fprintf(stderr, "cuemu: GPU %d is released with %s left\n", d, left.c_str());
		return CUDA_ERROR_UNKNOWN;
	}
	return CUDA_SUCCESS;
}

API cuCtxSetCurrent(CUcontext c)
{
	ANYWHERE("cuCtxSetCurrent")
	current = reinterpret_cast<Context *>(c);
	return CUDA_SUCCESS;
}

API cuCtxGetCurrent(CUcontext *c)
{
	*c = reinterpret_cast<CUcontext>(current);
	return CUDA_SUCCESS;
}

API cuCtxSynchronize(void)
{
	IN_CONTEXT("cuCtxSynchronize")
	for (Stream *s : current->streams) {
		CUresult code = drain_for_host(s);
		if (code != CUDA_SUCCESS) {
			return code;
		}
	}
	return drain_for_host(&current->legacy);
}

API cuMemGetInfo_v2(size_t *free, size_t *total)
{
	IN_CONTEXT("cuMemGetInfo")
	*free = *total = size_t{16} << 30;
	return CUDA_SUCCESS;
}

API cuMemAlloc_v2(CUdeviceptr *p, size_t bytes)
{
	IN_CONTEXT("cuMemAlloc")
	NEEDS(bytes > 0)
	void *memory = cuemu_alloc(bytes);
	if (!memory) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	cuemu_open(memory);
	memset(memory, 0xff, bytes);
	cuemu_close(memory);
	*p = reinterpret_cast<CUdeviceptr>(memory);
	current->memory[*p] = bytes;
	return CUDA_SUCCESS;
}

API cuMemFree_v2(CUdeviceptr p)
{
	IN_CONTEXT("cuMemFree")
	NEEDS(current->memory.erase(p) == 1)
	for (Stream *s : current->streams) { // the real driver waits too
		drain_for_host(s);
	}
	if (cuemu_free(reinterpret_cast<void *>(p)) != 0) {
		fprintf(stderr, "cuemu: a kernel wrote in front of the memory that is freed\n");
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	}
	return CUDA_SUCCESS;
}

API cuMemHostAlloc(void **p, size_t bytes, unsigned)
{
	IN_CONTEXT("cuMemHostAlloc")
	NEEDS(bytes > 0)
	*p = malloc(bytes);
	memset(*p, 0xff, bytes);
	current->pinned[static_cast<char *>(*p)] = bytes;
	return CUDA_SUCCESS;
}

API cuMemFreeHost(void *p)
{
	IN_CONTEXT("cuMemFreeHost")
	NEEDS(current->pinned.erase(static_cast<char *>(p)) == 1 && current->registered.count(static_cast<char *>(p)) == 0)
	free(p);
	return CUDA_SUCCESS;
}

API cuMemHostRegister_v2(void *p, size_t bytes, unsigned)
{
	IN_CONTEXT("cuMemHostRegister")
	NEEDS(bytes > 0)
	const size_t page = 4096; // whole pages are pinned: no two ranges may share a page
	char *from = static_cast<char *>(p), *to = from + bytes;
	auto down = [](char *q) { return reinterpret_cast<size_t>(q) / page; };
	for (char *q : current->registered) {
		if (down(q) <= down(to - 1) && down(from) <= down(q + current->pinned[q] - 1)) {
			return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
		}
	}
	current->pinned[from] = bytes;
	current->registered.insert(from);
	return CUDA_SUCCESS;
}

API cuMemHostUnregister(void *p)
{
	IN_CONTEXT("cuMemHostUnregister")
	NEEDS(current->registered.erase(static_cast<char *>(p)) == 1)
	current->pinned.erase(static_cast<char *>(p));
	return CUDA_SUCCESS;
}

// Libraries find out by this call whether memory is on a GPU: all memory of which the driver does not know is an error.
API cuPointerGetAttribute(void *value, CUpointer_attribute a, CUdeviceptr p)
{
	ANYWHERE("cuPointerGetAttribute")
	NEEDS(a == CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
	for (Context &c : contexts) {
		if (on_device(&c, p, 1)) {
			*static_cast<CUmemorytype *>(value) = CU_MEMORYTYPE_DEVICE;
			return CUDA_SUCCESS;
		}
	}
	return CUDA_ERROR_INVALID_VALUE;
}

// The driver's calls on streams, events and modules.
#include "work.inc"

// The calls of cuBLAS: libcublas.so.12 is another name of this library.
#include "cublas.inc"
