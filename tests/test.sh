#!/usr/bin/env bash
# All that `make test` runs, in stages that stop at the first failure. The tree is compiled only three times: pure
# Go, with the build tags, and with the race detector.
#   tests/test.sh [STAGE...]   all stages, or those named
# shellcheck disable=SC2317 # the stages are called by name
set -euo pipefail
cd "$(dirname "$0")/.."

tags="mpi blas"
all="lint tidy pure tagged kills slurm emulator cuda mpich nobody race"

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
	go vet ./...
	go vet -tags "$tags" ./...
	go tool staticcheck ./...
	go tool staticcheck -tags "$tags" ./...
	tests/deps.sh --test
	find . -name '*.sh' -print0 | xargs -0 shellcheck
	shellcheck .ci/run
	shellcheck -s bash slurm/templates/*.sbatch
	tests/slurm-env.sh
}

stage_tidy() { # the rules of this repository
	CGO_ENABLED=0 go test -vet=off ./tests/tidy
}

stage_pure() { # no C compiler, no MPI, no BLAS
	CGO_ENABLED=0 go build ./...
	CGO_ENABLED=0 go test -vet=off ./...
	CGO_ENABLED=0 go test -vet=off -tags purego ./ps/optim ./comm/payload # without vector instructions
}

stage_tagged() { # with MPI and the kernels in C, what these can change; each test that needs ranks starts mpirun itself
	local cgo list dir
	tests/deps.sh --test
	cgo=$(cgo_packages)
	list=$(packages_reaching "$cgo")
	dir=$(mktemp -d "${TMPDIR:-/tmp}/fluentps-tagged.XXXXXX")
	# shellcheck disable=SC2064 # dir is wanted as it is now
	trap "rm -rf '$dir'" EXIT
	keep_session_folder "$dir" "$(id -u)"
	# shellcheck disable=SC2086 # one argument per package
	TMPDIR=$dir go test -vet=off -tags "$tags" $list ./tests/...
	go test -vet=off -tags "blas halves" ./kernels/cpu # what is for AVX-512, also where there is none
}

stage_kills() { # kill -9 of whole jobs, a tenth of what `make accept` tries
	[ -x bin/fluentps ] || { echo "there is no bin/fluentps: make build" >&2 && return 1; }
	KILLS=20 LIVES=1800 tests/accept/6-1-kill-resume.sh
}

stage_slurm() { # jobs on a real Slurm of four nodes, which the tests start and end; fails where it cannot be installed
	tests/deps.sh --slurm
	go vet -tags "$tags slurm" ./tests/slurm
	go tool staticcheck -tags "$tags slurm" ./tests/slurm
	go test -vet=off -count=1 -tags "$tags slurm" -timeout=8m ./tests/slurm
}

stage_emulator() { # the kernels for GPUs, thread by thread on the host; what g++ warns of, fails
	tests/deps.sh --test
	go vet -tags cuemu ./kernels/cuemu
	go tool staticcheck -tags cuemu ./kernels/cuemu
	CGO_CXXFLAGS="-O2 -g -Werror" go test -vet=off -tags cuemu ./kernels/cuemu
}

stage_cuda() { # with CUDA, on an emulated driver: needs a C++ compiler, and nothing of NVIDIA
	local dir
	dir=$(mktemp -d "${TMPDIR:-/tmp}/fluentps-cuda.XXXXXX")
	# shellcheck disable=SC2064 # dir is wanted as it is now
	trap "rm -rf '$dir'" EXIT
	tests/with-cuda.sh go vet -tags "$tags cuda" ./...
	tests/with-cuda.sh go tool staticcheck -tags "$tags cuda" ./kernels/... ./cmd/...
	FLUENTPS_TEST_CUDA=emulated tests/with-cuda.sh --emulated go test -vet=off -tags "$tags cuda" ./kernels/cuda/... ./cmd/fluentps
	tests/with-cuda.sh go build -tags "$tags cuda" -o "$dir/fluentps" ./cmd/fluentps
	if readelf -d "$dir/fluentps" | grep -E 'NEEDED.*(cuda|cublas|nvidia)'; then
		echo "the binary needs a library of NVIDIA to start" >&2
		return 1
	fi
}

stage_mpich() { # all that needs ranks once more, built for MPICH
	local list
	tests/deps.sh --test
	list=$(packages_reaching '^fluentps/comm/mpi$' | grep -v '^fluentps/cmd/')
	tests/with-mpich.sh go vet -tags "$tags mpich" ./comm/mpi/... ./tests/cli
	# shellcheck disable=SC2086 # one argument per package
	tests/with-mpich.sh go test -vet=off -tags "$tags mpich" -timeout=6m $list ./tests/net
	tests/with-mpich.sh go test -vet=off -tags "$tags mpich" -timeout=4m -run 'TestScripts/(mpi|vendor|bench)$' ./tests/cli
}

stage_nobody() { # MPI and run folders as a user who is not root, owns nothing and has no home
	if [ "$(id -u)" -ne 0 ]; then
		echo "already running as $(id -un), not as root: the stages before this one were the proof"
		return 0
	fi
	# The tests run in a copy of the tree that this user may read: the clone itself may lie under /root.
	local list dir package
	list="$(packages_reaching '^fluentps/comm/mpi$') $(go list ./tests/cli)"
	dir=$(mktemp -d "${TMPDIR:-/tmp}/fluentps-nobody.XXXXXX")
	# shellcheck disable=SC2064 # dir is wanted as it is now
	trap "rm -rf '$dir'" EXIT
	mkdir -p "$dir/tree" "$dir/test" "$dir/home/tmp"
	tar --exclude=./.git --exclude=./runs -cf - . | tar -C "$dir/tree" -xf -
	for package in $list; do
		go test -c -vet=off -tags "$tags" -o "$dir/test/${package//\//-}" "$package"
	done
	chmod -R a+rX "$dir"
	chown 65534:65534 "$dir/home"
	keep_session_folder "$dir/home/tmp" 65534
	for package in $list; do
		echo "-- $package as uid 65534"
		cd "$dir/tree/${package#fluentps/}"
		setpriv --reuid=65534 --regid=65534 --clear-groups \
			env HOME="$dir/home" TMPDIR="$dir/home/tmp" USER=nobody FLUENTPS_TEST_BIN="$dir/tree/bin/fluentps" \
			"$dir/test/${package//\//-}" -test.timeout=10m </dev/null
	done
}

stage_race() { # packages without cgo, with the invariant checks that only this tag turns on
	# What starts no goroutine has no races, and takes ten times as long under the detector. tests/tidy holds the pure
	# packages to it; of the others package workload's networks would take minutes, and runs with them are in runtime.
	local without
	if grep -nE '^[^/]*(\bgo func|\.Go\()' ps/workload/*.go; then
		echo "ps/workload starts goroutines: take it into this stage" >&2
		return 1
	fi
	without=$(sed -n 's/^var pure = //p' tests/tidy/pure_test.go | grep -oE '[a-z]+/[a-z]+' | paste -sd '|')
	test -n "$without"
	# shellcheck disable=SC2046 # one argument per package
	go test -vet=off -race -tags invariants $(go list ./comm/... ./configs/... ./ps/... | grep -vE "^fluentps/($without|ps/workload)(/|\$)")
}

# Each stage is a process of its own: bash turns `set -e` off inside a function whose outcome is tested.
if [ "${1:-}" = --stage ]; then
	"stage_$2"
	exit
fi
stages=${*:-$all}
table=""
code=0
for stage in $stages; do
	if ! declare -F "stage_$stage" >/dev/null; then
		echo "tests/test.sh: no stage \"$stage\"; there are: $all" >&2
		exit 2
	fi
	if [ "$code" -ne 0 ]; then
		table+=$(printf '%-8s -' "$stage")$'\n'
		continue
	fi
	printf '\n== %s\n' "$stage"
	start=$(date +%s)
	"$0" --stage "$stage" || code=$?
	verdict=$([ "$code" -eq 0 ] && echo ok || echo FAIL)
	table+=$(printf '%-8s %-4s %5d s' "$stage" "$verdict" $(($(date +%s) - start)))$'\n'
done
printf '\n%s' "$table"
exit "$code"
