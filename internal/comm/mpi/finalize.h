#ifndef FLUENTPS_FINALIZE_H
#define FLUENTPS_FINALIZE_H

// fp_finalize calls MPI_Finalize on a thread of its own and waits for it. It returns 0 if MPI has ended, 1 if
// MPI_Finalize still runs after limit_s, -1 if no thread could be started and nothing was done.
int fp_finalize(int limit_s);

// fp_leave asks MPICH's launcher to end the job with this code from within MPI_Finalize, where MPI_Abort fails. Under
// other launchers it returns at once; they accept a process that exits.
void fp_leave(int code);

#endif
