//go:build mpi

// Waits that end in time also where somebody sets the clock of the host meanwhile: a deadline by the time of day is then off by
// as much, and a heartbeat or an abort would hang for an hour.

#define _GNU_SOURCE
#include "shim.h"
#include "shared.h"

#include <pthread.h>
#include <time.h>

// glibc has these from 2.30 and 2.31 on; before there is only the time of day.
extern int pthread_mutex_clocklock(pthread_mutex_t *, clockid_t, const struct timespec *) __attribute__((weak));
extern int pthread_clockjoin_np(pthread_t, void **, clockid_t, const struct timespec *) __attribute__((weak));

static struct timespec in(clockid_t clock, int64_t ns) {
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
		until = in(CLOCK_MONOTONIC, ns);
		return pthread_mutex_clocklock(&fp_serial, CLOCK_MONOTONIC, &until) == 0;
	}
	until = in(CLOCK_REALTIME, ns);
	return pthread_mutex_timedlock(&fp_serial, &until) == 0;
}

int fp_join_within(pthread_t thread, int64_t ns) {
	struct timespec until;
	if (pthread_clockjoin_np) {
		until = in(CLOCK_MONOTONIC, ns);
		return pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &until) == 0;
	}
	until = in(CLOCK_REALTIME, ns);
	return pthread_timedjoin_np(thread, NULL, &until) == 0;
}
