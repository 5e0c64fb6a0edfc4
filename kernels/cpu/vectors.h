// VECTORS says that the compiler takes AVX2 and AVX-512 code function by function, for processors that are asked first.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define VECTORS 1
#endif
