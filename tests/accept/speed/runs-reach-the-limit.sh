#!/usr/bin/env bash
# A run with nothing set for its network reaches the limit of the links: a net of 16 equal layers without computing on four hosts, bsp and asp,
# 2 servers and 2 workers, 1 and 3, 4 that do both, and mixed (1 serves, 3 do both). At 200 Mbit/s and 1 Gbit/s a round takes at most 1 / 0.9 of
# the least time that the network cards allow at 4, 16 and 64 MiB, and 1 / 0.8 at 1 MiB; with one link of 50 Mbit/s at most 1 / 0.85 of the
# least time there (bsp, 4 MiB, the placements whose cards all carry the same). The limit counts 0.95 of a link's rate, since the rest is headers (internal/plan/network). The median round of the slowest worker.
#   ACCEPT_RATES="200mbit 1gbit"   ACCEPT_SIZES="1 4 16 64" (MiB)   ACCEPT_LAUNCHES=1: of each case; the median counts
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/accept/net.sh
. "$ROOT/tests/accept/net.sh"

launches=${ACCEPT_LAUNCHES:-1}
hosts_up 4 200mbit

# round_s DIR: the median round of the slowest worker, without the first two rounds.
round_s() {
	awk -F , 'NR > 1 { if (++n[$1] > 3) print $1, $3 - last[$1]; last[$1] = $3 }' "$1/iterations.csv" | sort -k 1,1n -k 2,2g |
		awk '{ x[$1, ++n[$1]] = $2 } END { for (w in n) { m = x[w, int((n[w] + 1) / 2)]; if (m > worst) worst = m } print worst }'
}

# share SCHEME PLACEMENT SERVERS WORKERS MIB RATE: the share of the limit that a run reaches, where the slowest link has RATE bytes per second.
share() {
	local rounds=$((5 + 24 / ($5 + 1))) out layers
	layers=$(yes $(($5 * 65536 / 4)) | head -16 | paste -sd ,)
	out=$(mktemp -d "$TMP/run.XXXX")
	cat >"$TMP/config.yaml" <<-END
		name: limit
		cluster: {servers: $3, placement: $2}
		data: {set: generated, features: 1}
		model: {name: synthetic, layers: [$layers], compute: 0s}
		train: {batch_per_worker: 1, optimizer: {name: sgd, lr: 0.1}, stop: {samples: $((rounds * $4))}}
		sync: [{match: "*", scheme: $1}]
		evaluate: {every_epochs: 0}
	END
	timeout 300 "$HOSTS" mpirun --map h1,h2,h3,h4 "$FLUENTPS" run "$TMP/config.yaml" --out "$out" >"$TMP/log" 2>&1 </dev/null || shown "$1 $2 $5 MiB"
	awk "BEGIN { printf \"%.3f\n\", $(get "$out/summary.json" wire.limit_s) * $(get "$out/summary.json" wire.link_bytes_per_s) / $6 / $(round_s "$out") }"
	rm -rf "$out"
}

bytes_per_s() { case $1 in 50mbit) echo 6.25e6 ;; 200mbit) echo 25e6 ;; 1gbit) echo 125e6 ;; esac }
: >"$TMP/shares"
# judged WHAT MUST SCHEME PLACEMENT SERVERS WORKERS MIB RATE
judged() {
	local k
	for ((k = 0; k < launches; k++)); do share "${@:3}"; done >"$TMP/case"
	printf '%s\t%s\t%s\n' "$1" "$(median_share <"$TMP/case")" "$2" | tee -a "$TMP/shares"
}
median_share() { sort -g | awk '{ x[NR] = $1 } END { print x[int((NR + 1) / 2)] }'; }

placements=("spread 2 2" "spread 1 3" "colocate 4 4" "mixed 1 3")
printf 'case\tof the limit\tmust be\n'
for rate in ${ACCEPT_RATES:-200mbit 1gbit}; do
	for h in h1 h2 h3 h4; do "$HOSTS" rate $h "$rate"; done
	for placed in "${placements[@]}"; do
		read -r placement servers workers <<<"$placed"
		for scheme in bsp asp; do
			for mib in ${ACCEPT_SIZES:-1 4 16 64}; do
				must=0.9
				[ "$mib" -gt 1 ] || must=0.8
				judged "$rate $placement $servers+$workers $scheme $mib MiB" $must "$scheme" "$placement" "$servers" "$workers" "$mib" "$(bytes_per_s "$rate")"
			done
		done
	done
done
for h in h1 h2 h4; do "$HOSTS" rate $h 200mbit; done
"$HOSTS" rate h3 50mbit
for placed in "spread 2 2" "colocate 4 4"; do
	read -r placement servers workers <<<"$placed"
	judged "one link of 50mbit $placement $servers+$workers bsp 4 MiB" 0.85 bsp "$placement" "$servers" "$workers" 4 "$(bytes_per_s 50mbit)"
done
least=$(sort -t $'\t' -k 2,2g "$TMP/shares" | head -1)
figure "$(wc -l <"$TMP/shares") cases with nothing set: the least share of the limit is $(cut -f 2 <<<"$least") ($(cut -f 1 <<<"$least")); load $(cut -d ' ' -f 1 /proc/loadavg), $(nproc) cores"
missed=$(awk -F '\t' '$2 < $3' "$TMP/shares")
[ -z "$missed" ] || fail "below what they must be:
$missed"
