#!/usr/bin/env bash
# Two hosts behind links of 200 Mbit/s, a worker and a server on each, against torch's DistributedDataParallel over gloo on the same hosts:
# ResNet-20 at batch 32, a thread each. Steps per second are those of DDP within the interval of the bursts of steps, which take turns, and at least 0.9 of
# the limit: of what a worker computes, or of the least time that the links allow (internal/plan/network), whichever is longer.
#   ACCEPT_ROUNDS=3   BURSTS=32
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/accept/net.sh
. "$ROOT/tests/accept/net.sh"
# shellcheck source=tests/accept/external/torch.sh
. "$ROOT/tests/accept/external/torch.sh"
# shellcheck source=tests/accept/external/speed.sh
. "$ROOT/tests/accept/external/speed.sh"

rounds=${ACCEPT_ROUNDS:-3}
BURSTS=${BURSTS:-32}
rate=25e6 # bytes per second
model=resnet20
cluster='{servers: 2, placement: colocate}'
"$HOSTS" up --wait 600 --owner $$ 2 200mbit || fail "no hosts, see above"

# ddp: as alone does, in a process on each host.
ddp() {
	local port=$((20000 + RANDOM % 10000)) rank pids=() pid code=0
	for rank in 0 1; do
		timeout 300 "$HOSTS" exec h$((rank + 1)) env GLOO_SOCKET_IFNAME=eth0 "$PYTHON" "$EXTERNAL/train.py" "$@" \
			--ddp 2 --rank $rank --store "tcp://10.77.0.1:$port" &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do wait "$pid" || code=$?; done
	return $code
}
# world takes the place of that in lib.sh: a rank on each host.
world() {
	shift
	timeout 300 "$HOSTS" mpirun --map h1,h2 --env PYTHONPATH="$PYTHONPATH" --env OMP_NUM_THREADS=1 "$FLUENTPS" "$@" >"$TMP/log" 2>&1 </dev/null ||
		shown "fluentps $* on two hosts"
}

: >"$TMP/$model.pairs"
for _ in $(seq "$rounds"); do
	had=$(wc -l <"$TMP/$model.pairs")
	beside ddp 2 $model 32 8 "$cluster"
	tail -n +$((had + 1)) "$TMP/$model.pairs" >"$TMP/times"
	computed=$(awk -F , 'NR > 1 && $2 > 11 { print $4 * 1e6 }' "$TMP/run/iterations.csv" | sort -g | awk '{ x[NR] = $1 } END { print x[int((NR + 1) / 2)] }')
	awk -v wire="$(get "$TMP/run/summary.json" wire.limit_s)" -v link="$(get "$TMP/run/summary.json" wire.link_bytes_per_s)" -v rate=$rate -v computed="$computed" \
		-v took="$(middle "$TMP/times" 3)" 'BEGIN { w = wire * link / rate * 1e6; print (w > computed ? w : computed) / took, w, computed }' >>"$TMP/limits"
done
compare "$model at batch 32 over 200 Mbit/s, beside DDP" $model 1.0
limit=$(middle "$TMP/limits" 1)
figure "$(printf %.2f "$limit") of the limit, must be 0.9: the links need $(middle "$TMP/limits" 2) us, a worker computes $(middle "$TMP/limits" 3) us"
echo "$(nproc --all) cores, load $(cut -d ' ' -f 1-3 /proc/loadavg), torch $("$PYTHON" -c 'import torch; print(torch.__version__)')"
must "$high >= 1 && $limit >= 0.9" "steps per second over thin links"
