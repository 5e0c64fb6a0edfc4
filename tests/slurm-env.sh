#!/usr/bin/env bash
# Reads what lies in slurm/env with what reads it on a cluster, as far as that is installed, and says what was not tried.
# The shell of the Apptainer definition is always checked.
#   tests/slurm-env.sh
#   tests/slurm-env.sh --section post STAGE   prints a section of the definition: post test environment runscript
set -euo pipefail
cd "$(dirname "$0")/../slurm/env"

# section NAME STAGE: the lines of one section of one stage of the definition, which has a name.
section() {
	awk -v want="%$1" -v stage="$2" '
		tolower($1) == "bootstrap:" { inside = 0 }
		tolower($1) == "stage:" { here = ($2 == stage) }
		/^%/ { inside = ($1 == want && NF == 1); next }
		here && inside' fluentps.def
}
if [ "${1:-}" = --section ]; then
	section "$2" "$3"
	exit 0
fi

for part in "post build" "post image" "test image" "environment image" "runscript image"; do
	# shellcheck disable=SC2086 # two words
	text=$(section $part)
	[ -n "$text" ] || { echo "slurm-env: fluentps.def has no section $part" >&2; exit 1; }
	shellcheck -s sh - <<<"$text"
done

skipped=()
if command -v luac >/dev/null; then
	luac -p modulefiles/fluentps/main.lua
else
	skipped+=("main.lua (no luac)")
fi
if command -v tclsh >/dev/null; then
	tclsh <<<'if {![info complete [read [open modulefiles/fluentps/main]]]} { puts stderr "main: an open brace or quote"; exit 1 }'
else
	skipped+=("main (no tclsh)")
fi
if command -v python3 >/dev/null; then
	python3 -c 'import ast, sys; ast.parse(sys.stdin.read(), "package.py")' <spack/spack_repo/fluentps/packages/fluentps/package.py
else
	skipped+=("package.py (no python3)")
fi
if [ ! -x ../../bin/fluentps ]; then
	skipped+=("module load (nothing is built)")
elif [ -r /usr/share/lmod/lmod/init/bash ]; then
	bash -c '. /usr/share/lmod/lmod/init/bash; module use "$PWD/modulefiles" && module load fluentps && command -v fluentps >/dev/null' ||
		{ echo "slurm-env: module load fluentps failed" >&2; exit 1; }
else
	skipped+=("module load (no Lmod)")
fi
[ "${#skipped[@]}" -eq 0 ] || echo "slurm-env: not tried: ${skipped[*]}"
