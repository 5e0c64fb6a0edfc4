// Package slurm holds the tests that submit jobs to a real Slurm. slurm.sh starts Slurm with several nodes on one machine, and stops
// it. README.md describes its use by hand and in scripts. The tests need the build tags mpi, blas and slurm.
package slurm
