//go:build mpi

// Waits with a deadline that holds even if the host's clock is set meanwhile. A deadline by the time of day would then
// be off by as much, and a heartbeat or an abort could hang for an hour.

#define _GNU_SOURCE
#include "shim.h"
#include "shared.h"

#include <pthread.h>
#include <time.h>

// glibc has these from 2.30 and 2.31 on; older versions only wait by the time of day.
extern int pthread_mutex_clocklock(pthread_mutex_t *, clockid_t, const struct timespec *) __attribute__((weak));
extern int pthread_clockjoin_np(pthread_t, void **, clockid_t, const struct timespec *) __attribute__((weak));

static struct timespec deadline_in(clockid_t clock, int64_t ns) {
	struct timespec until;
	clock_gettime(clock, &until);
	ns += until.tv_nsec;
	until.tv_sec += ns / 1000000000;
	until.tv_nsec = ns % 1000000000;
	return until;
}

int fp_lock_within(int64_t ns) {
	struct timespec until;
	if (pthread_mutex_clocklock) {
		until = deadline_in(CLOCK_MONOTONIC, ns);
		return pthread_mutex_clocklock(&fp_serial, CLOCK_MONOTONIC, &until) == 0;
	}
	until = deadline_in(CLOCK_REALTIME, ns);
	return pthread_mutex_timedlock(&fp_serial, &until) == 0;
}

int fp_join_within(pthread_t thread, int64_t ns) {
	struct timespec until;
	if (pthread_clockjoin_np) {
		until = deadline_in(CLOCK_MONOTONIC, ns);
		return pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &until) == 0;
	}
	until = deadline_in(CLOCK_REALTIME, ns);
	return pthread_timedjoin_np(thread, NULL, &until) == 0;
}
