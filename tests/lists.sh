# Sourced: lists that more than one script follows, read where they are kept.
# shellcheck shell=bash

# pure_packages are the packages that tests/tidy holds to be pure, as one regular expression of their folders.
pure_packages() {
	sed -n '/^var pure = /,/}/p' tests/tidy/pure_test.go | grep -oE '[a-z]+(/[a-z]+)+' | paste -sd '|' | grep .
}

# alone are further packages that start no goroutine; stage race looks whether that is so.
# shellcheck disable=SC2034 # for those who source this
alone="ps/workload internal/configs internal/show/metrics/timings internal/show/params internal/disk/checkpoint internal/disk/foreign internal/plan/references internal/show/verify internal/sim/whatif internal/comm/inflight internal/core/tasks internal/show/report/folder ps/scheme/example ps/scheme/schemetest"

# Below them these do: a program that is another process, and parsers of several blocks at a time.
# shellcheck disable=SC2034
not_alone="ps/workload/external ps/workload/dataset/csv ps/workload/dataset/images ps/workload/dataset/mapped ps/workload/dataset/pack"

# raced_packages are the packages that stage race runs whole, one a line: those that are not pure and not alone, without package bench,
# which times kernels in plain Go and drives runs of runtime, and without what starts other programs.
raced_packages() {
	local without
	without=$(pure_packages) || return
	go list ./internal/... ./ps/... |
		grep -vE "^fluentps/(($without)\$|(${alone// /|}|internal/rank/bench|internal/rank/runtime|internal/verbs|internal/plan/slurm)(/|\$))"
	# shellcheck disable=SC2086,SC2046 # one argument per package
	go list $(printf './%s ' $not_alone)
}

# raced_tests are the tests of internal/rank/runtime that stage race runs, as one regular expression.
raced_tests() { echo "^($(awk '!/^#/ { print $1 }' tests/raced.txt | paste -sd '|'))\$"; }

# What stage race runs whole shows there all that it shows in plain Go, so stage pure leaves it out: packages, one a line, whose tests
# neither ask whether the detector or invariants are on, nor add up vectors, which are shorter with invariants, and tests of internal/rank/runtime, as one regular expression, which raced.txt does not mark.
whole_under_race_packages() {
	local folder package
	for package in $(raced_packages); do
		folder=${package#fluentps/}
		grep -qiE '\bunderRace\b|go:build !race|\bInvariants\b|commtest\.Sums' "$folder"/*_test.go 2>/dev/null || echo "$package"
	done
}
whole_under_race_tests() { awk '!/^#/ && NF == 1 { print $1 }' tests/raced.txt | paste -sd '|'; }

# laws_in_sets are the tests that ps/LAWS.md lists within a kernel set, as folder.TestName.
laws_in_sets() {
	awk '/^#/ { inside = /Laws within a kernel set/ } inside && /^\| /' ps/LAWS.md | grep -oE '[a-z/]+\.Test\w+' | sort -u | grep .
}
