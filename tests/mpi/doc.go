// Package mpi holds the tests that compare a run over real MPI with the same run in one process. They need the build tag mpi, and
// start mpirun themselves.
package mpi
