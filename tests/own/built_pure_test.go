//go:build !mpi

package own

// builtTags are the tags that these tests, and so the binary under test, are built with.
const builtTags = ""
