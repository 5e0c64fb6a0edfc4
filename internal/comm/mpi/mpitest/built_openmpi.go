//go:build !mpich

package mpitest

// Built is the MPI that the tests are built for, Other the one that they are not built for.
var Built, Other = OpenMPI, MPICH

// Tags are the build tags of a program that runs under Built.
const Tags = "mpi blas"
