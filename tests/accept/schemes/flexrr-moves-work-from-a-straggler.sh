#!/usr/bin/env bash
# FlexRR over MPI: 4 workers, one of them 3 times slower, whose computing is slept, so that the ratio does not depend on the machine. Without slack one request of one helper makes
# an iteration 1.33 times shorter at best, and at least 1.25 times here; chunks of two helpers 1.6 times. The same under ssp(3), which alone does not help against a worker that
# is always slow. Then all workers are slow now and then: whatever comes is printed. At last FlexRR learns what bsp learns, with real gradients, within a point.
#   ACCEPT_ITERATIONS=40
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/accept/work.sh
. "$(dirname "$0")/../work.sh"

tests/deps.sh --test
once="flexrr, help: {first: 0, helpers: 1}"
always="[{worker: 1, slow: {factor: 3}}]"
slept bsp "$always" bsp fixed
slept ssp "$always" "ssp, staleness: 3" fixed
slept once "$always" bsp "$once"
slept chunks "$always" bsp flexrr
slept ssp-once "$always" "ssp, staleness: 3" "$once"
slept ssp-chunks "$always" "ssp, staleness: 3" flexrr
figure "s for $iterations iterations, one of 4 workers 3 times slower: bsp $(took bsp), ssp(3) $(took ssp); flexrr with one request $(took once) ($(times ssp once) times faster than ssp(3); at least 1.25, at most 1.33), with chunks $(took chunks) ($(times ssp chunks); at least 1.6); with slack 3: one request $(took ssp-once) ($(times ssp ssp-once); at least 1.25), chunks $(took ssp-chunks) ($(times ssp ssp-chunks); at least 1.6)"

now_and_then="[{worker: '*', slow: {kind: two_state, factor: 4, enter: 0.05, leave: 0.2}}]"
slept t-bsp "$now_and_then" bsp fixed
slept t-ssp "$now_and_then" "ssp, staleness: 3" fixed
slept t-flexrr "$now_and_then" bsp flexrr
slept t-ssp-flexrr "$now_and_then" "ssp, staleness: 3" flexrr
figure "s for $iterations iterations, all 4 workers 4 times slower now and then: bsp $(took t-bsp), ssp(3) $(took t-ssp), flexrr $(took t-flexrr) without slack, $(took t-ssp-flexrr) with 3"

for name in once ssp-once; do
	must "$(times ssp $name) >= 1.25" "$name: times faster than ssp(3)"
done
for name in chunks ssp-chunks; do
	must "$(times ssp $name) >= 1.6" "$name: times faster than ssp(3)"
done
learns_like_bsp flexrr
