//go:build mpich

package mpitest

// Built is the MPI that the tests are built for, and Other the one that they are not.
var Built, Other = MPICH, OpenMPI

// Tags are what to build a program with, to run under Built.
const Tags = "mpi mpich blas"
