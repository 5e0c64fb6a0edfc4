//go:build mpi

#include "shim.h"
#include "shared.h"

#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>

static MPI_Win *windows; // MPI_WIN_NULL where one was freed
static int window_count;

// free_entry finds an entry without a window.
static int free_entry(void) {
	for (int i = 0; i < window_count; i++)
		if (windows[i] == MPI_WIN_NULL)
			return i;
	MPI_Win *more = realloc(windows, (window_count + 1) * sizeof *windows);
	if (!more)
		return -1;
	windows = more;
	windows[window_count] = MPI_WIN_NULL;
	return window_count++;
}

// One epoch from the window's making to its end lets all ranks load and store whenever they like.
static int make(int64_t n, void **bases, MPI_Win *win) {
	void *own;
	MPI_Info info;
	MPI_Info_create(&info);
	MPI_Info_set(info, "alloc_shared_noncontig", "true"); // each segment on pages of its own
	int rc = MPI_Win_allocate_shared(n, 1, info, fp_node, &own, win);
	MPI_Info_free(&info);
	if (rc != MPI_SUCCESS)
		return rc;
	MPI_Win_set_errhandler(*win, MPI_ERRORS_RETURN);
	int size;
	MPI_Comm_size(fp_node, &size);
	for (int i = 0; i < size; i++) {
		MPI_Aint bytes;
		int unit;
		if ((rc = MPI_Win_shared_query(*win, i, &bytes, &unit, &bases[i])) != MPI_SUCCESS)
			return rc;
	}
	return MPI_Win_lock_all(MPI_MODE_NOCHECK, *win);
}

int fp_window(int64_t n, void **bases, int *window) {
	pthread_mutex_lock(&fp_serial);
	fp_blocking(1);
	int rc = MPI_ERR_NO_MEM;
	if ((*window = free_entry()) >= 0)
		rc = make(n, bases, &windows[*window]);
	fp_blocking(0);
	pthread_mutex_unlock(&fp_serial);
	return rc;
}

int fp_window_free(int window) {
	pthread_mutex_lock(&fp_serial);
	fp_blocking(1);
	int rc = MPI_Win_unlock_all(windows[window]);
	if (rc == MPI_SUCCESS)
		rc = MPI_Win_free(&windows[window]);
	fp_blocking(0);
	pthread_mutex_unlock(&fp_serial);
	return rc;
}
