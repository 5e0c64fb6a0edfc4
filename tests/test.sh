#!/usr/bin/env bash
# All that `make test` runs, in stages. Stages run side by side, two on two cores or more: many of them wait for ranks, for silence or for a
# launcher. What a stage writes appears when it has ended; one that is named alone writes at once.
# The first failure ends the rest. At the end, also of an interrupted run, come what the stages wrote that were stopped, the
# slowest tests of all and, of each stage, the seconds that it took and the seconds of processors that it used. The lanes hide waiting; the
# processors are what the whole waits for.
#   tests/test.sh [STAGE...]   all stages, or those named
#   LANES=1 tests/test.sh      one after the other
# shellcheck disable=SC2317,SC2329 # the stages are called by name
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=tests/lists.sh
. tests/lists.sh

tags="mpi blas"
# Long ones first, so that no lane is left alone with one at the end. Ranks under MPI poll while they wait: beside stage tagged, stage race
# had not ended after 933 s; beside lint and pure it took 331 s, alone 163 s (two cores, 2026-11-28).
all="tidy lint race pure tagged kernelsets cuda nobody emulator slurm mpich kills python"

# keep passes on what `go test -json` writes as `go test` would, and notes how long each test took.
keep() { "$KEPT/slowest" "$stage" "$KEPT/tests"; }

# Packages with test files that reach, directly or through others, a package whose path matches $1. The build tags
# change the outcome of those that reach a package with cgo files.
packages_reaching() {
	go list -tags "$tags" -test -f '{{.ImportPath}} {{join .Deps " "}}' ./... |
		awk -v wanted="$1" '
			$1 !~ /\.test$/ { next }
			{ pkg = $1; sub(/\.test$/, "", pkg)
			  for (i = 2; i <= NF; i++) if ($i ~ wanted) { print pkg; next } }'
}

cgo_packages() { # as one regular expression
	go list -tags "$tags" -f '{{if .CgoFiles}}{{.ImportPath}}{{end}}' ./... | sed 's/.*/^&$/' | paste -sd '|'
}

# keep_session_folder TMP UID: Open MPI keeps all jobs of a user below one folder in TMPDIR and removes it with the
# last of them. Tests that run side by side can then meet it half-removed ("mkdir: File exists"), unless a file of
# ours keeps it. The folder given is one that the stage removes in the end.
keep_session_folder() {
	local host folder
	host=$(uname -n)
	folder=$1/ompi.${host%%.*}.$2
	mkdir -p "$folder"
	touch "$folder/kept-for-the-tests"
	chmod 700 "$folder"
	chown -R "$2" "$1"
}

stage_lint() { # what a reader of the code should never have to notice
	local unformatted
	unformatted=$(gofmt -l .)
	if [ -n "$unformatted" ]; then
		printf 'not gofmt-ed:\n%s\n' "$unformatted" >&2
		return 1
	fi
	# With these tags most files are in the build. Where some are left out, the package is looked at once more without
	# tags; what is the same files there and here has the same faults. All of it is in one environment, so that the linter is
	# built once.
	local every="$tags cuda cuemu slurm invariants" others
	others=$(go list -tags "$every" -f '{{if .IgnoredGoFiles}}{{.ImportPath}}{{end}}' ./...)
	tests/with-cuda.sh go vet -tags "$every" ./...
	tests/with-cuda.sh go tool staticcheck -tags "$every" ./...
	# shellcheck disable=SC2086 # one argument per package
	tests/with-cuda.sh go vet $others
	# shellcheck disable=SC2086 # one argument per package
	tests/with-cuda.sh go tool staticcheck $others
	tests/with-mpich.sh go vet -tags "$tags mpich" ./internal/comm/mpi/... ./tests/cli
	tests/with-cuda.sh go tool deadcode -tags "$tags cuda" ./... >"$KEPT/dead"
	if grep -vE '^([a-z/]*test|internal/comm/faulty)/|^(fluentps|ps/(scheme|workload)/own)\.go' "$KEPT/dead"; then
		echo "no program needs these: remove them, or move them beside the tests that do" >&2
		return 1
	fi
	find . -name '*.sh' -print0 | xargs -0 shellcheck
	shellcheck .ci/run
	shellcheck -s bash slurm/templates/*.sbatch
	tests/slurm-env.sh
}

stage_tidy() { # the rules of this repository
	CGO_ENABLED=0 go test -json -vet=off ./tests/tidy | keep
}

stage_pure() { # no C compiler, no MPI, no BLAS
	unset FLUENTPS_KERNELS_LIBRARY # plain Go has none, and says so
	CGO_ENABLED=0 go build ./...
	# Left out is what plain Go's kernels only make slow: here the device is the twins with which two
	# of these tests compare it, and the third compares sums of many batches. Stage tagged runs all three, and what is built of
	# other modules, there in one process too. Stage race runs what is whole under the detector. The scripts are those that stage nobody, or without root stage tagged, runs whole.
	# Of the simulated settings of each kind this stage draws the first thousand; make accept draws ten thousand and more
	# (tests/accept/simulation, tests/accept/schemes/quorum-has-its-workers.sh).
	# shellcheck disable=SC2046 # one argument per package
	FLUENTPS_TEST_SIM_SEEDS=1000 CGO_ENABLED=0 go test -json -vet=off \
		-skip '^Test((LeNet|Residual)OnTheDeviceAsOnItsTwins|SequentialTraining|A(Model|Scheme)OfAnotherModule|AModelThatFailsEndsTheRun)$|^TestScripts$/^(bench|deaths|export|local|report|restarts|resume|sweep|timeline)$' \
		$(go list ./... | grep -vxE 'fluentps/(tests/tidy|internal/rank/runtime)' | grep -vxF "$(whole_under_race_packages)") | keep
	CGO_ENABLED=0 go test -json -vet=off -tags invariants -timeout=15m -skip "^($(whole_under_race_tests))\$" ./internal/rank/runtime | keep
	CGO_ENABLED=0 go test -json -vet=off -tags purego ./internal/policy/optim ./internal/policy/orthogonal ./internal/policy/payload | keep # without vector instructions
}

# What stage nobody leaves to stage tagged, by package: what another user's rights, home and folder for sessions cannot change, since it
# only computes, compares or prints, or does the same with one rank more. Where stage nobody has nothing to do, stage tagged runs all.
declare -A computing=(
	[fluentps/internal/comm/mpi]='^TestConformance$/^ranks=[2456]$'
	[fluentps/tests/mpi]='^Test(RecordsReplay|DriversDecideAlike|(BaselinesO|AllreduceInBucketsO|MixedSchemesO|PayloadsGiveTheSameBitsO)verMPI)$'
	[fluentps/tests/cli]='^TestScripts$/^(calibrate|explain|idle|liveness|mistakes-administrator|whatif)$'
)
convolving='^Test(ConformanceOfEachInstructionSet|DirectConvolutionsAreProducts|ThreadsDoNotChangeResults)$'
untagged='check|mistakes-researcher|mistakes-student|plan|simulate|slurm|usage' # scripts that start no ranks and print the same with all tags

stage_tagged() { # with MPI and the kernels in C, what these can change; each test that needs ranks starts mpirun itself
	local cgo list dir package laws whole_in_pure='internal/(rank/(allreduce|replica|resume|runtime|serve|train)|sim(/.*)?)'
	laws=$(laws_in_sets)
	cgo=$(cgo_packages)
	list=$(packages_reaching "$cgo")
	dir=$(mktemp -d "${TMPDIR:-/tmp}/fluentps-tagged.XXXXXX")
	# shellcheck disable=SC2064 # dir is wanted as it is now
	trap "rm -rf '$dir'" EXIT
	keep_session_folder "$dir" "$(id -u)"
	# Left out is what no tag changes, and stage pure shows: kernels/kerneltest compares plain Go with
	# plain Go, tests/mutations reads, and of runs in one process, real and simulated, only the laws within a
	# kernel set depend on the kernels.
	list=$(grep -vxE "fluentps/(kernels/kerneltest|tests/mutations|$whole_in_pure)" <<<"$list")
	if [ "$(id -u)" -eq 0 ]; then
		for package in "${!computing[@]}"; do
			TMPDIR=$dir go test -json -vet=off -tags "$tags" -timeout=20m -run "${computing[$package]}" "$package" | keep
			list=$(grep -vx "$package" <<<"$list")
		done
	else
		list+=" ./tests/cli"
	fi
	for package in $(cut -d. -f1 <<<"$laws" | grep -E "^$whole_in_pure\$" | uniq); do
		go test -json -vet=off -tags "$tags" -timeout=10m -run "^($(sed -n "s|^$package\\.||p" <<<"$laws" | paste -sd '|'))\$" "./$package" | keep
	done
	# The test of an incomplete scheme builds without tags wherever it runs: stage pure runs it.
	# shellcheck disable=SC2086 # one argument per package
	TMPDIR=$dir go test -json -vet=off -tags "$tags" -timeout=20m -skip "^TestScripts\$/^($untagged)\$|^TestAnIncompleteSchemeIsRefused\$" \
		$list ./tests/net ./tests/own | keep
	# What is for AVX-512, also where there is none: the tag changes the convolutions. These tests call them in each
	# instruction set, in random shapes and by several threads.
	go test -json -vet=off -tags "blas halves" -run "$convolving" ./kernels/cpu | keep
}

stage_kernelsets() { # the laws of equality under each other set of kernels that this processor runs
	tests/kernelsets.sh --others
}

stage_kills() { # kill -9 of whole jobs, a tenth of what `make accept` tries
	[ -x bin/fluentps ] || { echo "there is no bin/fluentps: make build" >&2 && return 1; }
	KILLS=20 LIVES=1800 tests/accept/checkpoint/kill-9-resumes-bit-equal.sh
}

stage_python() { # the Python side of models of your own, and a script in PyTorch under the servers
	[ -x bin/fluentps ] || { echo "there is no bin/fluentps: make build" >&2 && return 1; }
	local example dir
	# The package's own types; following those of torch would take a minute.
	(cd ps/workload/external/python && mypy --strict --follow-imports=skip --allow-subclassing-any --allow-untyped-calls \
		--no-warn-return-any --no-warn-unused-ignores --ignore-missing-imports --cache-dir /dev/null fluentps)
	(cd ps/workload/external/python && PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 -m unittest discover -q)
	dir=$(mktemp -d "${TMPDIR:-/tmp}/fluentps-python.XXXXXX")
	# shellcheck disable=SC2064 # dir is wanted as it is now
	trap "rm -rf '$dir'" EXIT
	example=$PWD/ps/workload/external/example
	export PYTHONPATH=$PWD/ps/workload/external/python PYTHONDONTWRITEBYTECODE=1 FLUENTPS_MODEL__COMMAND="[/usr/bin/python3, $example/train.py]"
	bin/fluentps probe "$example/spiral.yaml" --out "$dir/spiral.shapes"
	bin/fluentps run "$example/spiral.yaml" --set "model.shapes=$dir/spiral.shapes" --local 3 --out "$dir/run"
	awk '$1 == "\"test_accuracy\":" { a = $2 + 0 } END { exit !(a > 0.9) }' "$dir/run/summary.json"
}

stage_slurm() { # jobs on a real Slurm of four nodes, which the tests start and end; fails where it cannot be installed
	go test -json -vet=off -count=1 -tags "$tags slurm" -timeout=8m ./tests/slurm | keep
}

stage_emulator() { # the kernels for GPUs, thread by thread on the host; what g++ warns of, fails
	CGO_CXXFLAGS="-O2 -g -Werror" go test -json -vet=off -tags cuemu ./kernels/cuemu | keep
	tests/with-races.sh go test -json -count=1 -tags "cuemu races" ./kernels/cuemu | keep # small cases; make accept runs all
}

stage_cuda() { # with CUDA, on an emulated driver: needs a C++ compiler, and nothing of NVIDIA
	local dir
	dir=$(mktemp -d "${TMPDIR:-/tmp}/fluentps-cuda.XXXXXX")
	# shellcheck disable=SC2064 # dir is wanted as it is now
	trap "rm -rf '$dir'" EXIT
	FLUENTPS_TEST_CUDA=emulated tests/with-cuda.sh --emulated go test -json -vet=off -tags "$tags cuda" ./kernels/cuda/... ./kernels/gpucheck/... ./internal/verbs | keep
	# What several goroutines of a rank call at one time: once more, with the race detector.
	FLUENTPS_TEST_CUDA=emulated tests/with-cuda.sh --emulated go test -json -vet=off -race -tags "$tags cuda" -run '^(TestADeviceFailsWhileOthersAttach|TestEveryGoroutineMayUseTheDevice)$' ./kernels/cuda | keep
	tests/with-cuda.sh go build -tags "$tags cuda" -o "$dir/fluentps" ./cmd/fluentps
	if readelf -d "$dir/fluentps" | grep -E 'NEEDED.*(cuda|cublas|nvidia)'; then
		echo "the binary needs a library of NVIDIA to start" >&2
		return 1
	fi
}

over_mpich='^Test(MixedSchemesOverMPI|BaselinesOverMPI|BSPGivesTheSameBitsOverMPI|AKilledRankEndsTheJobAndTheRunGoesOn|AStoppedRankEndsTheJobAndTheRunGoesOn'
over_mpich+='|APanicOnOneRankEndsAllOverMPI|TwoJobsWithSharedMemoryForOne)$'

hosts_alone='^Test(LinksHaveTheirRates|HostsAreOneUsers|HostsEndWithTheirOwner|OnlyRootMayMakeHosts)$'

stage_mpich() { # what needs ranks once more, built for MPICH
	# Stages tagged and nobody show what schemes, payloads, policies and folders do over a transport, and internal/comm/mpi's conformance that this
	# transport is the same one. Left are what MPI itself does: starts, failures, sums, windows, and jobs beside each other. The hosts of
	# tests/net by themselves, without ranks, are stage tagged's.
	local list
	list=$(packages_reaching '^fluentps/internal/comm/mpi$' | grep -vxE 'fluentps/(internal/verbs|internal/rank/bench|tests/mpi)')
	# shellcheck disable=SC2086 # one argument per package
	tests/with-mpich.sh go test -json -vet=off -tags "$tags mpich" -timeout=15m -skip "$hosts_alone" $list ./tests/net | keep
	tests/with-mpich.sh go test -json -vet=off -tags "$tags mpich" -timeout=10m -run "$over_mpich" ./tests/mpi | keep
	tests/with-mpich.sh go test -json -vet=off -tags "$tags mpich" -timeout=4m -run 'TestScripts/(mpi|vendor|bench)$' ./tests/cli | keep
}

stage_nobody() { # MPI and run folders as a user who is not root, owns nothing and has no home
	if [ "$(id -u)" -ne 0 ]; then
		echo "already running as $(id -un), not as root: the stages before this one were the proof"
		return 0
	fi
	# The tests run in a copy of the tree that this user may read: the clone itself may lie under /root.
	local list dir package
	list="$(packages_reaching '^fluentps/internal/comm/mpi$') $(go list ./tests/cli)"
	dir=$(mktemp -d "${TMPDIR:-/tmp}/fluentps-nobody.XXXXXX")
	# shellcheck disable=SC2064 # dir is wanted as it is now
	trap "rm -rf '$dir'" EXIT
	mkdir -p "$dir/tree" "$dir/test" "$dir/home/tmp"
	tar --exclude=./.git --exclude=./runs --exclude=./build -cf - . | tar -C "$dir/tree" -xf -
	for package in $list; do
		go test -c -vet=off -ldflags="-s -w" -tags "$tags" -o "$dir/test/${package//\//-}" "$package"
	done
	chmod -R a+rX "$dir"
	chown 65534:65534 "$dir/home"
	keep_session_folder "$dir/home/tmp" 65534
	# What opens, writes, maps or locks files, starts programs or sends signals is tried as another user.
	local -A without
	for package in "${!computing[@]}"; do without[$package]=${computing[$package]}; done
	without[fluentps/tests/cli]+="|^TestScripts\$/^($untagged)\$"
	for package in $list; do
		echo "-- $package as uid 65534"
		cd "$dir/tree/${package#fluentps/}"
		go tool test2json -t -p "$package" setpriv --reuid=65534 --regid=65534 --clear-groups \
			env HOME="$dir/home" TMPDIR="$dir/home/tmp" USER=nobody FLUENTPS_TEST_BIN="$dir/tree/bin/fluentps" \
			"$dir/test/${package//\//-}" -test.v=test2json -test.timeout=15m \
			-test.skip="${without[$package]:-^$}" </dev/null | keep
	done
}

stage_race() { # packages without cgo, with the invariant checks that only this tag turns on
	# What starts no goroutine has no races, and takes ten times as long under the detector. tests/tidy holds the pure
	# packages to it; alone holds some others. Package workload's networks would take minutes, and runs with them are in runtime. Package bench
	# times kernels in plain Go, and drives runs of runtime.
	local raced
	unset FLUENTPS_KERNELS_LIBRARY # as in stage pure
	# A test of workload that measures the heap beside it does so in a goroutine that touches nothing of the package.
	# shellcheck disable=SC2086 # one argument per folder
	if find $alone -name '*.go' ! -name '*_test.go' -exec grep -HnE '^[^/]*(\bgo func|\.Go\()' {} + | grep -vE "^(${not_alone// /|})/"; then
		echo "these start goroutines: take their packages into this stage" >&2
		return 1
	fi
	# Stage pure runs the other tests of internal/rank/runtime, and those that run less under the detector. Those in the list run what the others run, statement by statement
	# (tests/accept/run/races-are-looked-for-everywhere.sh).
	raced=$(raced_tests)
	# Both at one time: the tests of runtime run one after the other, and some of them wait.
	local outcome=0
	# shellcheck disable=SC2046 # one argument per package
	go test -json -vet=off -race -tags invariants -timeout=25m $(raced_packages) | keep &
	go test -json -vet=off -race -tags invariants -timeout=25m -run "$raced" ./internal/rank/runtime | keep || outcome=1
	wait $! || outcome=1
	return "$outcome"
}

# Each stage is a process of its own: bash turns `set -e` off inside a function whose outcome is tested.
if [ "${1:-}" = --stage ]; then
	stage=$2
	trap 'times >"$KEPT/$stage.times"' EXIT
	("stage_$stage") # a stage has an end of its own to see to
	exit
fi

# processors STAGE: the seconds that it had of them, from what the shell's times has written, in the program and in the kernel.
processors() {
	awk '{ for (i = 1; i <= 2; i++) { split($i, t, /[ms]/); sum += 60 * t[1] + t[2] } } END { printf NR ? "%.0f" : "-", sum }' \
		"$KEPT/$1.times" 2>/dev/null || echo -
}

# What two stages would otherwise make at one time is there before the first begins.
prepare() {
	case $1 in
	lint | cuda)
		tests/deps.sh --test
		tests/with-cuda.sh true
		;;
	tagged | emulator | mpich | nobody | kernelsets) tests/deps.sh --test ;;
	slurm) tests/deps.sh --slurm ;;
	esac
}

lanes=${LANES:-$(($(nproc) > 1 ? 2 : 1))}
if ! [[ $lanes =~ ^[1-9][0-9]?$ ]]; then
	echo "tests/test.sh: LANES is \"$lanes\", must be a number of stages side by side, 1 to 99" >&2
	exit 2
fi
read -ra stages <<<"${*:-$all}"
for stage in "${stages[@]}"; do
	if ! declare -F "stage_$stage" >/dev/null; then
		echo "tests/test.sh: no stage \"$stage\"; there are: $all" >&2
		exit 2
	fi
	prepare "$stage"
done

declare -A running=() began=() took=() verdict=() # running: stages by process
KEPT="" # the folder of what they write
# end_all stops the stages that run, and tells the last of what they wrote. A stage leads a session, so that it goes with all
# that it started; one that has just begun does not lead it yet.
end_all() {
	local pid stage k
	for pid in $(jobs -p); do
		kill -TERM -- "-$pid" 2>/dev/null || kill -TERM "$pid" 2>/dev/null || true
	done
	for ((k = 0; k < 150; k++)); do
		[ -n "$(jobs -rp)" ] || break
		sleep 0.2
	done
	for pid in $(jobs -rp); do
		kill -KILL -- "-$pid" "$pid" 2>/dev/null || true
	done
	wait
	for pid in "${!running[@]}"; do
		stage=${running[$pid]}
		took[$stage]=$(($(date +%s) - began[$stage]))
		verdict[$stage]=stopped
		[ ! -e "$KEPT/$stage.log" ] || { printf '\n== %s (stopped)\n' "$stage" && tail -n 60 "$KEPT/$stage.log"; }
	done
}

# finish comes however this ends. A signal more, or a reader that has gone, does not keep it from ending.
finish() {
	set +e
	trap '' INT TERM PIPE
	[ -n "$KEPT" ] || return
	end_all
	printf '\n'
	[ ! -e "$KEPT/tests" ] || "$KEPT/slowest" "$KEPT/tests"
	printf '\n'
	for stage in "${stages[@]}"; do
		printf '%-10s %-7s %5s s %7s s of processors\n' "$stage" "${verdict[$stage]:--}" "${took[$stage]:--}" "$(processors "$stage")"
	done
	rm -rf "$KEPT"
}
trap finish EXIT
trap 'exit 130' INT TERM
KEPT=$(mktemp -d "${TMPDIR:-/tmp}/fluentps-stages.XXXXXX")
export KEPT
go build -o "$KEPT/slowest" ./tests/slowest

# Under nohup SIGHUP is ignored, and by all that is started; tests send it. A shell cannot take that back.
begin() {
	# shellcheck disable=SC2016 # Perl expands it
	local heard=(perl -e '$SIG{HUP} = "DEFAULT"; exec @ARGV')
	began[$1]=$(date +%s)
	if [ "${#stages[@]}" -eq 1 ]; then
		printf '\n== %s\n' "$1"
		setsid "${heard[@]}" "$0" --stage "$1" </dev/null &
	else
		setsid "${heard[@]}" "$0" --stage "$1" >"$KEPT/$1.log" 2>&1 </dev/null &
	fi
	running[$!]=$1
}

# ended waits for a stage and tells what it wrote.
ended() {
	local pid stage
	code=0
	wait -n -p pid "${!running[@]}" || code=$?
	stage=${running[$pid]}
	unset "running[$pid]"
	took[$stage]=$(($(date +%s) - began[$stage]))
	verdict[$stage]=$([ "$code" -eq 0 ] && echo ok || echo FAIL)
	[ ! -e "$KEPT/$stage.log" ] || { printf '\n== %s\n' "$stage" && cat "$KEPT/$stage.log"; }
}

code=0
for stage in "${stages[@]}"; do
	while [ "$code" -eq 0 ] && [ "${#running[@]}" -ge "$lanes" ]; do
		ended
	done
	[ "$code" -eq 0 ] || break
	begin "$stage"
done
while [ "$code" -eq 0 ] && [ "${#running[@]}" -gt 0 ]; do
	ended
done
exit "$code"
