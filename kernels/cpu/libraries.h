// Libraries that multiply matrices, opened at run time: which kernels a library takes is decided in its constructors, so
// the choice must be made before they run.
#ifndef FLUENTPS_LIBRARIES_H
#define FLUENTPS_LIBRARIES_H

// products_kind is what a library turned out to be.
typedef enum {
	LIBRARY_ONEDNN = 1,
	LIBRARY_OPENBLAS,
} products_kind;

// products_library is one that was opened. It stays open: its threads and their memory could not be taken back.
typedef struct {
	products_kind kind;
	char version[128]; // oneDNN: "2.6.3"; OpenBLAS: its configuration, a line of words
	char core[64];     // OpenBLAS: the name of its kernels; oneDNN: empty
	int isa;           // oneDNN: the bits of dnnl_cpu_isa_t that it may use; -1: it does not say
	int one_caller;    // not 0: only one thread at a time may multiply
} products_library;

// products_open opens a file and returns "", or what is wrong with it. While its constructors run, the environment has one
// thread for OpenBLAS, since ranks share a host; core for OPENBLAS_CORETYPE and isa for ONEDNN_MAX_CPU_ISA, where they are not
// empty. The text stays until the next call.
const char *products_open(const char *file, const char *core, const char *isa, products_library *l);

// products_multiply is C (m x n) = A·B + beta*C, row-major, trans_a and trans_b 'N' or 'T', on the calling thread. It
// returns the library's own code for a failure, or 0.
int products_multiply(products_kind kind, char trans_a, char trans_b, long m, long n, long k, const float *a, long lda, const float *b,
		    long ldb, float beta, float *c, long ldc);

#endif
