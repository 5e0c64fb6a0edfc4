# Smoke test:
#   spack load fluentps && fluentps info && fluentps run --local 6 CLONE/configs/examples/first.yaml

import os

from spack_repo.builtin.build_systems import go
from spack_repo.builtin.build_systems.go import GoPackage

from spack.package import *

# The clone that contains this file. The last commit of its branch main is built.
clone = os.path.realpath(__file__).partition("/slurm/env/spack/")[0]


class Fluentps(GoPackage):
    """A parameter server for HPC clusters: each MPI rank serves parameters or computes gradients, and every shard has
    its own synchronization scheme."""

    git = "file://" + clone

    license("MIT")

    version("main", branch="main")

    variant("mpi", default=True, description="Ranks as processes of MPI; without it, as goroutines of one process")
    variant("cuda", default=False, description="Compute on NVIDIA GPUs; the driver is looked for when a run starts")

    # The version of go.mod.
    depends_on("go@1.26:", type="build")
    # Without MPI and CUDA the program is pure Go, and no C is compiled.
    with when("+mpi"):
        depends_on("c", type="build")
        depends_on("mpi")
        # Opened at run time. On x86-64 oneDNN is faster; on other processors it has plain loops where OpenBLAS has kernels.
        depends_on("onednn cpu_runtime=omp", when="target=x86_64:")
        depends_on("openblas", when="target=aarch64:")
        depends_on("openblas", when="target=ppc64le:")
        depends_on("pkgconfig", type="build")
        # The versions that were tested.
        requires("^[virtuals=mpi] openmpi@4", "^[virtuals=mpi] mpich@4", policy="one_of")
    conflicts("+cuda", when="~mpi", msg="without MPI no C is compiled, which CUDA needs")

    sanity_check_is_file = ["bin/fluentps"]


class GoBuilder(go.GoBuilder):
    @property
    def build_args(self):
        tags = []
        if self.spec.satisfies("+mpi"):
            tags += ["mpi", "blas"]
        if self.spec.satisfies("^[virtuals=mpi] mpich"):
            tags += ["mpich"]
        if self.spec.satisfies("+cuda"):
            tags += ["cuda"]
        return ["-buildvcs=false", "-tags", " ".join(tags), "./cmd/fluentps"]

    @property
    def ldflags(self):
        return ["-X", f"fluentps/internal/verbs.version={self.spec.version}"]

    def setup_build_environment(self, env: EnvironmentModifications) -> None:
        super().setup_build_environment(env)
        if self.spec.satisfies("+mpi"):
            # A Go package that we use has fixed flags for Debian's Open MPI. The folders given here precede its folders,
            # and --as-needed drops a library that is then unused.
            mpi = self.spec["mpi"]
            env.set("CGO_CFLAGS", f"-O2 -g {mpi.headers.include_flags}")
            env.set("CGO_LDFLAGS", f"-Wl,--as-needed {mpi.libs.ld_flags}")

    def build(self, pkg, spec, prefix):
        if not spec.satisfies("+cuda"):
            return super().build(pkg, spec, prefix)
        # with-cuda.sh makes the driver's header and a loader in place of NVIDIA's library, and passes them to Go.
        with working_dir(self.build_directory):
            Executable("tests/with-cuda.sh")("go", "build", *self.std_build_args, *self.build_args)
