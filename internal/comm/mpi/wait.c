//go:build mpi

// How a rank waits: it spins (polls without a pause), then yields its core between polls, then sleeps.

#define _GNU_SOURCE
#include "shim.h"
#include "shared.h"

#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// A bell wakes a rank that sleeps. It lies in memory that the ranks of a host share, so that they ring each other's.
struct bell {
	_Atomic uint32_t rung;     // a futex: 1 from the ring until the poller has seen it
	_Atomic uint32_t sleeping; // whether its rank sleeps, or is about to
};
static struct bell lone, *mine = &lone;
static struct bell **others; // by rank; NULL: of another host, or this rank's own
static bool all_ring;        // all ranks of the world are of this host, and have bells

// How long the poller spins, yields and sleeps, in ns: see doc.go.
enum {
	SPIN_MIN = 1000, SPIN_MAX = 50000,
	YIELD = 50000, YIELD_CROWDED = 500000,
	SLEEP_MIN = 20000, SLEEP_MAX = 1000000,
	RUNG_MIN = 100000, RUNG_MAX = 4000000,
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

// rings says whether all that this rank waits for rings its bell. Ranks of other hosts do not, nor does what MPI sends by itself: in
// collectives, and before and within a long message, where the system lets no rank copy from another one's memory.
static bool rings(void) { return all_ring && fp_unrung == 0; }

// doze sleeps until somebody rings. Where something may come that does not, it sleeps for a small share of the wait so far; else for
// longer, because each look costs some 10 us.
// It returns whether somebody rang.
static bool doze(int64_t idle) {
	static __thread int precise;
	if (!precise) { // the default slack adds 50 us to each sleep
		prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
		precise = 1;
	}
	bool rung = rings();
	int64_t least = rung ? RUNG_MIN : SLEEP_MIN, most = rung ? RUNG_MAX : SLEEP_MAX;
	int64_t ns = rung ? idle / 2 : idle / 8;
	ns = ns < least ? least : ns > most ? most : ns;
	struct timespec t = {0, ns};
	return syscall(SYS_futex, &mine->rung, FUTEX_WAIT, 0, &t, NULL, 0) == 0;
}

static void ring(struct bell *b) {
	if (atomic_exchange(&b->rung, 1) == 0)
		syscall(SYS_futex, &b->rung, FUTEX_WAKE, 1, NULL, NULL, 0);
}

void fp_wake(void) { ring(mine); }

// fp_ring wakes a rank to which MPI has just passed something. That rank says that it sleeps before it looks for the last time: so it sees
// the message, or is seen here.
void fp_ring(int rank) {
	if (!others || !others[rank])
		return;
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load(&others[rank]->sleeping))
		ring(others[rank]);
}

int fp_hang_bells(int ranks, int rank, void *const *at) {
	int hung = 0;
	if (!(others = calloc(ranks, sizeof *others)))
		return MPI_ERR_NO_MEM;
	for (int i = 0; i < ranks; i++) {
		hung += at[i] != NULL;
		if (i == rank)
			mine = at[i];
		else
			others[i] = at[i];
	}
	all_ring = hung == ranks;
	return MPI_SUCCESS;
}

// yield_ns is how long the poller yields. A rank that another one wakes need not stay awake on a core that both need.
static int64_t yield_ns(void) { return crowded && !rings() ? YIELD_CROWDED : YIELD; }

// Go's watcher thread (sysmon) takes the processor of a goroutine that was not rescheduled for 10 ms, or is that long in one call into C.
// Whenever it has done so, it looks again every 20 us, about 50 times, and that costs more than all else that a rank does in a step of 10
// ms. So the poller lets Go reschedule its goroutine more often than that, whether messages come or not.
enum { REST_EVERY = 7000000, POLLS_UNTIMED = 16, RESUMED = 200000 };

// is_tired says whether it is time for that.
static bool is_tired(int64_t now) {
	static int64_t rested;
	if (now - rested < REST_EVERY)
		return false;
	rested = now;
	return true;
}

struct fp_batch fp_poll(int wait) {
	struct fp_batch batch = {0, MPI_SUCCESS, 0, 0, NULL};
	static int64_t interrupted, left; // since of a wait that goes on after a rest, and when that rest began
	bool goes_on = interrupted > 0 && fp_clock() - left < RESUMED;
	// End of the first poll, end of the previous poll, start of this poll.
	int64_t since = goes_on ? interrupted : 0, before = 0, now = 0;
	enum step last = SPUN;
	bool listens = false; // this rank has said that it sleeps
	interrupted = 0;
	for (;;) {
		pthread_mutex_lock(&fp_serial);
		batch.n = fp_test(&batch.code);
		// Open MPI's MPI_Testsome first looks and then makes progress: a second call sees the messages that arrived
		// while the core was away.
		if ((crowded || last != SPUN || !wait) && batch.n == 0)
			batch.n = fp_test(&batch.code);
		pthread_mutex_unlock(&fp_serial);
		batch.done = fp_completed;
		if (batch.n != 0 || !wait || atomic_exchange(&mine->rung, 0)) {
			if (before > 0)
				adapt_spin(last, now - before);
			static unsigned polls;
			batch.tired = (!wait || ++polls % POLLS_UNTIMED == 0) && is_tired(fp_clock());
			break;
		}
		before = fp_clock();
		if (since == 0)
			since = before;
		if ((batch.tired = is_tired(before))) {
			interrupted = since;
			left = before;
			break;
		}
		if (before - since < spin) {
			last = SPUN;
		} else if (before - since < spin + yield_ns()) {
			sched_yield();
			last = YIELDED;
		} else if (listens) {
			batch.woken += doze(before - since);
			last = SLEPT;
		} else {
			atomic_store(&mine->sleeping, 1); // then looks once more
			listens = true;
			last = SLEPT;
		}
		now = crowded ? before : fp_clock(); // a crowded rank does not adapt
	}
	if (listens)
		atomic_store(&mine->sleeping, 0);
	return batch;
}
