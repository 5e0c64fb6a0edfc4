#!/usr/bin/env bash
# Training throughput on the CPU against PyTorch (Debian's python3-torch, installed if it is missing) with the OpenBLAS kernels
# that are its best here. One thread, batches of 32, 64 and 128: softmax and LeNet are at least 1.1 times as fast, an MLP
# 784-256-128-10, ResNet-20 and -56 at least as fast, by CPU seconds, which other programs on the machine do not lengthen. Two
# workers and a server under BSP are at least 1.5 times as fast as DistributedDataParallel over gloo with two processes for
# the MLP, and as fast for ResNet-20, by the clock. Launches take turns; medians, and the median of their ratios.
#   ACCEPT_LAUNCHES=5 of each   ACCEPT_MODELS="softmax mlp lenet resnet20 resnet56"   ACCEPT_SECONDS=0.5 of a repetition
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

tests/deps.sh --torch
export OMP_NUM_THREADS=1 # of torch and of its OpenBLAS
launches=${ACCEPT_LAUNCHES:-5}
models=" ${ACCEPT_MODELS:-softmax mlp lenet resnet20 resnet56} "
seconds=${ACCEPT_SECONDS:-0.5}
repetitions=3

# kind, model, batch (of one process), least ratio
cat >"$TMP/cases" <<-END
	one softmax 32 1.1
	one softmax 64 1.1
	one softmax 128 1.1
	one mlp 32 1.0
	one mlp 64 1.0
	one mlp 128 1.0
	one lenet 32 1.1
	one lenet 64 1.1
	one lenet 128 1.1
	one resnet20 32 1.0
	one resnet20 64 1.0
	one resnet20 128 1.0
	one resnet56 32 1.0
	one resnet56 64 1.0
	one resnet56 128 1.0
	two mlp 64 1.5
	two mlp 128 1.5
	two resnet20 32 1.0
	two resnet20 128 1.0
END
awk -v models="$models" 'index(models, " " $2 " ")' "$TMP/cases" >"$TMP/chosen"
[ -s "$TMP/chosen" ] || fail "ACCEPT_MODELS:$models- none of them is compared"
# batches KIND MODEL
batches() { awk -v kind="$1" -v model="$2" '$1 == kind && $2 == model { print $3 }' "$TMP/chosen"; }

# PyTorch takes the products of OpenBLAS, which knows no processor that is newer than itself: the fastest of its kernels counts.
best="" best_rate=0
for core in "" HASWELL ZEN SKYLAKEX SAPPHIRERAPIDS; do
	# Kernels that the processor does not have end the process.
	rate=$(OPENBLAS_CORETYPE=$core timeout 60 /usr/bin/python3 tests/bench/torchbench.py --seconds 0.3 --repetitions 3 mlp,128 2>/dev/null | cut -d ' ' -f 3) || rate=""
	if [ -n "$rate" ] && holds "$rate > $best_rate"; then best=$core best_rate=$rate; fi
done
[ "$best_rate" != 0 ] || fail "PyTorch trains with no kernels"

torch() { # KIND MODEL: lines "model batch samples/s"
	local flags=() cases=() batch
	[ "$1" = one ] || flags=(--ddp 2)
	for batch in $(batches "$1" "$2"); do cases+=("$2,$batch"); done
	OPENBLAS_CORETYPE=$best timeout 300 /usr/bin/python3 tests/bench/torchbench.py "${flags[@]}" --seconds "$seconds" --repetitions $repetitions "${cases[@]}"
}

# The same of ours. What fails has no line, and its message is kept.
go test -c -tags "mpi blas" -o "$TMP/steps" ./internal/rank/runtime
ours_one() { # MODEL
	local choice
	choice=$(batches one "$1" | paste -sd '|')
	(cd internal/rank/runtime && GOMAXPROCS=1 "$TMP/steps" -test.run '^$' -test.bench "^BenchmarkTrainStep\$/^model=$1\$/^batch=($choice)\$" \
		-test.benchtime "${seconds}s" -test.count $repetitions) >"$TMP/log" 2>&1 || grep -A 1 -m 1 -e '--- FAIL' "$TMP/log" >"$TMP/failed.one.$1" || true
	sed -n 's|^BenchmarkTrainStep/model=\([a-z0-9]*\)/batch=\([0-9]*\).* \([0-9.e+]*\) samples/cpu-s.*|\1 \2 \3|p' <(tr '\t' ' ' <"$TMP/log") |
		sort -k 2,2n -k 3,3g | awk -v middle=$(((repetitions + 1) / 2)) '$2 != last { n = 0; last = $2 } ++n == middle'
}
ours_two() { # MODEL
	local batch image='[1, 28, 28]' model="{name: $1}" out
	case $1 in
	mlp) model='{name: mlp, layers: [256, 128]}' ;;
	resnet*) image='[3, 32, 32]' ;;
	esac
	for batch in $(batches two "$1"); do
		out=$(mktemp -d "$TMP/run.XXXX")
		cat >"$TMP/two.yaml" <<-END
			name: two-workers
			cluster: {servers: 1}
			data: {set: generated, rows: 4096, test_rows: 256, image: $image}
			model: $model
			train: {batch_per_worker: $batch, optimizer: {name: momentum, lr: 0.01, momentum: 0.9}, stop: {time: 8s}}
			evaluate: {every_epochs: 0}
			sync: [{match: "*", scheme: bsp}]
		END
		if timeout 300 "${MPIRUN[@]}" -n 3 "$FLUENTPS" run --out "$out" "$TMP/two.yaml" >"$TMP/log" 2>&1; then
			echo "$1 $batch $(get "$out/summary.json" samples_per_s)"
		else
			head -n 3 "$TMP/log" >"$TMP/failed.two.$1"
		fi
	done
}

# measure WHO KIND COMMAND...: one launch's lines, with its number.
measure() {
	local who=$1 kind=$2
	shift 2
	"$@" | sed "s/^/$who $kind $k /" >>"$TMP/lines"
}
: >"$TMP/lines"
for ((k = 1; k <= launches; k++)); do
	while read -r kind model <&3; do # not standard input, which mpirun reads empty
		measure torch "$kind" torch "$kind" "$model"
		measure ours "$kind" "ours_$kind" "$model"
	done 3< <(cut -d ' ' -f 1,2 "$TMP/chosen" | uniq)
done

# A row of a case: kind, model, batch, the medians of torch and of ours, the median ratio, what it must be.
awk '
	function middle(list, n,   i, j, t) {
		for (i = 2; i <= n; i++) for (j = i; j > 1 && list[j] < list[j - 1]; j--) { t = list[j]; list[j] = list[j - 1]; list[j - 1] = t }
		return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
	}
	FILENAME == ARGV[1] { rate[$1, $2, $4, $5, $3] = $6; launches = $3 > launches ? $3 : launches; next }
	{
		n = 0
		for (k = 1; k <= launches; k++) if ((("torch", $1, $2, $3, k) in rate) && (("ours", $1, $2, $3, k) in rate)) {
			a[++n] = rate["torch", $1, $2, $3, k]; b[n] = rate["ours", $1, $2, $3, k]; r[n] = b[n] / a[n]
		}
		if (n < launches) { print $1, $2, $3, "-", "-", "-", $4; next }
		printf "%s %s %s %.0f %.0f %.2f %s\n", $1, $2, $3, middle(a, n), middle(b, n), middle(r, n), $4
	}' "$TMP/lines" "$TMP/chosen" >"$TMP/rows"
echo "samples/s (one: of CPU time), medians of $launches launches; $(nproc --all) cores, load $(cut -d ' ' -f 1 /proc/loadavg), PyTorch $(/usr/bin/python3 -c 'import torch; print(torch.__version__)') with OPENBLAS_CORETYPE=${best:-unset}"
echo "$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1), $("$FLUENTPS" info | grep -E '^(processor|kernels) ' | tr -s ' ' | paste -sd ',')"
{
	echo "kind model batch torch ours ratio must"
	cat "$TMP/rows"
} | column -t
for kind in one two; do
	grep -q "^$kind " "$TMP/rows" || continue
	figure "${kind/one/one thread}, times PyTorch: $(awk -v kind=$kind '$1 == kind { printf "%s%s %s at %s", sep, $6, $2, $3; sep = ", " }' "$TMP/rows")" |
		sed 's/: two,/: two workers and a server,/'
done

while read -r kind model batch torch ours ratio least; do
	failed=$TMP/failed.$kind.$model
	if [ "$ratio" = - ] && grep -qs '"'"$model"'" is unknown' "$failed"; then
		echo "FAIL: $kind, $model at $batch: this fluentps has no model $model"
	elif [ "$ratio" = - ]; then
		echo "FAIL: $kind, $model at $batch: no figure in some launch: $(paste -sd ' ' "$failed" 2>/dev/null || echo 'of torch')"
	else
		holds "$ratio >= $least" || echo "FAIL: $kind, $model at $batch: $ratio times PyTorch ($ours against $torch samples/s), must be $least"
	fi
done <"$TMP/rows" >"$TMP/failed"
if [ -s "$TMP/failed" ]; then
	cat "$TMP/failed"
	fail "$(wc -l <"$TMP/failed") of $(wc -l <"$TMP/rows") comparisons"
fi
