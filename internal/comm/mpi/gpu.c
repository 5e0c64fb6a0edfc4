//go:build mpi

#include "shim.h"
#include "shared.h"

#include <mpi.h>
#include <pthread.h>
#if defined(OPEN_MPI)
#include <mpi-ext.h>
#endif

int fp_cuda_built(void) {
#if defined(MPIX_CUDA_AWARE_SUPPORT)
	return MPIX_CUDA_AWARE_SUPPORT;
#else
	return -1;
#endif
}

// Open MPI's headers declare the query even in a build without CUDA, and the library loaded may be another build.
int fp_cuda_aware(void) {
	int yes = -1;
	pthread_mutex_lock(&fp_serial);
#if defined(MPIX_CUDA_AWARE_SUPPORT)
	yes = MPIX_Query_cuda_support() == 1;
#elif defined(MPIX_GPU_SUPPORT_CUDA)
	if (MPIX_GPU_query_support(MPIX_GPU_SUPPORT_CUDA, &yes) != MPI_SUCCESS)
		yes = 0;
#endif
	pthread_mutex_unlock(&fp_serial);
	return yes;
}
