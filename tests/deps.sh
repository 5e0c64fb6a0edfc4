#!/usr/bin/env bash
# Installs what the build needs and lacks, or says what to type. With nothing missing it takes milliseconds,
# because every other target calls it.
#   tests/deps.sh               everything for a build with Open MPI
#   tests/deps.sh --mpi=mpich   the same with MPICH
#   tests/deps.sh --test        everything for `make test`: both MPIs, a C++ compiler, shellcheck, PyTorch, and the tools
#                               that make hosts of namespaces
#   tests/deps.sh --slurm       everything for a build with Open MPI, and the Slurm and the hosts of tests/slurm
#   tests/deps.sh --numpy       everything for a build with Open MPI, and NumPy, in which tests/accept/checkpoint/exported-mlp-in-numpy.sh computes
#   tests/deps.sh --torch       everything for a build with Open MPI, and PyTorch, which tests/accept/speed/kernels-against-pytorch.sh compares with
#   tests/deps.sh --go-only     only Go itself: enough for the pure-Go build
set -eu
cd "$(dirname "$0")/.."
case ${1:-} in
"" | --go-only | --mpi=openmpi | --mpi=mpich | --test | --slurm | --numpy | --torch) ;;
*)
	echo "deps: $1 is not known; there are --go-only, --mpi=openmpi, --mpi=mpich, --test, --slurm, --numpy, --torch" >&2
	exit 2
	;;
esac

need_go=$(sed -n 's/^go //p' go.mod)
if ! command -v go >/dev/null; then
	echo "deps: Go is missing; this module needs Go $need_go or newer: https://go.dev/doc/install" >&2
	exit 1
fi
# From Go 1.21 on, the go command fetches the toolchain that go.mod asks for; older ones only complain.
if ! have_go=$(go env GOVERSION 2>&1); then
	printf 'deps: Go %s or newer is needed, and this one cannot fetch it: https://go.dev/doc/install\n%s\n' "$need_go" "$have_go" >&2
	exit 1
fi
have_go=${have_go#go}
if [ "$(printf '%s\n%s\n' "$need_go" "${have_go%% *}" | sort -V | head -n 1)" != "$need_go" ]; then
	echo "deps: Go $have_go is too old; this module needs Go $need_go or newer: https://go.dev/doc/install" >&2
	exit 1
fi
[ "${1:-}" != --go-only ] || exit 0

# What the loader finds, when the program or PyTorch is started.
loads() { # FILE...: one of them is found
	local file
	for file in "$@"; do
		# Not `| grep -q`, which would end ldconfig before it has written all.
		[[ $(/sbin/ldconfig -p 2>/dev/null) != *"$file"* ]] || return 0
		IFS=: read -ra folders <<<"${LD_LIBRARY_PATH:-}"
		for folder in "${folders[@]}"; do [ ! -e "$folder/$file" ] || return 0; done
	done
	return 1
}
# Files and pkg-config answer at once and also see what a module system provides; dpkg would see neither.
missing=()
command -v gcc >/dev/null || missing+=(gcc)
[ -e /usr/include/stdlib.h ] || missing+=(libc6-dev)
command -v pkg-config >/dev/null || missing+=(pkg-config)
says() { "$1" --version 2>/dev/null | grep -qi "$2"; } # mpirun is the name of either
if [ "${1:-}" != --mpi=mpich ]; then
	command -v mpirun.openmpi >/dev/null || says mpirun open || missing+=(openmpi-bin)
	pkg-config --exists ompi-c 2>/dev/null || missing+=(libopenmpi-dev)
fi
if [ "${1:-}" = --mpi=mpich ] || [ "${1:-}" = --test ]; then
	command -v mpiexec.mpich >/dev/null || says mpiexec hydra || missing+=(mpich)
	pkg-config --exists mpich 2>/dev/null || missing+=(libmpich-dev)
fi
if [ "${1:-}" = --test ]; then
	{ command -v ip && command -v tc; } >/dev/null || missing+=(iproute2)
	command -v g++ >/dev/null || missing+=(g++)
	command -v shellcheck >/dev/null || missing+=(shellcheck)
	command -v mypy >/dev/null || missing+=(mypy)
fi
if [ "${1:-}" = --slurm ]; then
	{ command -v ip && command -v tc; } >/dev/null || missing+=(iproute2)
	for program in munged:munge slurmctld:slurmctld slurmd:slurmd srun:slurm-client; do
		# Debian's daemons lie where users do not look.
		PATH=$PATH:/usr/sbin command -v "${program%:*}" >/dev/null || missing+=("${program#*:}")
	done
fi
if [ "${1:-}" = --numpy ]; then
	/usr/bin/python3 -c "import numpy" 2>/dev/null || missing+=(python3-numpy)
fi
if [ "${1:-}" = --torch ] || [ "${1:-}" = --test ]; then
	# Debian's package belongs to this Python, whichever comes first in the PATH.
	/usr/bin/python3 -c "import torch" 2>/dev/null || missing+=(python3-torch)
	# Or its products would be those of the reference BLAS, which nobody trains with.
	loads libopenblas.so.0 || missing+=(libopenblas0-pthread)
fi
# The library of products is opened at run time: what counts is what the loader finds. OpenBLAS will do, and on processors
# other than x86-64 it is the better one; the tests compute with both.
onednn=(libdnnl.so.3 libdnnl.so.2) openblas=(libopenblas.so.0)
if [ "${1:-}" = --test ]; then
	loads "${onednn[@]}" || missing+=(libdnnl-dev)
	loads "${openblas[@]}" || missing+=(libopenblas0-pthread)
elif [ "$(uname -m)" = x86_64 ]; then
	loads "${onednn[@]}" "${openblas[@]}" || missing+=(libdnnl-dev)
else
	loads "${onednn[@]}" "${openblas[@]}" || missing+=(libopenblas0-pthread)
fi
[ -e /usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz ] || missing+=(dataset-fashion-mnist)
[ "${#missing[@]}" -gt 0 ] || exit 0

echo "deps: missing: ${missing[*]}"
if ! command -v apt-get >/dev/null; then
	cat >&2 <<-END
		deps: this system has no apt-get. Install, by its own means: gcc, Open MPI 4 or MPICH 4 with headers,
		      pkg-config; \`pkg-config --exists ompi-c\` (for MPICH: mpich) must then succeed (PKG_CONFIG_PATH
		      helps with environment modules); oneDNN (libdnnl.so) or OpenBLAS, where the loader finds it (LD_LIBRARY_PATH);
		      and the four Fashion-MNIST files must lie in /usr/share/datasets/fashion-mnist.
		      Without any of it: make build-pure
	END
	exit 1
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
	if ! { command -v sudo && sudo -n true; } >/dev/null 2>&1; then
		echo "deps: not root; type this line, then try again:" >&2
		echo "sudo apt-get update && sudo apt-get install -y --no-install-recommends ${missing[*]}" >&2
		exit 1
	fi
	as_root=(sudo -n)
fi
apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 "$@" </dev/null; }
echo "deps: installing with apt-get"
# A half-reachable mirror list need not stop us: the install below says what it could not find.
apt update || echo "deps: apt-get update failed; trying with the package lists at hand" >&2
apt install -y --no-install-recommends "${missing[@]}"
