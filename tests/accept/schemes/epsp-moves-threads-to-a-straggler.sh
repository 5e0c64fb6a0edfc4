#!/usr/bin/env bash
# EPSP's elastic control within a worker, as reconstructed: threads of kernels move between the workers of a host (work.threads_max). Simulated: 8 workers of 4 threads, four ranks on
# a host, one worker 3 times slower, over links of several speeds. To move threads leaves the straggler fewer samples to give away, and gives its slow processor threads of fast ones. So it must
# gain 10 % where pushes of parts hold up the server's link, and may lose as much where links are fast. In real runs, over MPI, the threads of the kernels change, and the accuracy is that
# of bsp within a point.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

tests/deps.sh --test
cat >"$TMP/config.yaml" <<-END
	name: threads
	cluster: {servers: 1}
	data: {set: generated, rows: 8192}
	model: {name: mlp, layers: [512]}
	train: {batch_global: 256, optimizer: {name: sgd, lr: 0.2}, stop: {updates: 200}}
	evaluate: {every_epochs: 0}
	checkpoint: {keep: 0}
	device: {kind: cpu, threads: 4}
	work: {policy: epsp}
	simulate: {workers: 8, ranks_per_host: 4, compute: {per_sample: 1ms}, network: {latency: 50us}}
END
declare -A slow=([always]="[{worker: 3, slow: {factor: 3}}]"
	[mixed]="[{worker: 3, slow: {factor: 3}}, {worker: '*', slow: {kind: two_state, factor: 4, enter: 0.02, leave: 0.2}}]")

# took NAME BANDWIDTH FAULTS ARG... simulates, and prints the seconds of training.
took() {
	local name=$1 bandwidth=$2 faults=$3
	shift 3
	"$FLUENTPS" simulate --out "$TMP/$name" "$TMP/config.yaml" --set "simulate.network.bandwidth=$bandwidth" --set "faults=$faults" "$@" >"$TMP/log" 2>&1 || shown "simulate $*"
	get "$TMP/$name/summary.json" train_s
}
declare -A took
echo "simulated, s for 200 iterations: one worker 3 times slower | and all of them 4 times slower now and then"
printf '| link of a host | bsp | epsp | epsp, threads move | bsp | epsp | epsp, threads move |\n|---|---|---|---|---|---|---|\n' | tee "$TMP/table"
for bandwidth in 1GB 100MB 50MB 30MB 20MB; do
	row="| ${bandwidth/%[MG]B/ ${bandwidth: -2}}/s |"
	for faults in always mixed; do
		for threads in bsp 0 8; do
			what=(--set "work.threads_max=$threads")
			[ "$threads" != bsp ] || what=(--set "work={policy: fixed}")
			took[$bandwidth$faults$threads]=$(took "$bandwidth-$faults-$threads" "$bandwidth" "${slow[$faults]}" "${what[@]}")
			row+=$(awk -v t="${took[$bandwidth$faults$threads]}" 'BEGIN { printf " %.2f |", t }')
		done
	done
	echo "$row" | tee -a "$TMP/table"
done
table internal/policy/work/FALCON.md 0.01 "$TMP/table"
ratio() { awk -v a="${took[$1${2}8]}" -v b="${took[$1${2}0]}" 'BEGIN { printf "%.3f", a / b }'; }
figure "simulated: with threads that move an iteration takes $(ratio 1GB always), $(ratio 100MB always), $(ratio 50MB always), $(ratio 30MB always) and $(ratio 20MB always) times as long, over links of 1 GB/s, 100, 50, 30 and 20 MB/s"
must "$(ratio 30MB always) <= 0.9" "30 MB/s: time with threads that move, of that without"
must "$(ratio 20MB always) <= 0.9" "20 MB/s: the same"
must "$(ratio 1GB always) <= 1.1" "1 GB/s: the same"

# Real ranks: the kernels of worker 1 get threads of the others, in the mean of the run.
for policy in fixed epsp; do
	work="work={policy: $policy}"
	[ "$policy" = fixed ] || work="work={policy: epsp, threads_max: 4}"
	world 4 run --out "$TMP/real-$policy" "$TMP/config.yaml" --set "$work" --set "device.threads=2" --set "faults=[{worker: 1, slow: {sleep: 20ms}}]" --set "train.batch_global=96" --set "train.stop={updates: 60}"
done
threads=$(get "$TMP/real-epsp/summary.json" per_worker.1.threads)
figure "over MPI, 3 workers of 2 threads: worker 1, which sleeps 20 ms an iteration, has $threads threads in the mean; test accuracy $(get "$TMP/real-epsp/summary.json" test_accuracy), bsp $(get "$TMP/real-fixed/summary.json" test_accuracy)"
must "$threads > 2" "threads of the slow worker"
must "$(get "$TMP/real-epsp/summary.json" test_accuracy) >= $(get "$TMP/real-fixed/summary.json" test_accuracy) - 0.01" "test accuracy, against bsp's"
