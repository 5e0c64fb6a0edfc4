// What the C files of the transport share, and Go does not see.
#ifndef FLUENTPS_SHARED_H
#define FLUENTPS_SHARED_H

#include <mpi.h>
#include <pthread.h>

extern pthread_mutex_t fp_serial; // MPI_THREAD_SERIALIZED asks that no two calls overlap; this keeps them apart
extern MPI_Comm fp_node;          // the ranks of this host

#endif
