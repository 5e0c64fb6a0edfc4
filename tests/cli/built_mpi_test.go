//go:build mpi

package cli

import "fluentps/internal/comm/mpi/mpitest"

// builtTags are the tags that these tests, and so the binary under test, are built with.
const builtTags = mpitest.Tags
