# Sourced by the scripts beside it that compare speeds, behind torch.sh.
# shellcheck shell=bash

export OMP_NUM_THREADS=1 # of both sides: torch.set_num_threads leaves OpenBLAS its threads

# alone MODEL BATCH STEPS ARG...: microseconds of a step of plain torch, the median of the steps, and of its processor on average.
alone() {
	local model=$1 batch=$2 steps=$3
	shift 3
	"$PYTHON" "$EXTERNAL/train.py" "$model" generated --plain "$batch" --steps "$steps" "$@" >"$TMP/log" 2>&1 || shown "train.py --plain"
	us_of "$TMP/log"
}

# under RANKS MODEL BATCH STEPS CLUSTER: the same of the slowest worker under our servers. KEPT keeps the run's folder.
under() {
	local ranks=$1 model=$2 batch=$3 steps=$4
	rm -rf "$TMP/run"
	cat >"$TMP/speed.yaml" <<-END
		name: speed
		cluster: $5
		data: {set: external, rows: 4096, test_rows: 1024}
		model: {name: external, command: $(command_of "$model" generated), shapes: $TMP/$model.shapes}
		train: {batch_per_worker: $batch, optimizer: {name: sgd, lr: 0.01}, stop: {updates: $steps}}
		sync: [{match: "*", scheme: bsp}]
		device: {threads: 1}
		evaluate: {every_epochs: 0}
		checkpoint: {keep: 0}
	END
	[ -e "$TMP/$model.shapes" ] || shapes "$TMP/speed.yaml" "$TMP/$model.shapes"
	world "$ranks" run --no-report --no-what-if --out "$TMP/run" "$TMP/speed.yaml"
	cp "$TMP/run/summary.txt" "$TMP/$model.summary"
	us_of "$TMP/run/logs"
}
us_of() { grep -rhoE 'us_per_step.*' "$1" | sed 's/.*cpu \([0-9.]*\) median \([0-9.]*\).*/\2 \1/' | sort -g | tail -n 1 | grep . || fail "no time of a step in $1"; }

# compare NAME FILE LEAST: FILE has "torch its-cpu ours its-cpu" of each round, in us a step; cpu: of the process that computes. Prints a figure; sets ratio, low and high, the ends of the
# interval in which the median ratio lies at 95 %: the second of the ratios in order, of 7 or 8; the first of fewer.
compare() {
	local n
	n=$(wc -l <"$2")
	awk '{ print $1 / $3 }' "$2" | sort -g >"$2.ratios"
	ratio=$(sed -n "$(((n + 1) / 2))p" "$2.ratios")
	low=$(sed -n "$((n >= 7 ? 2 : 1))p" "$2.ratios") high=$(sed -n "$((n >= 7 ? n - 1 : n))p" "$2.ratios")
	figure "$1: $(middle "$2" 3) us per step ($(middle "$2" 4) of its processor), torch $(middle "$2" 1) us ($(middle "$2" 2)); steps per second $(printf %.2f "$ratio") times torch's ($(printf %.2f "$low") to $(printf %.2f "$high")), must be $3"
}
middle() { cut -d ' ' -f "$2" "$1" | sort -g | awk '{ x[NR] = $1 } END { print x[int((NR + 1) / 2)] }'; }
