/* The stub loader: a static libcuda.a whose functions jump through a table, so that a program that uses CUDA starts on
 * a machine without a driver. */
#ifndef FLUENTPS_CULOAD_H
#define FLUENTPS_CULOAD_H

/* Codes of cuload_open beside CUDA's own, which are not negative. */
enum { CULOAD_NO_LIBRARY = -1, CULOAD_NO_INIT = -2 };

/* Opens the driver and fills the table. Returns 0, CUDA's code of cuInit, or one of the above. Before it has
 * succeeded every function of the driver returns CUDA_ERROR_NOT_INITIALIZED, but cuInit, which returns success: some
 * Go package calls it before main and would end the process. Not for two threads at once. */
int cuload_open(const char *path);

/* What the system said when the library could not be opened. */
const char *cuload_error(void);

#endif
