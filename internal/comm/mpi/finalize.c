//go:build mpi

#define _GNU_SOURCE
#include "finalize.h"
#include "shared.h"

#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// The tag also separates objects that the build cache would not: the cache ignores the output of pkg-config.
#if defined(FLUENTPS_MPICH) == defined(OPEN_MPI)
#error "the tag mpich and the mpi.h that was found do not belong together: make build MPI=mpich, or see internal/comm/mpi/README.md"
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

// The message that MPI_Abort sends to the launcher, in the protocol of PMI 1. If a process only exits, the launcher
// kills the others and sometimes reports that kill instead of the code. Only MPICH's launcher sets MPI_LOCALNRANKS.
void fp_leave(int code) {
	const char *fd = getenv("PMI_FD");
	char line[64];
	if (!fd || !getenv("MPI_LOCALNRANKS"))
		return;
	int n = snprintf(line, sizeof line, "cmd=abort exitcode=%d\n", code);
	if (write(atoi(fd), line, n) == n)
		sleep(2); // the launcher kills this process meanwhile
}
