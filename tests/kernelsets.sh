#!/usr/bin/env bash
# The tests of the laws within a kernel set (ps/LAWS.md), once under each distinct set that this processor runs.
#   tests/kernelsets.sh --others   but for the set that is taken by itself, under which stages tagged and nobody run them; no set begins
#                                  after KERNELSETS_SECONDS (60): those that are left are named
#   tests/kernelsets.sh [SET...]   a SET is variables of the environment with commas between: FLUENTPS_KERNELS_ISA=avx2
# Variables that choose kernels and that a set does not name are unset under it, whatever the environment has; what is taken by
# itself is taken with them.
# Without sets: what is taken by itself, all kernels limited to each level, our twins for products, and OpenBLAS with each core
# type that it may have kernels for.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=tests/lists.sh
. tests/lists.sh

tags="mpi blas"
page=ps/LAWS.md
cores="SapphireRapids Cooperlake SkylakeX Zen Haswell Sandybridge Nehalem Core2 Penryn Dunnington Atom Nano Opteron Opteron_SSE3 Barcelona
	Bobcat Bulldozer Piledriver Steamroller Excavator"
choosing=(FLUENTPS_KERNELS_ISA FLUENTPS_KERNELS_LIBRARY OPENBLAS_CORETYPE ONEDNN_MAX_CPU_ISA DNNL_MAX_CPU_ISA)

# The tests stand in the table of laws, each as folder.TestName.
laws=$(laws_in_sets) || { echo "tests/kernelsets.sh: $page names no tests under \"Laws within a kernel set\"" >&2 && exit 1; }
packages=$(cut -d. -f1 <<<"$laws" | uniq)

dir=$(mktemp -d "${TMPDIR:-/tmp}/fluentps-kernelsets.XXXXXX")
# shellcheck disable=SC2064 # dir is wanted as it is now
trap "rm -rf '$dir'" EXIT
for package in $packages; do
	go test -c -vet=off -ldflags="-s -w" -tags "$tags" -o "$dir/${package//\//-}" "./$package"
done

# under SET PACKAGE ARG...: the tests of a package, in its folder, with the variables of the set and no other that chooses kernels.
under() {
	local set=$1 package=$2 variables=() without=()
	shift 2
	IFS=, read -ra variables <<<"$set"
	[ -z "$set" ] || without=("${choosing[@]/#/--unset=}")
	(cd "$package" && env "${without[@]}" "${variables[@]}" "$dir/${package//\//-}" "$@")
}

# fingerprint SET: the name of the set that a process computes with, and a hash of its bits.
fingerprint() {
	under "$1" kernels/cpu -test.v -test.run '^TestFingerprint$' >"$dir/said" 2>&1 || return
	sed -n 's/.* kernel set \(.*\): \([0-9a-f]*\)$/\2 \1/p' "$dir/said"
}

# laws_under SET: all packages side by side, since many of their tests wait. What MPI could add to what a set computes, one
# set would show as well as ten: after that one, the ranks of one process stand for the others.
laws_under() {
	local package failed=0
	local packages=$packages
	[ "$((++tried))" -le 1 ] || packages=$(grep -vx tests/mpi <<<"$packages")
	declare -A started=()
	for package in $packages; do
		under "$1" "$package" -test.timeout=5m \
			-test.run "^($(sed -n "s|^$package\\.||p" <<<"$laws" | paste -sd '|'))\$" >"$dir/${package//\//-}.said" 2>&1 </dev/null &
		started[$package]=$!
	done
	for package in $packages; do
		wait "${started[$package]}" && continue
		failed=1
		echo "$package fails under the kernel set $1:"
		cat "$dir/${package//\//-}.said"
	done
	return $failed
}

others=""
if [ "${1:-}" = --others ]; then
	others=1
	shift
fi
sets=("$@")
if [ $# -eq 0 ]; then
	sets=("" FLUENTPS_KERNELS_ISA=none "FLUENTPS_KERNELS_LIBRARY=openblas,OPENBLAS_CORETYPE=Prescott" FLUENTPS_KERNELS_ISA=avx2
		ONEDNN_MAX_CPU_ISA=AVX FLUENTPS_KERNELS_LIBRARY=go)
	for core in $cores; do sets+=("FLUENTPS_KERNELS_LIBRARY=openblas,OPENBLAS_CORETYPE=$core"); done
fi
declare -A seen=()
tried=0 # sets under which the laws were held
code=0
began=$(date +%s)
for set in "${sets[@]}"; do
	label=${set:-as it is}
	if ! print=$(fingerprint "$set"); then
		if grep -q -e SIGILL -e "and this processor has" "$dir/said"; then
			echo "-- $label: this processor does not run it"
			continue
		fi
		echo "-- $label: no kernel set:" >&2
		cat "$dir/said" >&2
		exit 1
	fi
	if [ -z "$print" ]; then
		echo "-- $label: TestFingerprint of kernels/cpu passes, but writes no line \"kernel set NAME: BITS\"; it says:" >&2
		cat "$dir/said" >&2
		exit 1
	fi
	if [ -n "${seen[${print%% *}]:-}" ]; then
		echo "-- $label: the bits of ${seen[${print%% *}]}"
		continue
	fi
	seen[${print%% *}]=$label
	if [ -n "$others" ] && [ -z "$set" ]; then
		echo "-- $label (${print#* }): stage tagged"
		continue
	fi
	start=$(date +%s)
	if [ -n "$others" ] && [ $((start - began)) -ge "${KERNELSETS_SECONDS:-60}" ]; then
		echo "-- $label (${print#* }): not tried, for ${KERNELSETS_SECONDS:-60} s have passed; tests/kernelsets.sh tries all"
		continue
	fi
	laws_under "$set" || code=1
	echo "-- $label (${print#* }): $([ $code -eq 0 ] && echo ok || echo FAIL), $(($(date +%s) - start)) s"
	[ $code -eq 0 ] || exit 1
done
