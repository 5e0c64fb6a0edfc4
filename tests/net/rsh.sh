#!/usr/bin/env bash
# What mpirun calls in the place of ssh: rsh.sh HOST COMMAND. A file of its own, because it takes a name and no arguments.
set -eu
exec "$(dirname "$0")/hosts.sh" --rsh "$@"
