// Package slurm holds the tests that submit jobs to a real Slurm. slurm.sh starts it on one machine, several nodes and all,
// and ends it; README.md tells how to use it by hand and in scripts. The tests need the build tags mpi, blas and slurm.
package slurm
