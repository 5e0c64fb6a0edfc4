# Bare `make` lists the targets. Each of them is what CI or a person runs; nothing hides behind them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# `make build MPI=mpich`, `make run MPI=mpich`: the program can be built for one MPI or the other, side by side.
MPI := openmpi
# With the tags the binary speaks MPI and computes with oneDNN or OpenBLAS, whichever it finds when it starts, and C of our
# own; without them it is plain Go. More ranks than cores is
# our normal case on a laptop, where binding would leave each rank one core. Debian's names tell two MPIs apart.
launcher = $(firstword $(foreach name,$(1),$(shell command -v $(name) || true)) $(lastword $(1)))
ifeq ($(MPI),openmpi)
TAGS := mpi blas
BINARY := bin/fluentps
BUILD_ENV :=
MPIRUN = $(call launcher,mpirun.openmpi mpirun) --oversubscribe --bind-to none
RANKS ?= 6
else ifeq ($(MPI),mpich)
TAGS := mpi mpich blas
BINARY := bin/fluentps-mpich
BUILD_ENV := tests/with-mpich.sh
MPIRUN = $(call launcher,mpiexec.mpich mpiexec)
# On two cores more of them were seen to hang.
RANKS ?= 4
else
$(error MPI is "$(MPI)", must be openmpi or mpich)
endif

# `make build CUDA=1`: with GPUs. The binary needs no NVIDIA library to start, and neither does its build.
ifdef CUDA
TAGS += cuda
BUILD_ENV += tests/with-cuda.sh
endif

# `make run CONFIG=... RANKS=... ARGS="--out DIR --set train.optimizer.lr=0.1"`
CONFIG ?= configs/examples/fashion-mlp-mixed.yaml
ARGS ?=
# `make accept ONLY=bsp-has-the-same-bits` runs the scripts whose name contains it; `make soak SOAK_MINUTES=600`.
ONLY ?=
SOAK_MINUTES ?= 120
FUZZ_SECONDS ?= 10

# The build states its own version: go's own stamping needs a git that trusts the folder's owner.
VERSION = $(shell git describe --tags --always 2>/dev/null || echo unversioned)
COMMIT = $(shell git rev-parse --short=12 HEAD 2>/dev/null)
DIRTY = $(shell test -z "$$(git status --porcelain 2>/dev/null)" || echo true)
export GOFLAGS := $(GOFLAGS) -buildvcs=false
LDFLAGS = -X fluentps/internal/verbs.version=$(VERSION) -X fluentps/internal/verbs.commit=$(COMMIT) -X fluentps/internal/verbs.dirty=$(DIRTY)

# Open MPI refuses root without these; they are harmless for others.
export OMPI_ALLOW_RUN_AS_ROOT := 1
export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM := 1

.PHONY: help deps build build-pure run test pictures lint accept fuzz soak bench bench-go golden gpu-test-bins ptx ptx-check clean

help: ## list the targets (this)
	@grep -hE '^[a-z-]+:.*## ' Makefile | awk -F ':.*## ' '{printf "  make %-11s %s\n", $$1, $$2}'

deps: ## install what is missing: MPI, oneDNN, a C compiler, the Fashion-MNIST files
	@tests/deps.sh --mpi=$(MPI)

build: deps ## bin/fluentps, with Open MPI and the kernels in C; MPI=mpich: bin/fluentps-mpich, with MPICH; CUDA=1: and with GPUs
	@$(BUILD_ENV) go build -tags "$(TAGS)" -ldflags "$(LDFLAGS)" -o $(BINARY) ./cmd/fluentps
	@echo "built $(BINARY) ($(TAGS))"

build-pure: ## bin/fluentps-pure, plain Go: needs no C library; ranks run in one process
	@tests/deps.sh --go-only
	@CGO_ENABLED=0 go build -ldflags "$(LDFLAGS)" -o bin/fluentps-pure ./cmd/fluentps
	@echo "built bin/fluentps-pure"

run: ## train an MLP on Fashion-MNIST under mpirun: 2 servers, 4 workers, mixed schemes (or MPI=mpich)
	@t0=$$(date +%s); $(MAKE) deps; \
	t1=$$(date +%s); $(MAKE) build; \
	t2=$$(date +%s); \
	echo "setup: deps $$((t1 - t0)) s, build $$((t2 - t1)) s; neither counts as the run's time"; \
	echo "+ $(MPIRUN) -n $(RANKS) $(BINARY) run $(CONFIG) $(ARGS)"; \
	exec $(MPIRUN) -n $(RANKS) $(BINARY) run $(CONFIG) $(ARGS)

test: build ## everything that CI runs: lint, tidy, pure Go, both MPIs, Slurm, CUDA emulated, another user, race
	@tests/test.sh

pictures: build ## draw the pictures of the pages again
	internal/show/report/pictures/draw.sh

lint: deps ## gofmt, go vet and staticcheck, with and without the build tags; shellcheck
	@tests/test.sh lint

accept: build ## the promises, one script each, with its figure; a table at the end (ONLY=name)
	@tests/accept/run.sh $(ONLY)

fuzz: ## fuzz every reader (data, YAML, environment, checkpoints, host lists, messages), FUZZ_SECONDS (10) each
	@tests/deps.sh --go-only
	@tests/fuzz.sh $(FUZZ_SECONDS)

soak: build ## many seeds of the schedule-sensitive tests, for SOAK_MINUTES (120)
	@tests/soak.sh $(SOAK_MINUTES)

bench: build ## push, pull and messages beside references in C, as ratios (LAUNCHES=3 SIZES=... SCHEMES=...)
	@$(MAKE) -C tests/bench
	@tests/bench/run.sh

bench-go: deps ## Go micro-benchmarks of kernels, wire and transports
	@$(BUILD_ENV) go test -tags "$(TAGS)" -run '^$$' -bench . -benchmem ./internal/... ./kernels/... ./ps/...

golden: deps ## rewrite the golden files; read the diff before you commit it
	@tests/golden.sh

ptx: ## make the PTX of the kernels for GPUs anew; needs NVRTC 11.8 (kernels/cuda/ptx/make.sh)
	@kernels/cuda/ptx/make.sh
	@go test ./kernels -count=1 -run TestTheEmulatorHasEverySource -update

ptx-check: ## make it and compare with what is committed
	@kernels/cuda/ptx/make.sh --check

gpu-test-bins: ## build/gpu/: tests and program to carry to a machine with a GPU, where kernels/gpu-check runs them
	@tests/deps.sh --go-only; mkdir -p build/gpu
	@tests/with-cuda.sh go test -c -vet=off -tags cuda -o build/gpu/cuda.test ./kernels/cuda
	@tests/with-cuda.sh go test -c -vet=off -tags cuda -o build/gpu/program.test ./internal/verbs
	@tests/with-cuda.sh go build -tags cuda -ldflags "$(LDFLAGS)" -o build/gpu/fluentps ./cmd/fluentps
	@tests/with-cuda.sh go build -tags "cuda blas" -o build/gpu/check ./kernels/gpucheck/check
	@cp kernels/gpu-check tests/bench/torchbench.py tests/bench/torchpeer.py build/gpu/
	@echo "built build/gpu: copy it, and there run ./gpu-check"

clean: ## remove bin/ and build/ (runs/ and sweeps/ are yours)
	@rm -rf bin build
