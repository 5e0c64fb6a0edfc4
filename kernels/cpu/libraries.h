// Libraries of matrix products, opened at run time. A library chooses its kernels in its constructors, so its environment
// must be set before they run.
#ifndef FLUENTPS_LIBRARIES_H
#define FLUENTPS_LIBRARIES_H

// products_kind is the kind of a library.
typedef enum {
	LIBRARY_ONEDNN = 1,
	LIBRARY_OPENBLAS,
} products_kind;

// products_library is an open library. It stays open, because its threads and their memory could not be released.
typedef struct {
	products_kind kind;
	char version[128]; // oneDNN: "2.6.3"; OpenBLAS: its configuration, a line of words
	char core[64];     // OpenBLAS: the name of its kernels; oneDNN: empty
	int isa;           // oneDNN: the bits of dnnl_cpu_isa_t that it may use; -1: unknown
	int one_caller;    // not 0: only one thread at a time may multiply
} products_library;

// products_open opens a file and returns "", or the problem with it. While the library's constructors run, the environment
// sets one thread for OpenBLAS, because ranks share a host. It also sets OPENBLAS_CORETYPE to core and ONEDNN_MAX_CPU_ISA to
// isa if these are not empty. The text is valid until the next call.
const char *products_open(const char *file, const char *core, const char *isa, products_library *l);

// products_multiply computes C (m x n) = A·B + beta*C, row-major, on the calling thread. trans_a and trans_b are 'N' or 'T'.
// It returns 0, or the library's own code for a failure.
int products_multiply(products_kind kind, char trans_a, char trans_b, long m, long n, long k, const float *a, long lda, const float *b,
		    long ldb, float beta, float *c, long ldc);

#endif
