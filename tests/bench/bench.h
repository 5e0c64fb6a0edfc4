/* What the C references share: arguments, clocks, percentiles and who is oversubscribed. */
#ifndef FLUENTPS_BENCH_H
#define FLUENTPS_BENCH_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { SIZES_MAX = 32, ROUNDS_MAX = 200000, ALIGNMENT = 4096 };

static int rank_, ranks_;

/* die ends all ranks: a reference that is wrong must not print figures. */
static inline void die(const char *what)
{
	fprintf(stderr, "rank %d: %s\n", rank_, what);
	MPI_Abort(MPI_COMM_WORLD, 1);
	exit(1);
}

static inline void *take(size_t n)
{
	void *p = NULL;
	if (posix_memalign(&p, ALIGNMENT, n ? n : 1)) die("out of memory");
	memset(p, 0, n); /* no page faults inside what is timed */
	return p;
}

/* cpu_s is user plus system time of this process. */
static inline double cpu_s(void)
{
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	return (double)u.ru_utime.tv_sec + 1e-6 * (double)u.ru_utime.tv_usec +
	       (double)u.ru_stime.tv_sec + 1e-6 * (double)u.ru_stime.tv_usec;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* quantile sorts v and takes the nearest rank. */
static inline double quantile(double *v, int n, double q)
{
	qsort(v, (size_t)n, sizeof *v, ascending);
	int k = (int)(q * n + 0.999999) - 1;
	return v[k < 0 ? 0 : k >= n ? n - 1 : k];
}

/* bytes_of reads 4096, 4KiB or 64MiB. */
static inline long bytes_of(const char *text, char **end)
{
	long n = strtol(text, end, 10);
	if (**end == 'K') n <<= 10;
	if (**end == 'M') n <<= 20;
	while (**end && **end != ',') (*end)++;
	return n;
}

static inline int sizes_of(const char *text, long *sizes)
{
	int n = 0;
	while (*text && n < SIZES_MAX) {
		char *end;
		sizes[n] = bytes_of(text, &end);
		if (sizes[n++] < 1) die("--sizes: a list such as 4KiB,1MiB");
		text = *end ? end + 1 : end;
	}
	return n;
}

/* option is the value behind a flag, or what it is without the flag. */
static inline const char *option(int argc, char **argv, const char *name, const char *without)
{
	for (int i = 1; i + 1 < argc; i++)
		if (!strcmp(argv[i], name)) return argv[i + 1];
	return without;
}

/* yields says whether waiting inside MPI gives the core away: mpirun --oversubscribe asks for that, in
 * its own way, when there are more ranks than cores. */
static inline int yields(void)
{
	const char *asked = getenv("OMPI_MCA_mpi_yield_when_idle");
	const char *launcher = getenv("OMPI_MCA_mpi_oversubscribe");
	return (asked && atoi(asked)) || (launcher && atoi(launcher));
}

/* start_mpi also lets the system find a core for each rank: the first tenths of a second may have two on one. */
static inline void start_mpi(int *argc, char ***argv)
{
	MPI_Init(argc, argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
	double from = MPI_Wtime();
	for (int more = 1; more;) {
		MPI_Barrier(MPI_COMM_WORLD);
		more = MPI_Wtime() - from < 0.2;
		MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
	}
}

/* print_host ends a JSON line with what the figures depend on. */
static inline void print_host(void)
{
	double load[1] = {0};
	getloadavg(load, 1);
	printf("\"cores\": %ld, \"load\": %.2f, \"yields\": %s}\n", sysconf(_SC_NPROCESSORS_ONLN), load[0],
	       yields() ? "true" : "false");
	fflush(stdout);
}

#endif
