#!/usr/bin/env bash
# DSSP's Table I in shape, with real gradients in virtual time: two workers, one 3 times faster, time to a target accuracy
# that takes at least 600 pushes, evaluated every 5 pushes, median of 5 seeds. Literal dssp within 3 % of asp and at
# least 1.8 times faster than bsp and ssp with 3, 6 and 15; bounded dssp keeps its bound. All schemes have the same
# learning rate, batch and target, none tuned to one of them; the example's comment says why these.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

config=configs/examples/dssp-table-1.yaml
rules=(
	"bsp|bsp"
	"asp|asp"
	"ssp 3|ssp, staleness: 3"
	"ssp 6|ssp, staleness: 6"
	"ssp 15|ssp, staleness: 15"
	"dssp literal|dssp, s_l: 3, s_u: 15, mode: literal"
	"dssp bounded|dssp, s_l: 3, s_u: 15, mode: bounded"
)

# simulate OUT SEED RULE ARG... leaves a summary in OUT.
simulate() {
	local out=$1 seed=$2 rule=$3
	shift 3
	"$FLUENTPS" simulate "$config" --seed "$seed" --out "$out" --set "sync=[{match: '*', scheme: $rule}]" "$@" >"$out.log" 2>&1 ||
		{ tail -n 5 "$out.log"; fail "simulate of $rule, seed $seed"; }
}
# two COMMAND...: in the background, two at a time.
running=0
two() {
	"$@" &
	running=$((running + 1))
	[ $((running % 2)) -ne 0 ] || wait
}
median() { sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
# pushes OUT: those committed when the target was reached.
pushes() {
	local reached
	reached=$(get "$1/summary.json" target_reached_s)
	[ "$reached" != null ] || fail "the target was not reached: see $(sed -n 1,8p "$1.log")"
	paste -d ' ' <(get "$1/summary.json" evaluations.*.at_s) <(get "$1/summary.json" evaluations.*.samples) |
		awk -v at="$reached" '$1 == at { print $2 / 128; exit }'
}

for i in "${!rules[@]}"; do
	for seed in 1 2 3 4 5; do
		two simulate "$TMP/$i-$seed" "$seed" "${rules[i]#*|}"
	done
done
wait

declare -A time
least=1000000000
sed -n 's/^simulated:   \(compute\|network\|servers\|faults\|real\) /simulated:   \1 /p' "$TMP/0-1/summary.txt"
for i in "${!rules[@]}"; do
	name=${rules[i]%|*}
	times=""
	lead=0
	fewest=1000000000
	for seed in 1 2 3 4 5; do
		out=$TMP/$i-$seed
		[ -f "$out/summary.json" ] || fail "$name, seed $seed: no summary"
		n=$(pushes "$out")
		holds "$n >= $fewest" || fewest=$n
		times+=$(get "$out/summary.json" target_reached_s)$'\n'
		n=$(get "$out/summary.json" max_lead)
		[ "$n" -le "$lead" ] || lead=$n
	done
	time[$name]=$(printf '%s' "$times" | median)
	holds "$fewest >= $least" || least=$fewest
	row[i]=$(printf '%s\t%s\t%s\t%s\t%s' "$name" "${time[$name]}" "$fewest" "$lead" "$(printf '%s' "$times" | sort -n | awk '{ printf "%.1f ", $1 }')")
	[ "$name" != "dssp bounded" ] || bounded=$lead
done
literal=${time[dssp literal]}
echo "simulated: seconds of virtual time to a test accuracy of $(get "$TMP/0-1/summary.json" target), Fashion-MNIST, softmax; 5 seeds"
printf '  %-13s %9s %13s %14s %9s  %s\n' scheme "median s" "over literal" "fewest pushes" "max lead" "each seed"
for r in "${row[@]}"; do
	IFS=$'\t' read -r name t fewest lead each <<<"$r"
	printf '  %-13s %9.1f %13.2f %14d %9d  %s\n' "$name" "$t" "$(awk "BEGIN { print $t / $literal }")" "$fewest" "$lead" "$each"
done

# The claim needs steady workers: how much longer literal dssp takes than asp for 1,000 pushes, timing mode.
ratios=""
for noise in 0.001 0.01 0.02 0.05 0.1; do
	for seed in 1 2 3 4 5; do
		for scheme in asp "dssp, s_l: 3, s_u: 15, mode: literal"; do
			simulate "$TMP/noise-$noise-$seed-${scheme%%,*}" "$seed" "$scheme" --set simulate.gradients=false --set "train.stop={samples: 128000}" \
				--set "data={set: generated, features: 784, classes: 10, rows: 60000}" --set "simulate.compute=$(awk "BEGIN { print 100 * (1 - 3 * $noise) }")ms" \
				--set "faults[1].slow.factor=$(awk "BEGIN { print 1 / (1 - 3 * $noise) }")"
		done
		awk "BEGIN { print $(get "$TMP/noise-$noise-$seed-dssp/summary.json" train_s) / $(get "$TMP/noise-$noise-$seed-asp/summary.json" train_s) }"
	done >"$TMP/ratios"
	ratios+=" $(awk "BEGIN { print 100 * $noise }") %: $(median <"$TMP/ratios") ($(sort -n "$TMP/ratios" | sed -n '1p;$p' | paste -sd ' ' | sed 's/ / to /'));"
done
echo "simulated: literal over asp, seconds for 1,000 pushes, median (least to most) by the noise of computing:$ratios"

slowest=""
for name in bsp "ssp 3" "ssp 6" "ssp 15"; do
	slowest+=" $name $(awk "BEGIN { printf \"%.2f\", ${time[$name]} / $literal }"),"
done
figure "simulated: literal dssp takes $(awk "BEGIN { printf \"%.3f\", $literal / ${time[asp]} }") of asp's time (within 3 %); over it${slowest%,} (at least 1.8)"
figure "simulated: the target takes $least pushes or more (at least 600); bounded dssp leads by at most $bounded (15)"
must "$least >= 600" "pushes to the target"
must "$literal <= 1.03 * ${time[asp]} && $literal >= 0.97 * ${time[asp]}" "literal dssp against asp"
for name in bsp "ssp 3" "ssp 6" "ssp 15"; do
	must "${time[$name]} >= 1.8 * $literal" "$name against literal dssp"
done
must "$bounded <= 15" "max lead of bounded dssp"
