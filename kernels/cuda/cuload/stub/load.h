/* The stub loader: a static libcuda.a whose functions jump through a table, so that a program that uses CUDA starts on
 * a machine without a driver. */
#ifndef FLUENTPS_CULOAD_H
#define FLUENTPS_CULOAD_H

/* Other libraries must not see these functions. */
#pragma GCC visibility push(hidden)

/* Codes of cuload_open beside CUDA's own, which are not negative. */
enum { CULOAD_NO_LIBRARY = -1, CULOAD_NO_INIT = -2 };

/* Opens the driver and fills the table. Returns 0, the code of CUDA's cuInit, or one of the codes above. Before it has
 * succeeded, every function of the driver returns CUDA_ERROR_NOT_INITIALIZED, except cuInit, which returns success: a Go
 * package calls cuInit before main and would end the process otherwise. Only one thread at a time may call it. */
int cuload_open(const char *path);

/* The system's message if the library could not be opened. */
const char *cuload_error(void);

#pragma GCC visibility pop

#endif
