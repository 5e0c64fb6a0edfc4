// What the C files of the transport share, and Go does not see.
#ifndef FLUENTPS_SHARED_H
#define FLUENTPS_SHARED_H

#include "shim.h"

#include <mpi.h>
#include <pthread.h>

extern pthread_mutex_t fp_serial; // MPI_THREAD_SERIALIZED asks that no two calls overlap; this keeps them apart
extern MPI_Comm fp_node;          // the ranks of this host

// fp_test makes one round of progress: the number of completions at fp_completed, or -1 with an error code.
int fp_test(int *code);
extern struct fp_done *fp_completed;

int fp_beats_begin(void); // collective; MPI's error code, as of the next
int fp_beats_end(void);

int fp_count_cores(int ranks); // of this host; MPI's error code

// fp_lock_within takes fp_serial unless that takes longer than so many ns; it says whether it did.
int fp_lock_within(int64_t ns);
// fp_join_within waits for the end of a thread, for so many ns at most; it says whether that came.
int fp_join_within(pthread_t thread, int64_t ns);

// fp_blocking says that calls begin that wait inside MPI, or that they are over.
void fp_blocking(int begins);

#endif
