// Declarations that the C files of the transport share, and Go does not see.
#ifndef FLUENTPS_SHARED_H
#define FLUENTPS_SHARED_H

#include "shim.h"

#include <mpi.h>
#include <pthread.h>

extern pthread_mutex_t fp_serial; // MPI_THREAD_SERIALIZED requires that no two calls overlap; this lock serialises them
extern MPI_Comm fp_node;          // the ranks of this host

// fp_test makes one round of progress. It returns the number of completions at fp_completed, or -1 with an error code.
int fp_test(int *code);
extern struct fp_done *fp_completed;

int fp_beats_begin(void); // collective; returns MPI's error code, like the next two
int fp_beats_end(void);

int fp_count_cores(int ranks); // of this host
void fp_ring(int rank);        // wakes a rank of this host that sleeps

extern _Atomic int fp_unrung; // operations in flight of which not all messages ring

// fp_lock_within takes fp_serial within ns nanoseconds; it returns whether it did.
int fp_lock_within(int64_t ns);
// fp_join_within waits for the end of a thread for at most ns nanoseconds; it returns whether the thread has ended.
int fp_join_within(pthread_t thread, int64_t ns);

// fp_blocking tells Open MPI that calls that wait inside MPI begin, or that they are over.
void fp_blocking(int begins);

#endif
