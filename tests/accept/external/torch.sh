# Sourced by the scripts beside it, behind lib.sh: the package on PYTHONPATH, and how a torch program is configured.
# shellcheck shell=bash

PYTHON=${ACCEPT_PYTHON:-/usr/bin/python3}
EXTERNAL=$ROOT/tests/accept/external
export PYTHONPATH=$ROOT/ps/workload/external/python${PYTHONPATH:+:$PYTHONPATH}
"$PYTHON" -c 'import torch, fluentps' 2>/dev/null || "$ROOT/tests/deps.sh" --torch

# command MODEL DATA ARG...: the list for model.command.
command_of() {
	printf '[%s, %s' "$PYTHON" "$EXTERNAL/train.py"
	printf ', "%s"' "$@"
	printf ']'
}

# shapes CONFIG FILE: writes the shapes of the configuration's model.
shapes() { "$FLUENTPS" probe "$1" --out "$2" --force >"$TMP/log" 2>&1 || shown "fluentps probe $1"; }
