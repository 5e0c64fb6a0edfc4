#!/usr/bin/env bash
# FlexRR over MPI: 4 workers, one of them 3 times slower, whose computing is slept, so that the ratio does not depend on the machine. Without slack one request of one helper makes
# an iteration 1.33 times shorter at best, and at least 1.25 times here; chunks of three helpers 1.6 times. The same under ssp(3), which alone does not help against a worker that
# is always slow: FlexRR is compared with the same gate, because under ssp(3) a run ends with the slow worker three iterations behind. Then all workers are slow now and then: whatever comes is printed. At last FlexRR learns what bsp learns, with real gradients, within a point.
#   ACCEPT_ITERATIONS=40, ACCEPT_REPEATS=3
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
figure "s for $iterations iterations, one of 4 workers 3 times slower: bsp $(took bsp), ssp(3) $(took ssp); flexrr without slack: one request $(took once), $(times bsp once) times faster than bsp (at least 1.25, at most 1.33) and $(times ssp once) times than ssp(3), chunks $(took chunks), $(times bsp chunks) and $(times ssp chunks) (at least 1.6); with slack 3: one request $(took ssp-once), $(times ssp ssp-once) times faster than ssp(3) (at least 1.25), chunks $(took ssp-chunks), $(times ssp ssp-chunks) (at least 1.6)"

now_and_then="[{worker: '*', slow: {kind: two_state, factor: 4, enter: 0.05, leave: 0.2}}]"
slept t-bsp "$now_and_then" bsp fixed
slept t-ssp "$now_and_then" "ssp, staleness: 3" fixed
slept t-flexrr "$now_and_then" bsp flexrr
slept t-ssp-flexrr "$now_and_then" "ssp, staleness: 3" flexrr
figure "s for $iterations iterations, all 4 workers 4 times slower now and then: bsp $(took t-bsp), ssp(3) $(took t-ssp), flexrr $(took t-flexrr) without slack, $(took t-ssp-flexrr) with 3"

must "$(times bsp once) >= 1.25" "one request: times faster than bsp"
must "$(times ssp ssp-once) >= 1.25" "one request: times faster than ssp(3)"
must "$(times bsp chunks) >= 1.6" "chunks: times faster than bsp"
must "$(times ssp ssp-chunks) >= 1.6" "chunks: times faster than ssp(3)"
learns_like_bsp flexrr
