//go:build mpi

// Heartbeats: single bytes on a communicator of their own, sent and taken by whichever thread comes, while another one
// may be computing, or reading a file, in place of driving.

#include "shim.h"
#include "shared.h"

#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>

static MPI_Comm beats;
static int ranks;
static MPI_Request *sends; // by rank: synchronous, so that at most one is at a rank that does not listen
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

// enter takes the lock unless somebody is inside MPI for long.
static int enter(void) { return fp_lock_within(20 * 1000 * 1000); }

static int met(int to) {
	int complete = 1;
	if (sends[to] != MPI_REQUEST_NULL && MPI_Test(&sends[to], &complete, MPI_STATUS_IGNORE) != MPI_SUCCESS)
		return 0;
	return complete;
}

int fp_beat(int to, int word) {
	if (!enter())
		return 0;
	int sent = met(to);
	if (sent) {
		words[to] = word;
		sent = MPI_Issend(&words[to], 1, MPI_BYTE, to, 0, beats, &sends[to]) == MPI_SUCCESS;
	}
	pthread_mutex_unlock(&fp_serial);
	return sent;
}

// One look may only make the progress that the next one sees.
int fp_heard(int *word) {
	int there = 0, from = FP_SILENT;
	MPI_Status status;
	if (!enter())
		return FP_BUSY;
	for (int look = 0; look < 2 && !there; look++)
		MPI_Iprobe(MPI_ANY_SOURCE, 0, beats, &there, &status);
	if (there) {
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
		n += !met(to);
	pthread_mutex_unlock(&fp_serial);
	return n;
}
