//go:build mpi

#define _GNU_SOURCE
#include "shim.h"

#include <errno.h>
#include <sys/mman.h>

// These calls go through libc: an MPI library that caches the registrations of its network card intercepts munmap
// there.

int fp_map(int fd, int64_t n, int populate, void **at) {
	*at = mmap(0, n, PROT_READ | PROT_WRITE, MAP_SHARED | (populate ? MAP_POPULATE : 0), fd, 0);
	return *at == MAP_FAILED ? errno : 0;
}

int fp_unmap(void *at, int64_t n) { return munmap(at, n) ? errno : 0; }
