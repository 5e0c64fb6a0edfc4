#!/usr/bin/env bash
# Runs a command in the environment in which `go build -tags "mpi mpich blas"` builds for MPICH.
#   tests/with-mpich.sh COMMAND [ARG...]
# One of the packages that we use names Open MPI's folders itself; what stands in CGO_CFLAGS and CGO_LDFLAGS comes
# before them, and with --as-needed the linker leaves out the library that nothing needs any more. CGO_CFLAGS replaces
# Go's own -O2 -g. Both are kept if they are set: so one names a relative of MPICH.
set -eu
if [ -z "${CGO_CFLAGS:-}${CGO_LDFLAGS:-}" ]; then
	CGO_CFLAGS="-O2 -g $(pkg-config --cflags mpich)"
	CGO_LDFLAGS="-Wl,--as-needed $(pkg-config --libs mpich)"
	export CGO_CFLAGS CGO_LDFLAGS
fi
exec "$@"
