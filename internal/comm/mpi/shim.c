//go:build mpi

#define _GNU_SOURCE
#include "shim.h"
#include "shared.h"

#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { EAGER = 4096 }; // a sender may keep longer messages in its own memory until they are received

pthread_mutex_t fp_serial = PTHREAD_MUTEX_INITIALIZER;
MPI_Comm fp_node;

static MPI_Comm comms[2]; // by channel; communicators of this transport alone, which return errors
static int node_size;

// The requests that MPI_Testsome tests and, element by element, their slots. Of the receives of one stream (source,
// channel, tag) only the first is among them: MPI matches them in posting order.
static MPI_Request *requests;
static uint32_t *slots;
static int count;

// By slot: a receive's neighbours in its stream, and its request while it is not the first.
struct place {
	MPI_Request queued; // MPI_REQUEST_NULL if the request is in requests
	uint32_t before, after;
	int is_send; // the slot holds no receive
	int needs_looks; // counted in fp_unrung
};
static struct place *places;
_Atomic int fp_unrung;
static int room; // length of places and of all arrays parallel to requests; all slots are smaller

// Output of MPI_Testsome and of collect.
static int *indices;
static MPI_Status *statuses;
struct fp_done *fp_completed;

int64_t fp_clock(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

// MPICH installs a SIGUSR1 handler without SA_ONSTACK, which would crash the Go runtime: restore Go's.
static int init_thread(void) {
	struct sigaction before;
	int provided = MPI_THREAD_SINGLE;
	// Send eagerly all control messages, and messages that two copies move faster than a handshake: see doc.go.
	setenv("OMPI_MCA_btl_vader_eager_limit", "40960", 0);
	sigaction(SIGUSR1, NULL, &before);
	int rc = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided);
	sigaction(SIGUSR1, &before, NULL);
	if (rc == MPI_SUCCESS && provided < MPI_THREAD_SERIALIZED)
		return MPI_ERR_UNSUPPORTED_OPERATION;
	return rc;
}

#define TRY(call, name)              \
	do {                             \
		int rc_ = (call);            \
		if (rc_ != MPI_SUCCESS) {    \
			w->failed = name;        \
			return rc_;              \
		}                            \
	} while (0)

// name_peers finds the world ranks of this host's ranks.
static int name_peers(struct fp_world *w) {
	MPI_Group world, host;
	int *numbers = malloc(node_size * sizeof *numbers);
	w->node_peers = malloc(node_size * sizeof *w->node_peers);
	if (!numbers || !w->node_peers)
		return MPI_ERR_NO_MEM;
	for (int i = 0; i < node_size; i++)
		numbers[i] = i;
	MPI_Comm_group(comms[0], &world);
	MPI_Comm_group(fp_node, &host);
	int rc = MPI_Group_translate_ranks(host, node_size, numbers, world, w->node_peers);
	MPI_Group_free(&host);
	MPI_Group_free(&world);
	free(numbers);
	return rc;
}

int fp_init(struct fp_world *w) {
	TRY(init_thread(), "MPI_Init_thread(MPI_THREAD_SERIALIZED)");
	for (int ch = 0; ch < 2; ch++) {
		TRY(MPI_Comm_dup(MPI_COMM_WORLD, &comms[ch]), "MPI_Comm_dup");
		TRY(MPI_Comm_set_errhandler(comms[ch], MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
	}
	// MPICH reports a failure that MPI_Testsome finds to none of our communicators, but to one of these two.
	TRY(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
	TRY(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
	int *tag_max, found = 0;
	TRY(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &tag_max, &found), "MPI_Comm_get_attr");
	w->tag_max = found ? *tag_max : 32767; // the standard's floor
	TRY(MPI_Comm_split_type(comms[0], MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &fp_node), "MPI_Comm_split_type");
	TRY(MPI_Comm_set_errhandler(fp_node, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
	TRY(MPI_Comm_rank(fp_node, &w->node_rank), "MPI_Comm_rank");
	TRY(MPI_Comm_size(fp_node, &node_size), "MPI_Comm_size");
	w->node_size = node_size;
	TRY(name_peers(w), "MPI_Group_translate_ranks");
	TRY(fp_count_cores(node_size), "MPI_Allreduce");
	TRY(fp_beats_begin(), "MPI_Comm_dup");
	fp_blocking(0);
	return MPI_SUCCESS;
}

static int grow(void **array, int n, size_t element) {
	void *more = realloc(*array, n * element);
	if (more)
		*array = more;
	return more != NULL;
}

// reserve makes space for a slot. There are never more requests than slots.
static int reserve(uint32_t slot) {
	if (slot < (uint32_t)room)
		return MPI_SUCCESS;
	int more = room ? 2 * room : 256;
	if (!grow((void **)&requests, more, sizeof *requests) || !grow((void **)&slots, more, sizeof *slots) ||
	    !grow((void **)&places, more, sizeof *places) || !grow((void **)&indices, more, sizeof *indices) ||
	    !grow((void **)&statuses, more, sizeof *statuses) || !grow((void **)&fp_completed, more, sizeof *fp_completed))
		return MPI_ERR_NO_MEM;
	room = more;
	return reserve(slot);
}

// track adds a request that MPI has accepted to the requests to test.
static int track(int rc, uint32_t slot) {
	if (rc == MPI_SUCCESS) {
		places[slot] = (struct place){MPI_REQUEST_NULL, FP_NONE, FP_NONE, 0, 0};
		slots[count++] = slot;
	}
	return rc;
}

// unrung counts an operation for which MPI sends messages by itself, such as to ask for a long message: these ring no bell.
static int unrung(int rc, uint32_t slot, int is) {
	if (rc == MPI_SUCCESS && is) {
		places[slot].needs_looks = 1;
		fp_unrung++;
	}
	return rc;
}

// track_send is track for a send. A send on the control channel has mostly completed already and then needs no further
// test.
static int track_send(int rc, uint32_t slot, int n, int at_once) {
	int complete = 0;
	if (rc == MPI_SUCCESS && at_once)
		rc = MPI_Test(&requests[count], &complete, MPI_STATUS_IGNORE);
	if (complete)
		return rc == MPI_SUCCESS ? FP_SENT : rc;
	rc = track(rc, slot);
	places[slot].is_send = 1;
	return unrung(rc, slot, n > EAGER);
}

int fp_send(int ch, int to, int tag, uintptr_t p, int n, uint32_t slot, int sync) {
	pthread_mutex_lock(&fp_serial);
	int rc = reserve(slot);
	if (rc == MPI_SUCCESS && sync)
		rc = track_send(MPI_Issend((const void *)p, n, MPI_BYTE, to, tag, comms[ch], &requests[count]), slot, n, 0);
	else if (rc == MPI_SUCCESS)
		rc = track_send(MPI_Isend((const void *)p, n, MPI_BYTE, to, tag, comms[ch], &requests[count]), slot, n, ch == 0);
	pthread_mutex_unlock(&fp_serial);
	fp_ring(to);
	return rc;
}

int fp_recv(int ch, int from, int tag, uintptr_t p, int n, uint32_t slot, uint32_t before) {
	pthread_mutex_lock(&fp_serial);
	int rc = reserve(slot);
	if (rc == MPI_SUCCESS) {
		MPI_Request r;
		rc = MPI_Irecv((void *)p, n, MPI_BYTE, from < 0 ? MPI_ANY_SOURCE : from, tag, comms[ch], &r);
		if (rc == MPI_SUCCESS && before != FP_NONE) {
			places[slot] = (struct place){r, before, FP_NONE, 0, 0};
			places[before].after = slot;
		} else {
			requests[count] = r;
			track(rc, slot);
		}
		unrung(rc, slot, n > EAGER);
	}
	pthread_mutex_unlock(&fp_serial);
	return rc;
}

int fp_barrier(uint32_t slot) {
	pthread_mutex_lock(&fp_serial);
	int rc = reserve(slot);
	if (rc == MPI_SUCCESS)
		rc = unrung(track(MPI_Ibarrier(comms[0], &requests[count]), slot), slot, 1);
	pthread_mutex_unlock(&fp_serial);
	return rc;
}

int fp_gather(const int64_t *mine, int k, int64_t *all, uint32_t slot) {
	pthread_mutex_lock(&fp_serial);
	int rc = reserve(slot);
	if (rc == MPI_SUCCESS)
		rc = track(MPI_Iallgather(mine, k, MPI_INT64_T, all, k, MPI_INT64_T, comms[0], &requests[count]), slot);
	unrung(rc, slot, 1);
	pthread_mutex_unlock(&fp_serial);
	return rc;
}

int fp_allreduce(void *p, int n, uint32_t slot) {
	pthread_mutex_lock(&fp_serial);
	int rc = reserve(slot);
	if (rc == MPI_SUCCESS)
		rc = track(MPI_Iallreduce(MPI_IN_PLACE, p, n, MPI_FLOAT, MPI_SUM, comms[1], &requests[count]), slot);
	unrung(rc, slot, 1);
	pthread_mutex_unlock(&fp_serial);
	return rc;
}

// promote has a receive tested that was queued behind another.
static void promote(uint32_t slot) {
	requests[count] = places[slot].queued;
	slots[count++] = slot;
	places[slot].queued = MPI_REQUEST_NULL;
}

// unlink_slot removes a completed request from its stream and promotes the next one, if that is now the first.
static void unlink_slot(uint32_t slot) {
	struct place *p = &places[slot];
	if (p->before != FP_NONE)
		places[p->before].after = p->after;
	if (p->after == FP_NONE)
		return;
	struct place *next = &places[p->after];
	next->before = p->before;
	if (next->before == FP_NONE && next->queued != MPI_REQUEST_NULL)
		promote(p->after);
}

int fp_cancel(uint32_t slot) {
	int rc = MPI_ERR_REQUEST;
	pthread_mutex_lock(&fp_serial);
	if (places[slot].queued != MPI_REQUEST_NULL)
		promote(slot); // it completes before its turn
	for (int i = 0; i < count; i++)
		if (slots[i] == slot)
			rc = MPI_Cancel(&requests[i]);
	pthread_mutex_unlock(&fp_serial);
	return rc;
}

static int32_t class_of(int code) {
	int class = MPI_SUCCESS;
	MPI_Error_class(code, &class);
	return class;
}

// describe fills d from a status, whose MPI_ERROR is valid only if one of the batch failed.
static void describe(struct fp_done *d, uint32_t slot, const MPI_Status *s, int failed) {
	int bytes = 0, cancelled = 0;
	memset(d, 0, sizeof *d);
	d->slot = slot;
	d->source = s->MPI_SOURCE;
	d->tag = s->MPI_TAG;
	d->code = failed ? s->MPI_ERROR : MPI_SUCCESS;
	d->truncated = d->code != MPI_SUCCESS && class_of(d->code) == MPI_ERR_TRUNCATE;
	if (places[slot].is_send)
		return; // a send's status says nothing more
	MPI_Test_cancelled(s, &cancelled);
	d->cancelled = cancelled;
	if (!cancelled && d->code == MPI_SUCCESS) {
		MPI_Get_count(s, MPI_BYTE, &bytes);
		d->bytes = bytes;
		if (bytes > EAGER)
			fp_ring(s->MPI_SOURCE); // it learns that its memory is free
	}
}

// compact closes the gaps of completed requests from index first on.
static void compact(int first) {
	int kept = first;
	for (int i = first; i < count; i++) {
		if (requests[i] != MPI_REQUEST_NULL) {
			requests[kept] = requests[i];
			slots[kept++] = slots[i];
		}
	}
	count = kept;
}

// collect describes completion number k, whose request is requests[at].
static void collect(int k, int at, const MPI_Status *status, int failed) {
	describe(&fp_completed[k], slots[at], status, failed);
	fp_unrung -= places[slots[at]].needs_looks;
	places[slots[at]].needs_looks = 0;
	if (requests[at] != MPI_REQUEST_NULL) // MPI may leave a failed request to the caller
		MPI_Request_free(&requests[at]);
}

// test_promoted tests the receives from index first on, which have just become the first of their streams: so a stream
// with many waiting messages is emptied at once. It returns the number of completions, including the n earlier ones.
static int test_promoted(int first, int n) {
	for (int at = first; at < count; at++) {
		int complete = 0;
		MPI_Status status;
		int rc = MPI_Test(&requests[at], &complete, &status);
		if (!complete && rc == MPI_SUCCESS)
			continue;
		status.MPI_ERROR = rc;
		collect(n, at, &status, 1);
		unlink_slot(fp_completed[n++].slot); // may append to requests
	}
	compact(first);
	return n;
}

// fp_test makes one round of progress.
int fp_test(int *code) {
	int n = 0;
	*code = MPI_SUCCESS;
	if (count == 0)
		return 0;
	int rc = MPI_Testsome(count, requests, &n, indices, statuses);
	int failed = rc != MPI_SUCCESS;
	if (failed && class_of(rc) != MPI_ERR_IN_STATUS) {
		*code = rc;
		return -1;
	}
	if (n == MPI_UNDEFINED || n == 0)
		return 0;
	for (int i = 0; i < n; i++)
		collect(i, indices[i], &statuses[i], failed);
	compact(0);
	int first = count;
	for (int i = 0; i < n; i++)
		unlink_slot(fp_completed[i].slot);
	return count > first ? test_promoted(first, n) : n;
}

// Any thread may call fp_abort, even while another is stuck inside MPI. So it waits for the lock, but not for long.
void fp_abort(int code) {
	fp_lock_within(2000000000);
	MPI_Abort(MPI_COMM_WORLD, code);
	_exit(code);
}

int fp_close(void) {
	int rc = MPI_SUCCESS;
	fp_blocking(1);
	for (int ch = 0; ch < 2 && rc == MPI_SUCCESS; ch++)
		rc = MPI_Comm_free(&comms[ch]);
	if (rc == MPI_SUCCESS)
		rc = fp_beats_end();
	if (rc == MPI_SUCCESS)
		rc = MPI_Comm_free(&fp_node);
	return rc;
}

void fp_error(int code, char *text) {
	char line[MPI_MAX_ERROR_STRING] = "";
	int n = 0;
	MPI_Error_string(code, line, &n);
	snprintf(text, FP_TEXT, "%s (class %d)", line, (int)class_of(code));
}

void fp_library(char *compiled, char *running) {
	char line[8192] = ""; // MPICH's limit, 32 times Open MPI's: the library may be another one than the header's
	int n = 0;
	MPI_Get_library_version(line, &n);
	snprintf(running, FP_TEXT, "%.*s", FP_TEXT - 1, line);
#if defined(OPEN_MPI)
	snprintf(compiled, FP_TEXT, "Open MPI %d.%d.%d", OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION);
#elif defined(MPICH_VERSION)
	snprintf(compiled, FP_TEXT, "MPICH %s", MPICH_VERSION);
#else
	snprintf(compiled, FP_TEXT, "an MPI that is not Open MPI");
#endif
}
