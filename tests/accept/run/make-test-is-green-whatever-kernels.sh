#!/usr/bin/env bash
# `make test` from a clean clone is green with no variable that chooses kernels, and with products of OpenBLAS whatever core type
# it is told to take, and takes at most 12 minutes on two quiet cores; and it is green three times in a row beside two busy loops.
#   ACCEPT_CORES="- PRESCOTT HASWELL SKYLAKEX"   - stands for no variable; those that the processor has no instructions for are
#                                                left out, and said; ZEN is another that may be asked for
#   ACCEPT_BUSY=3 times beside the busy loops
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

clone "$TMP/clone"
cores=${ACCEPT_CORES:-- PRESCOTT HASWELL SKYLAKEX}
# needs CORE: the processor's flag without which the kernels for it do not run.
needs() {
	case $1 in
	HASWELL | ZEN) echo avx2 ;;
	SKYLAKEX | COOPERLAKE | SAPPHIRERAPIDS) echo avx512f ;;
	esac
}
# tested NAME [VARIABLE=VALUE]...: seconds of `make test`, with no other variable that chooses kernels and with nothing taken
# from earlier results.
tested() {
	local name=$1 start
	shift
	start=$(date +%s)
	env -u FLUENTPS_KERNELS_ISA -u FLUENTPS_KERNELS_LIBRARY -u OPENBLAS_CORETYPE -u ONEDNN_MAX_CPU_ISA -u DNNL_MAX_CPU_ISA \
		GOFLAGS="${GOFLAGS:-} -count=1" "$@" make -C "$TMP/clone" test >"$TMP/log" 2>&1 || {
		grep -e '--- FAIL' -B 2 -A 120 "$TMP/log" | head -n 240 || true # the end of the log alone does not say which test
		shown "make test, $name"
	}
	seconds=$(($(date +%s) - start))
	tail -n 40 "$TMP/log"
}
worst=0 list=""
for core in $cores; do
	flag=$(needs "$core")
	if [ -n "$flag" ] && ! grep -q -w "$flag" /proc/cpuinfo; then
		echo "OpenBLAS for $core is left out: the processor has no $flag"
		list+="${list:+, }OpenBLAS for $core left out (no $flag)"
		continue
	fi
	if [ "$core" = - ]; then
		name="no variable set"
		tested "$name"
	else
		name="OpenBLAS for $core"
		tested "$name" FLUENTPS_KERNELS_LIBRARY=openblas OPENBLAS_CORETYPE="$core"
	fi
	list+="${list:+, }$name $seconds s"
	[ "$seconds" -le "$worst" ] || worst=$seconds
done
figure "make test by kernel set: $list (at most 720); $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores, load $(cut -d ' ' -f 1 /proc/loadavg)"

busy=()
trap 'kill "${busy[@]}" 2>/dev/null || true; at_exit' EXIT
for _ in 1 2; do
	while :; do :; done &
	busy+=($!)
done
list=""
for ((k = 1; k <= ${ACCEPT_BUSY:-3}; k++)); do
	tested "beside two busy loops, time $k"
	list+="${list:+, }$seconds s"
done
[ -z "$list" ] || figure "make test beside two busy loops: green, $list"
[ "$worst" -le 720 ] || fail "make test took $worst s, must be at most 720"
