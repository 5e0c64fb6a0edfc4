#!/usr/bin/env bash
# Every example trains to the bits of the program of another commit: with one worker under its own schemes, and with two workers and two
# servers under bsp, if that program has the example. With several workers under schemes that wait for nobody there are no bits to compare.
#   ACCEPT_BASE=82a63e0, the last before the runtime had rooms
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

# shellcheck source=tests/accept/unchanged.sh
. "$ROOT/tests/accept/unchanged.sh"

old_program 82a63e0

# bits BINARY RANKS EXAMPLE ARG...: sets sha to that of the parameters.
bits() {
	local binary=$1 ranks=$2 example=$3
	shift 3
	rm -rf "$TMP/run"
	timeout 600 "$binary" run --local "$ranks" "$example" --out "$TMP/run" "$@" >"$TMP/log" 2>&1 || shown "$binary run --local $ranks $example $*"
	sha=$(get "$TMP/run/summary.json" parameters_sha256)
	[ -n "$sha" ] || fail "$example: the summary has no parameters_sha256"
}
same=0 left=""
for example in configs/examples/*.yaml; do
	name=$(basename "$example" .yaml) test=""
	if [ ! -e "$TMP/old/$example" ]; then
		left+="${left:+, }$name (newer than that program)"
		continue
	fi
	short=(--set "train.stop={updates: 30}" --set evaluate.every_epochs=0 --set checkpoint.keep=0 --set "faults=[]")
	case $name in
	a9a*) data=libsvm/a9a.gz test=libsvm/a9a.t.gz ;;
	optdigits*) data=optdigits/optdigits.tra.gz test=optdigits/optdigits.tes.gz ;;
	cifar10*)
		data=cifar-10
		short+=(--set "train.stop={updates: 6}")
		;;
	*) data="" ;;
	esac
	if [ -n "$data" ]; then
		if [ -z "$EXTRA_DATA" ] || [ ! -e "$EXTRA_DATA/$data" ]; then
			left+="${left:+, }$name (no $data)"
			continue
		fi
		short+=(--set "data.path=$EXTRA_DATA/$data")
		[ -z "$test" ] || short+=(--set "data.test=$EXTRA_DATA/$test")
	fi
	for world in "2 cluster.servers=1" "4 sync=[{match: '*', scheme: bsp}]"; do
		args=("${short[@]}" --set "${world#* }")
		[ "${world%% *}" = 2 ] || args+=(--set cluster.servers=2)
		bits "$old" "${world%% *}" "$example" "${args[@]}"
		before=$sha
		bits "$FLUENTPS" "${world%% *}" "$example" "${args[@]}"
		[ "$sha" = "$before" ] || fail "$name with ${world%% *} ranks, ${world#* }: parameters_sha256 $sha, the program of $base has $before"
		same=$((same + 1))
	done
done
figure "parameters_sha256 of examples, as the program of $base: $same of $same the same${left:+; left out: $left}"
