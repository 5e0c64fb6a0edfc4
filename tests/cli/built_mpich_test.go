//go:build mpi && mpich

package cli

// builtTags are the tags that these tests, and so the binary under test, are built with.
const builtTags = "mpi mpich blas"
