//go:build mpi

#define _GNU_SOURCE
#include "finalize.h"
#include "shared.h"

#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// The tag also keeps apart what the build cache would not: it does not look at what pkg-config says.
#if defined(FLUENTPS_MPICH) == defined(OPEN_MPI)
#error "the tag mpich and the mpi.h that was found do not belong together: make build MPI=mpich, or see comm/mpi/README.md"
#endif

static void *finalize(void *unused) {
	MPI_Finalize();
	return unused;
}

int fp_finalize(int limit_s) {
	pthread_t thread;
	if (pthread_create(&thread, NULL, finalize, NULL) != 0)
		return -1;
	return !fp_join_within(thread, limit_s * 1000000000LL);
}

// What MPI_Abort says to the launcher, in the words of PMI 1. A process that only exits would make the launcher kill the
// others and, some of the time, report that instead of the code. MPI_LOCALNRANKS: MPICH's launcher and no other.
void fp_leave(int code) {
	const char *fd = getenv("PMI_FD");
	char line[64];
	if (!fd || !getenv("MPI_LOCALNRANKS"))
		return;
	int n = snprintf(line, sizeof line, "cmd=abort exitcode=%d\n", code);
	if (write(atoi(fd), line, n) == n)
		sleep(2); // in which this process is killed
}
