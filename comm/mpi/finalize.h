#ifndef FLUENTPS_FINALIZE_H
#define FLUENTPS_FINALIZE_H

// fp_finalize calls MPI_Finalize on a thread of its own and waits for it. It returns 0 when MPI has ended, 1 when it was
// left busy after limit_s, -1 when no thread could be started and nothing was done.
int fp_finalize(int limit_s);

// fp_leave asks MPICH's launcher to end the job with this code, in the middle of MPI_Finalize, where MPI_Abort fails. It
// returns at once under other launchers, which do not mind a process that exits.
void fp_leave(int code);

#endif
