#!/usr/bin/env bash
# Nobody needs to know what OPENBLAS_CORETYPE is: a run with no variable set takes at most 1.05 times the CPU seconds of the
# same run with the library, and the kernels of OpenBLAS, that are the best on this processor. Two runs of one rank: an MLP, whose
# time is products, and LeNet. Launches take turns; medians.
#   ACCEPT_LAUNCHES=5 of each
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/lib.sh"

tests/deps.sh --test
launches=${ACCEPT_LAUNCHES:-5}
choices=("" FLUENTPS_KERNELS_LIBRARY=onednn)
for core in PRESCOTT HASWELL ZEN SKYLAKEX SAPPHIRERAPIDS; do
	choices+=("FLUENTPS_KERNELS_LIBRARY=openblas OPENBLAS_CORETYPE=$core")
done
choices+=(FLUENTPS_KERNELS_LIBRARY=openblas)

# seconds CHOICE MODEL IMAGE UPDATES: CPU seconds of a run, or nothing where the processor does not have those kernels.
seconds() {
	local set=()
	read -ra set <<<"$1"
	cat >"$TMP/run.yaml" <<-END
		name: choice
		cluster: {servers: 1, placement: colocate}
		data: {set: generated, rows: 4096, test_rows: 256, image: $3}
		model: $2
		train: {batch_per_worker: 128, optimizer: {name: momentum, lr: 0.01, momentum: 0.9}, stop: {updates: $4}}
		evaluate: {every_epochs: 0}
		sync: [{match: "*", scheme: bsp}]
	END
	env -u OPENBLAS_CORETYPE -u ONEDNN_MAX_CPU_ISA -u FLUENTPS_KERNELS_ISA -u FLUENTPS_KERNELS_LIBRARY ${set[@]+"${set[@]}"} \
		bash -c 'TIMEFORMAT="%U %S"; time timeout 300 "$@" >/dev/null 2>&1' run "$FLUENTPS" run --local 1 --out "$(mktemp -d "$TMP/out.XXXX")/run" "$TMP/run.yaml" 2>"$TMP/time" || return 0
	awk '{ print $1 + $2 }' "$TMP/time"
}
: >"$TMP/lines"
for ((k = 1; k <= launches; k++)); do
	for i in "${!choices[@]}"; do
		echo "mlp $i $(seconds "${choices[$i]}" '{name: mlp, layers: [256, 128]}' '[1, 28, 28]' 800)" >>"$TMP/lines"
		echo "lenet $i $(seconds "${choices[$i]}" '{name: lenet}' '[1, 28, 28]' 150)" >>"$TMP/lines"
	done
done
# Rows: model, number of the choice, the median.
awk 'NF == 3' "$TMP/lines" | sort -k 1,1 -k 2,2n -k 3,3g | awk -v middle=$(((launches + 1) / 2)) '{ key = $1 " " $2 } key != last { n = 0; last = key } ++n == middle' >"$TMP/medians"
"$FLUENTPS" info | grep -E '^(processor|kernels) '
for model in mlp lenet; do
	awk -v model=$model '$1 == model { print $2, $3 }' "$TMP/medians" | while read -r i s; do
		printf '%-6s %8s s  %s\n' "$model" "$s" "${choices[$i]:-no variable set}"
	done
	read -r default best bestone < <(awk -v model=$model '$1 == model { if ($2 == 0) d = $3; else if (b == "" || $3 < b) { b = $3; i = $2 } } END { print d, b, i }' "$TMP/medians")
	[ -n "$bestone" ] || fail "$model: a figure is missing"
	figure "$model: a run with no variable set takes $(awk "BEGIN { printf \"%.3f\", $default / $best }") times the CPU seconds of the best choice (${choices[$bestone]}); must be at most 1.05"
	must "$default <= 1.05 * $best" "$model: CPU seconds with no variable set, $default, against $best"
done
