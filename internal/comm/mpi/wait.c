//go:build mpi

// How a rank waits: it spins (polls without a pause), then yields its core between polls, then sleeps.

#define _GNU_SOURCE
#include "shim.h"
#include "shared.h"

#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static _Atomic uint32_t woken; // a futex: 1 from fp_wake until the poller has seen it

// How long the poller spins, yields and sleeps, in ns: see doc.go.
enum {
	SPIN_MIN = 1000, SPIN_MAX = 50000,
	YIELD = 50000, YIELD_CROWDED = 500000,
	SLEEP_MIN = 20000, SLEEP_MAX = 1000000,
};
static int64_t spin; // how long to poll without a pause; SPIN_MIN to SPIN_MAX, or 0 if crowded

static int crowded; // this host has more ranks than cores that they may run on: a spinning rank keeps the core from another

// After mpirun --oversubscribe, Open MPI yields the core inside every progress call that finds nothing: also while we
// spin, and between receiving a message and looking at it. We turn that off while we poll, and on where MPI blocks.
extern bool opal_progress_set_yield_when_idle(bool on) __attribute__((weak)); // not in MPICH
static bool yields_inside;

void fp_blocking(int begins) {
	if (!opal_progress_set_yield_when_idle)
		return;
	if (begins)
		opal_progress_set_yield_when_idle(yields_inside);
	else
		yields_inside = opal_progress_set_yield_when_idle(false);
}

static cpu_set_t cores; // cores that any rank of this host may run on
static bool bound; // the launcher has bound ranks: not all of them may run on all of these cores

// fp_count_cores finds out whether the ranks of this host outnumber the cores that any of them may run on.
int fp_count_cores(int ranks) {
	cpu_set_t mine, all;
	CPU_ZERO(&mine);
	if (sched_getaffinity(0, sizeof mine, &mine) != 0)
		return MPI_SUCCESS; // there are more cores than fit into the set, hence enough
	int rc = MPI_Allreduce(&mine, &cores, sizeof mine, MPI_BYTE, MPI_BOR, fp_node);
	if (rc == MPI_SUCCESS)
		rc = MPI_Allreduce(&mine, &all, sizeof mine, MPI_BYTE, MPI_BAND, fp_node);
	bound = !CPU_EQUAL(&cores, &all);
	crowded = ranks > CPU_COUNT(&cores);
	spin = crowded ? 0 : SPIN_MAX;
	return rc;
}

int fp_crowded(void) { return crowded; }

// Ranks that share cores and wait by yielding all look equally busy to the system. It may leave three of them on one
// core and one on the other for long, or both servers on one. So this function assigns them to the cores in turn. It
// leaves ranks that the launcher has bound alone.
int fp_bind(int on, int node_rank) {
	if (!crowded || bound)
		return -1;
	int want = node_rank % CPU_COUNT(&cores), core = 0;
	while (!CPU_ISSET(core, &cores) || want-- > 0)
		core++;
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET(core, &one);
	int rc = sched_setaffinity(0, sizeof one, on ? &one : &cores);
	return on && rc == 0 ? core : -1;
}

enum step { SPUN, YIELDED, SLEPT };

// adapt_spin adjusts spin by how a wait ended, gap ns after the end of the previous poll, which may itself have copied
// much. On a core of our own the answer arrives while we spin. On a core shared with the answering rank it arrives
// after that rank has run, because we yielded or the system preempted us. If another process ran for long, it was one
// that computes, and says nothing about the answer.
static void adapt_spin(enum step last, int64_t gap) {
	enum { OTHERS_RAN = 3000, TOO_LONG = 200000 };
	if (crowded || last == SLEPT || gap > TOO_LONG)
		return;
	if (gap > OTHERS_RAN)
		spin = spin / 2;
	else if (last == SPUN)
		spin = 2 * spin;
	spin = spin < SPIN_MIN ? SPIN_MIN : spin > SPIN_MAX ? SPIN_MAX : spin;
}

static void doze(int64_t idle) {
	static __thread int precise;
	if (!precise) { // the default slack adds 50 us to each sleep
		prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
		precise = 1;
	}
	int64_t ns = idle / 8;
	ns = ns < SLEEP_MIN ? SLEEP_MIN : ns > SLEEP_MAX ? SLEEP_MAX : ns;
	struct timespec t = {0, ns};
	syscall(SYS_futex, &woken, FUTEX_WAIT_PRIVATE, 0, &t, NULL, 0);
}

struct fp_batch fp_poll(int wait) {
	struct fp_batch batch = {0, MPI_SUCCESS, NULL};
	int64_t since = 0, before = 0, now = 0; // end of the first poll, end of the previous poll, start of this poll
	enum step last = SPUN;
	for (;;) {
		pthread_mutex_lock(&fp_serial);
		batch.n = fp_test(&batch.code);
		// Open MPI's MPI_Testsome first looks and then makes progress: a second call sees the messages that arrived
		// while the core was away.
		if ((crowded || last != SPUN || !wait) && batch.n == 0)
			batch.n = fp_test(&batch.code);
		pthread_mutex_unlock(&fp_serial);
		batch.done = fp_completed;
		if (batch.n != 0 || !wait || atomic_exchange(&woken, 0)) {
			if (before > 0)
				adapt_spin(last, now - before);
			return batch;
		}
		before = fp_clock();
		if (since == 0)
			since = before;
		if (before - since < spin) {
			last = SPUN;
		} else if (before - since < spin + (crowded ? YIELD_CROWDED : YIELD)) {
			sched_yield();
			last = YIELDED;
		} else {
			doze(before - since);
			last = SLEPT;
		}
		now = crowded ? before : fp_clock(); // a crowded rank does not adapt
	}
}

void fp_wake(void) {
	if (atomic_exchange(&woken, 1) == 0)
		syscall(SYS_futex, &woken, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
