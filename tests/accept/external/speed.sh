# Sourced by the scripts beside it that compare speeds, behind torch.sh.
# shellcheck shell=bash

export OMP_NUM_THREADS=1 # of both sides: torch.set_num_threads leaves OpenBLAS its threads

# beside PLAIN RANKS MODEL BATCH BURST CLUSTER: plain torch, started by the function PLAIN with the arguments of train.py, and the same model
# under our servers. Both run at once, and take bursts of steps in turn, so that both are timed at the same speed of the machine. Appends to $TMP/MODEL.pairs, for each
# burst, "torch its-cpu ours its-cpu": us per step of the slowest process, and of a processor.
beside() {
	local plain=$1 ranks=$2 model=$3 batch=$4 burst=$5 turns=$TMP/turns rank who
	local steps=$((burst * BURSTS)) args
	rm -rf "$TMP/run" "$turns"
	mkdir "$turns"
	for rank in 0 1; do mkfifo "$turns/turn.plain.$rank" "$turns/turn.ours.$rank"; done
	args=(--turns "$turns" --burst "$burst")
	cat >"$TMP/speed.yaml" <<-END
		name: speed
		cluster: $6
		data: {set: external, rows: 4096, test_rows: 1024}
		model: {name: external, command: $(command_of "$model" generated "${args[@]}"), shapes: $TMP/$model.shapes}
		train: {batch_per_worker: $batch, optimizer: {name: sgd, lr: 0.01}, stop: {updates: $steps}}
		sync: [{match: "*", scheme: bsp}]
		device: {threads: 1}
		evaluate: {every_epochs: 0}
		checkpoint: {keep: 0}
	END
	[ -e "$TMP/$model.shapes" ] || shapes "$TMP/speed.yaml" "$TMP/$model.shapes"
	"$plain" "$model" generated --plain "$batch" --steps "$steps" "${args[@]}" >"$TMP/plain.log" 2>&1 </dev/null &
	job=$!
	world "$ranks" run --no-report --no-what-if --out "$TMP/run" "$TMP/speed.yaml"
	wait "$job" || { cp "$TMP/plain.log" "$TMP/log" && shown "train.py --plain"; }
	job=""
	cp "$TMP/run/summary.txt" "$TMP/$model.summary"
	for who in plain ours; do
		rm "$turns/turn.$who".*
		paste -d ' ' "$turns/$who".* | awk '{ print (NF > 2 && $3 > $1) ? $3 " " $4 : $1 " " $2 }' >"$turns/$who"
	done
	paste -d ' ' "$turns/plain" "$turns/ours" | awk 'NF == 4' >>"$TMP/$model.pairs"
}
alone() { exec timeout 300 "$PYTHON" "$EXTERNAL/train.py" "$@"; }

# compare NAME MODEL LEAST: prints a figure of $TMP/MODEL.pairs; sets ratio, the median, and low and high, the ends of the
# interval in which it lies at 95 %: the bursts in order that are 0.98 roots of their number off the middle.
compare() {
	local file=$TMP/$2.pairs n off
	n=$(wc -l <"$file")
	[ "$n" -ge 20 ] || fail "only $n bursts of $2"
	awk '{ print $1 / $3 }' "$file" | sort -g >"$file.ratios"
	off=$(awk -v n="$n" 'BEGIN { print int(n / 2 - 0.98 * sqrt(n)) }')
	ratio=$(sed -n "$(((n + 1) / 2))p" "$file.ratios")
	low=$(sed -n "${off}p" "$file.ratios") high=$(sed -n "$((n + 1 - off))p" "$file.ratios")
	figure "$1: $(middle "$file" 3) us per step ($(middle "$file" 4) of its processor), torch $(middle "$file" 1) us ($(middle "$file" 2)), $n bursts; steps per second $(printf %.3f "$ratio") times torch's ($(printf %.3f "$low") to $(printf %.3f "$high")), must be $3"
}
middle() { cut -d ' ' -f "$2" "$1" | sort -g | awk '{ x[NR] = $1 } END { print x[int((NR + 1) / 2)] }'; }
