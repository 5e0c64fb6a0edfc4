/* Sends messages from one GPU's memory into another's, over an MPI that says that it is CUDA-aware. gpu-check builds it where it runs,
 * because each MPI has an interface of its own for binaries. Rank 0 prints one line: no, unknown or ok, and the library. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(OPEN_MPI)
#include <mpi-ext.h>
#endif

typedef unsigned long long gpu_pointer;

static void *driver;

/* CALL(name, type, arguments): a function of the driver, whose result must be 0. */
#define CALL(name, type, ...)                                                                  \
	do {                                                                                       \
		int (*f) type = (int (*) type)dlsym(driver, name);                                     \
		int code = f ? f(__VA_ARGS__) : -1;                                                    \
		if (code != 0) {                                                                       \
			fprintf(stderr, "aware: %s: CUDA error %d\n", name, code);                                \
			MPI_Abort(MPI_COMM_WORLD, 1);                                                      \
		}                                                                                      \
	} while (0)

static int aware(void)
{
	int yes = -1;
#if defined(MPIX_CUDA_AWARE_SUPPORT)
	yes = MPIX_Query_cuda_support() == 1;
#elif defined(MPIX_GPU_SUPPORT_CUDA)
	if (MPIX_GPU_query_support(MPIX_GPU_SUPPORT_CUDA, &yes) != MPI_SUCCESS)
		yes = 0;
#endif
	return yes;
}

/* copy copies between pinned memory and the GPU's, and waits. */
static void copy(int to_gpu, gpu_pointer gpu, void *host, size_t bytes)
{
	if (to_gpu)
		CALL("cuMemcpyHtoDAsync_v2", (gpu_pointer, const void *, size_t, void *), gpu, host, bytes, NULL);
	else
		CALL("cuMemcpyDtoHAsync_v2", (void *, gpu_pointer, size_t, void *), host, gpu, bytes, NULL);
	CALL("cuStreamSynchronize", (void *), NULL);
}

/* try sends n floats from rank 0 to rank 1 and back, from GPU to GPU. Rank 1 changes them in between. */
static void try(int rank, int n)
{
	size_t bytes = (size_t)n * sizeof(float);
	gpu_pointer gpu;
	float *host;
	CALL("cuMemAlloc_v2", (gpu_pointer *, size_t), &gpu, bytes);
	CALL("cuMemHostAlloc", (void **, size_t, unsigned), (void **)&host, bytes, 0);
	for (int i = 0; i < n; i++)
		host[i] = rank == 0 ? (float)(i % 1000) : -1;
	copy(1, gpu, host, bytes);
	void *buffer = (void *)(size_t)gpu;
	if (rank == 0)
		MPI_Send(buffer, n, MPI_FLOAT, 1, 7, MPI_COMM_WORLD);
	MPI_Recv(buffer, n, MPI_FLOAT, 1 - rank, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	copy(0, gpu, host, bytes);
	for (int i = 0; i < n; i++) {
		float want = (float)(i % 1000 + (rank == 0));
		if (host[i] != want) {
			fprintf(stderr, "aware: rank %d: element %d of %d is %g, must be %g\n", rank, i, n, host[i], want);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
		host[i]++;
	}
	if (rank == 1) {
		copy(1, gpu, host, bytes);
		MPI_Send(buffer, n, MPI_FLOAT, 0, 7, MPI_COMM_WORLD);
	}
	CALL("cuMemFreeHost", (void *), host);
	CALL("cuMemFree_v2", (gpu_pointer), gpu);
}

int main(int argc, char **argv)
{
	int rank, size, length, count, device;
	char library[MPI_MAX_LIBRARY_VERSION_STRING];
	void *context;
	driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Get_library_version(library, &length);
	library[strcspn(library, ",\n")] = 0;
	if (size != 2 || !driver) {
		fprintf(stderr, "aware: %d ranks, must be 2; the driver was %sfound\n", size, driver ? "" : "not ");
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	int yes = aware();
	if (yes == 1) {
		CALL("cuInit", (unsigned), 0);
		CALL("cuDeviceGetCount", (int *), &count);
		CALL("cuDeviceGet", (int *, int), &device, rank % count);
		CALL("cuDevicePrimaryCtxRetain", (void **, int), &context, device);
		CALL("cuCtxSetCurrent", (void *), context);
		try(rank, 256);     /* sent at once */
		try(rank, 1 << 20); /* after the receiver is ready */
		CALL("cuDevicePrimaryCtxRelease_v2", (int), device);
	}
	if (rank == 0)
		printf("%s %s\n", yes < 0 ? "unknown" : yes ? "ok" : "no", library);
	MPI_Finalize();
	return 0;
}
