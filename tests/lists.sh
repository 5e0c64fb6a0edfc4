# Sourced: lists that more than one script follows, read where they are kept.
# shellcheck shell=bash

# pure_packages are the packages that tests/tidy holds to be pure, as one regular expression of their folders.
pure_packages() {
	sed -n '/^var pure = /,/}/p' tests/tidy/pure_test.go | grep -oE '[a-z]+(/[a-z]+)+' | paste -sd '|' | grep .
}

# alone are further packages that start no goroutine; stage race looks whether that is so.
# shellcheck disable=SC2034 # for those who source this
alone="ps/workload internal/configs internal/show/params internal/disk/checkpoint internal/disk/foreign internal/plan/references internal/show/verify internal/sim/whatif internal/comm/inflight internal/core/tasks internal/show/report/folder ps/scheme/example ps/scheme/schemetest"

# raced_tests are the tests of internal/rank/runtime that stage race runs, as one regular expression.
raced_tests() { echo "^($(grep -v '^#' tests/raced.txt | paste -sd '|'))\$"; }

# laws_in_sets are the tests that ps/LAWS.md lists within a kernel set, as folder.TestName.
laws_in_sets() {
	awk '/^#/ { inside = /Laws within a kernel set/ } inside && /^\| /' ps/LAWS.md | grep -oE '[a-z/]+\.Test\w+' | sort -u | grep .
}
