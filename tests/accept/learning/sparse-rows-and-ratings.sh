#!/usr/bin/env bash
# Matrix factorization on made-up ratings comes within 7 % of their noise, and, with the extra data at hand, sparse
# logistic regression on a9a has 0.845 test accuracy with at least 30 of 124 parameters at exactly 0; both under SSP(3).
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

world 6 run --out "$TMP/ratings" configs/examples/matrix-factorization.yaml
s=$TMP/ratings/summary.json
rmse=$(get "$s" test_rmse)
figure "matrix factorization: test RMSE ${rmse:0:6} (at most 0.107; the noise is 0.1), $(get "$s" samples_per_s) samples/s"
[ "$(get "$s" finished) $(get "$s" test_accuracy)" = "ok null" ] || fail "finished: $(get "$s" finished), test accuracy $(get "$s" test_accuracy)"
must "$rmse <= 0.107" "test RMSE"

if [ -z "$EXTRA_DATA" ]; then
	figure "a9a: not tried, no data; set FLUENTPS_TEST_DATA"
	exit 0
fi
world 6 run --out "$TMP/a9a" --set "data.path=$EXTRA_DATA/libsvm/a9a.gz" --set "data.test=$EXTRA_DATA/libsvm/a9a.t.gz" configs/examples/a9a-sparse-logistic.yaml
s=$TMP/a9a/summary.json
accuracy=$(get "$s" test_accuracy)
zeros=$(get "$s" sparsity.zeros)
figure "a9a: test accuracy ${accuracy:0:6} (at least 0.845), $zeros of $(get "$s" sparsity.parameters) parameters are 0 (at least 30)"
must "$accuracy >= 0.845" "test accuracy"
must "$zeros >= 30" "zeros"
