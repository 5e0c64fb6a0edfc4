#!/usr/bin/env bash
# HPSGD hides its exchange behind computing: 1 server and 2 workers on three hosts with links of 200 Mbit/s, a model of 4 MiB whose computing is slept, 150 ms a step. The server's
# card needs 353 ms for the pushes or the answers of a step, so bsp runs at half the speed of computing alone at most. With local: {policy: hpsgd} the workers take at least 0.9 times as
# many steps a second as computing alone, both with steps: 0, as many steps as an exchange takes, and with 6 steps.
#
# Computing alone is local: {policy: averaging} with more steps than the run has: one exchange at the end. Its run, and all others, begin with a pull and end with
# a push that nothing hides. Averaging with 6 steps stands beside: as many bytes as HPSGD with 6, and nothing hidden.
#   ACCEPT_LAUNCHES=3
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/accept/net.sh
. "$ROOT/tests/accept/net.sh"

launches=${ACCEPT_LAUNCHES:-3}
readonly STEPS=120 WORKERS=2 COMPUTE_MS=150
cat >"$TMP/config.yaml" <<-END
	name: hpsgd
	cluster: {servers: 1}
	data: {set: generated, features: 1}
	model: {name: synthetic, layers: [$(yes 131072 | head -8 | paste -sd ,)], compute: ${COMPUTE_MS}ms}
	train: {batch_per_worker: 1, optimizer: {name: sgd, lr: 0.1}, stop: {samples: $((STEPS * WORKERS))}}
	evaluate: {every_epochs: 0}
	checkpoint: {keep: 0}
END
hosts_up $((WORKERS + 1)) 200mbit
echo "load $(cut -d ' ' -f 1 /proc/loadavg), $(nproc) cores"

names=(bsp alone hpsgd hpsgd-6 averaging-6)
declare -A policy=([bsp]="{policy: none}" [alone]="{policy: averaging, steps: $((STEPS * 10))}" [hpsgd]="{policy: hpsgd}"
	[hpsgd-6]="{policy: hpsgd, steps: 6}" [averaging-6]="{policy: averaging, steps: 6}")
# The launches take turns, so that all of them see the same machine.
for ((k = 0; k < launches; k++)); do
	for name in "${names[@]}"; do
		on_hosts h1,h2,h3 run "$TMP/config.yaml" --out "$TMP/$name-$k" --set "local=${policy[$name]}"
		s=$TMP/$name-$k/summary.json
		[ "$(get "$s" finished)" = ok ] || fail "$name: finished: $(get "$s" finished)"
		must "$(get "$s" samples) >= $STEPS * $WORKERS" "samples of $name"
		get "$s" samples_per_s >>"$TMP/$name"
		get "$s" updates >>"$TMP/$name.updates"
	done
done
rate() { sort -g "$TMP/$1" | awk '{ x[NR] = $1 } END { printf "%.3f", NR % 2 ? x[(NR + 1) / 2] : (x[NR / 2] + x[NR / 2 + 1]) / 2 }'; }
of() { awk "BEGIN { printf \"%.3f\", $1 / $2 }"; }
alone=$(rate alone)
slept=$(awk "BEGIN { printf \"%.3f\", $WORKERS * 1000 / $COMPUTE_MS }")
for name in "${names[@]}"; do
	printf '%-12s %7.2f samples/s (%s) %6.3f of computing alone, %6.3f of what the sleeps allow; %4.0f exchanges\n' "$name" "$(rate "$name")" \
		"$(sort -g "$TMP/$name" | awk '{ printf "%s%.2f", (NR > 1 ? " " : ""), $1 }')" "$(of "$(rate "$name")" "$alone")" "$(of "$(rate "$name")" "$slept")" "$(median <"$TMP/$name.updates")"
done
open=$(of "$(rate hpsgd)" "$alone") fixed=$(of "$(rate hpsgd-6)" "$alone") bsp=$(of "$(rate bsp)" "$alone")
figure "$WORKERS workers at 200 Mbit/s, steps a second against computing alone: hpsgd $open, with 6 steps $fixed (both must be 0.9 or more); bsp $bsp (must be 0.5 or less), averaging with 6 steps $(of "$(rate averaging-6)" "$alone")"
must "$bsp <= 0.5" "what there is to hide: bsp against computing alone"
must "$open >= 0.9" "hpsgd with as many steps as an exchange takes, against computing alone"
must "$fixed >= 0.9" "hpsgd with 6 steps, against computing alone"
must "$(median <"$TMP/hpsgd.updates") >= $STEPS / 10" "exchanges of hpsgd"
