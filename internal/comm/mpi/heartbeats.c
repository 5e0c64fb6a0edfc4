//go:build mpi

// Heartbeats: single bytes on a communicator of their own. Any thread sends and receives them, while another one may
// compute, or read a file, instead of driving.

#include "shim.h"
#include "shared.h"

#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>

static MPI_Comm beats;
static int ranks;
static MPI_Request *sends; // by rank: synchronous, so that at most one byte waits at a rank that does not listen
static unsigned char *words;

int fp_beats_begin(void) {
	int rc = MPI_Comm_dup(MPI_COMM_WORLD, &beats);
	if (rc == MPI_SUCCESS)
		rc = MPI_Comm_set_errhandler(beats, MPI_ERRORS_RETURN);
	if (rc != MPI_SUCCESS)
		return rc;
	MPI_Comm_size(beats, &ranks);
	sends = malloc(ranks * sizeof *sends);
	words = malloc(ranks);
	if (!sends || !words)
		return MPI_ERR_NO_MEM;
	for (int i = 0; i < ranks; i++)
		sends[i] = MPI_REQUEST_NULL;
	return MPI_SUCCESS;
}

int fp_beats_end(void) { return MPI_Comm_free(&beats); }

// lock_briefly takes the lock unless another thread is inside MPI for long.
static int lock_briefly(void) { return fp_lock_within(20 * 1000 * 1000); }

static int send_done(int to) {
	int complete = 1;
	if (sends[to] != MPI_REQUEST_NULL && MPI_Test(&sends[to], &complete, MPI_STATUS_IGNORE) != MPI_SUCCESS)
		return 0;
	return complete;
}

int fp_beat(int to, int word) {
	if (!lock_briefly())
		return 0;
	int sent = send_done(to);
	if (sent) {
		words[to] = word;
		sent = MPI_Issend(&words[to], 1, MPI_BYTE, to, 0, beats, &sends[to]) == MPI_SUCCESS;
	}
	pthread_mutex_unlock(&fp_serial);
	return sent;
}

// Probes twice: the first probe may only make the progress that lets the second one see a message.
int fp_heard(int *word) {
	int arrived = 0, from = FP_SILENT;
	MPI_Status status;
	if (!lock_briefly())
		return FP_BUSY;
	for (int look = 0; look < 2 && !arrived; look++)
		MPI_Iprobe(MPI_ANY_SOURCE, 0, beats, &arrived, &status);
	if (arrived) {
		unsigned char byte = 0;
		if (MPI_Recv(&byte, 1, MPI_BYTE, status.MPI_SOURCE, 0, beats, MPI_STATUS_IGNORE) == MPI_SUCCESS)
			from = status.MPI_SOURCE;
		*word = byte;
	}
	pthread_mutex_unlock(&fp_serial);
	return from;
}

int fp_unmet(void) {
	int n = 0;
	pthread_mutex_lock(&fp_serial);
	for (int to = 0; to < ranks; to++)
		n += !send_done(to);
	pthread_mutex_unlock(&fp_serial);
	return n;
}
