// VECTORS says that the compiler can compile single functions for AVX2 and AVX-512. The program checks the processor before
// it calls one.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define VECTORS 1
#endif
