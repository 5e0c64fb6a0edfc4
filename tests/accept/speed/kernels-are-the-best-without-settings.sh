#!/usr/bin/env bash
# Nobody needs to know what OPENBLAS_CORETYPE is: a run with no variable set takes at most 1.05 times the CPU seconds of the
# same run with the library, and the kernels of OpenBLAS, that are the best on this processor. Two runs of one rank: an MLP, whose
# time is products, and LeNet. Launches take turns, there and back; medians of the ratios of neighbours in time. What takes a quarter
# more than no variable in the first round is not among the best, and is left out of the others.
#   ACCEPT_LAUNCHES=9 of each
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

tests/deps.sh --test
launches=${ACCEPT_LAUNCHES:-9}
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
# Lines: round, model, number of the choice, seconds.
: >"$TMP/lines"
out=" " # models with the numbers of the choices that are left out
for ((k = 1; k <= launches; k++)); do
	order=("${!choices[@]}")
	if ((k % 2 == 0)); then
		mapfile -t order < <(printf '%s\n' "${order[@]}" | tac)
	fi
	for model in mlp lenet; do
		for i in "${order[@]}"; do
			case $out in *" $model:$i "*) continue ;; esac
			case $model in
			mlp) took=$(seconds "${choices[$i]}" '{name: mlp, layers: [256, 128]}' '[1, 28, 28]' 3000) ;;
			*) took=$(seconds "${choices[$i]}" '{name: lenet}' '[1, 28, 28]' 400) ;;
			esac
			if [ -z "$took" ]; then # the processor, or this machine, has no such kernels
				out+="$model:$i "
				continue
			fi
			echo "$k $model $i $took" >>"$TMP/lines"
			[ "$i" -ne 0 ] || first=$took
			if ((k == 1)) && holds "$took > 1.25 * $first"; then out+="$model:$i "; fi
		done
	done
done
"$FLUENTPS" info | grep -E '^(processor|kernels) '
# median of the numbers on standard input, nothing where there are none
median() { sort -g | awk '{ v[NR] = $1 } END { if (NR) print (NR % 2) ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
for model in mlp lenet; do
	worst=0 best="none beside it"
	for i in "${!choices[@]}"; do
		took=$(awk -v model=$model -v i="$i" '$2 == model && $3 == i { print $4 }' "$TMP/lines" | median)
		[ -n "$took" ] || continue
		ratio=$(awk -v model=$model -v i="$i" '$2 == model { t[$1, $3] = $4; rounds[$1] } END { for (k in rounds) if ((k, i) in t) print t[k, 0] / t[k, i] }' "$TMP/lines" | median)
		printf '%-6s %8s s  %5.3f  %s\n' "$model" "$took" "$ratio" "${choices[$i]:-no variable set}"
		if [ "$i" -ne 0 ] && holds "$ratio > $worst"; then worst=$ratio best=${choices[$i]}; fi
	done
	figure "$model: a run with no variable set takes $(printf %.3f "$worst") times the CPU seconds of the best choice ($best); must be at most 1.05"
	must "$worst <= 1.05" "$model: CPU seconds with no variable set against $best"
done
