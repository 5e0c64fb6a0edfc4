//go:build blas

#include "libraries.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The parts of the libraries' interfaces that this file uses. They are declared here, so that a build needs no library.
typedef struct {
	int major, minor, patch;
	const char *hash;
	unsigned cpu_runtime, gpu_runtime; // some versions have more fields after these
} dnnl_version;
enum { DNNL_RUNTIME_SEQ = 1, DNNL_RUNTIME_OMP = 2 };
enum { PARALLEL_NOT = 0, PARALLEL_PTHREADS = 1, PARALLEL_OPENMP = 2 }; // of openblas_get_parallel
enum { CBLAS_ROW_MAJOR = 101, CBLAS_NO_TRANS = 111, CBLAS_TRANS = 112 };

static int (*dnnl_sgemm)(char, char, int64_t, int64_t, int64_t, float, const float *, int64_t, const float *, int64_t, float, float *, int64_t);
static void (*omp_set_num_threads)(int);
static void (*cblas_sgemm)(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *, int);

// find stores the address of a symbol in *to, a pointer of any type.
static int find(void *handle, const char *name, void *to)
{
	void *at = dlsym(handle, name);
	memcpy(to, &at, sizeof at);
	return at != NULL;
}

// Each thread of the system has its own number of OpenMP threads, which must be 1 when a product begins.
static const char *const no_limit = "it is built with OpenMP, but omp_set_num_threads is not found";

static const char *is_onednn(void *handle, products_library *l)
{
	const dnnl_version *(*version)(void) = NULL;
	int (*isa)(void) = NULL;
	if (!find(handle, "dnnl_version", &version))
		return "it has dnnl_sgemm, but no dnnl_version";
	const dnnl_version *v = version();
	snprintf(l->version, sizeof l->version, "%d.%d.%d", v->major, v->minor, v->patch);
	if (v->cpu_runtime != DNNL_RUNTIME_SEQ && v->cpu_runtime != DNNL_RUNTIME_OMP)
		return "it is built with threads that cannot be limited to the caller's own (neither OpenMP nor sequential)";
	if (v->cpu_runtime == DNNL_RUNTIME_OMP && !find(handle, "omp_set_num_threads", &omp_set_num_threads))
		return no_limit;
	l->isa = find(handle, "dnnl_get_effective_cpu_isa", &isa) ? isa() : -1;
	l->kind = LIBRARY_ONEDNN;
	return "";
}

static const char *is_openblas(void *handle, products_library *l)
{
	char *(*config)(void) = NULL, *(*core)(void) = NULL;
	void (*threads)(int) = NULL;
	int (*parallel)(void) = NULL;
	if (!find(handle, "openblas_get_config", &config) || !find(handle, "openblas_set_num_threads", &threads) ||
	    !find(handle, "openblas_get_corename", &core))
		return "it is not OpenBLAS";
	snprintf(l->version, sizeof l->version, "%s", config());
	snprintf(l->core, sizeof l->core, "%s", core());
	if (strstr(l->version, "USE64BITINT") != NULL)
		return "it counts in integers of 64 bits; take the build with 32";
	threads(1);
	const int by = find(handle, "openblas_get_parallel", &parallel) ? parallel() : PARALLEL_PTHREADS;
	if (by == PARALLEL_OPENMP && !find(handle, "omp_set_num_threads", &omp_set_num_threads))
		return no_limit;
	l->one_caller = by == PARALLEL_NOT; // a library built without threads may have been built without locks too
	l->kind = LIBRARY_OPENBLAS;
	return "";
}

// with sets an environment variable to a value, unless the value is empty or the variable is set already. It returns
// whether the caller must unset the variable.
static int with(const char *name, const char *value)
{
	const char *set = getenv(name);
	if (value[0] == 0 || (set != NULL && set[0] != 0))
		return 0;
	return setenv(name, value, 1) == 0;
}

const char *products_open(const char *file, const char *core, const char *isa, products_library *l)
{
	static char problem[512];
	memset(l, 0, sizeof *l);
	// Child processes must choose for themselves, so the variables are unset once the constructors have run. oneDNN reads
	// its variable at the first query, which is_onednn makes.
	const int cored = with("OPENBLAS_CORETYPE", core), single = with("OPENBLAS_NUM_THREADS", "1"), limited = with("ONEDNN_MAX_CPU_ISA", isa);
	void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	const char *wrong = "";
	if (handle == NULL)
		wrong = dlerror();
	else if (find(handle, "dnnl_sgemm", &dnnl_sgemm))
		wrong = is_onednn(handle, l);
	else if (find(handle, "cblas_sgemm", &cblas_sgemm))
		wrong = is_openblas(handle, l);
	else
		wrong = "it has neither dnnl_sgemm nor cblas_sgemm";
	if (cored)
		unsetenv("OPENBLAS_CORETYPE");
	if (single)
		unsetenv("OPENBLAS_NUM_THREADS");
	if (limited)
		unsetenv("ONEDNN_MAX_CPU_ISA");
	snprintf(problem, sizeof problem, "%s", wrong);
	return problem;
}

int products_multiply(products_kind kind, char trans_a, char trans_b, long m, long n, long k, const float *a, long lda, const float *b,
		    long ldb, float beta, float *c, long ldc)
{
	if (omp_set_num_threads != NULL)
		omp_set_num_threads(1); // goroutines move between threads of the system
	if (kind == LIBRARY_ONEDNN)
		return dnnl_sgemm(trans_a, trans_b, m, n, k, 1, a, lda, b, ldb, beta, c, ldc);
	cblas_sgemm(CBLAS_ROW_MAJOR, trans_a == 'T' ? CBLAS_TRANS : CBLAS_NO_TRANS, trans_b == 'T' ? CBLAS_TRANS : CBLAS_NO_TRANS, m, n, k, 1, a,
		    lda, b, ldb, beta, c, ldc);
	return 0;
}
