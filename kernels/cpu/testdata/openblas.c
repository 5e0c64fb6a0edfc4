// A fake of OpenBLAS. It complains about calls that the real library would not survive.
//   -DPARALLEL=0  built without threads or locks: one caller at a time
//   -DPARALLEL=2  built with OpenMP: a caller has one thread (link with -fopenmp)
//   -DWIDE        built with integers of 64 bits
#include <stdio.h>
#include <unistd.h>

#if PARALLEL == 2
int omp_get_max_threads(void);
#endif
#ifdef WIDE
char *openblas_get_config(void) { return "OpenBLAS 0.3.99 USE64BITINT"; }
#else
char *openblas_get_config(void) { return "OpenBLAS 0.3.99"; }
#endif
char *openblas_get_corename(void) { return "Haswell"; }
void openblas_set_num_threads(int n) { (void)n; }
int openblas_get_parallel(void) { return PARALLEL; }

static int inside;

void cblas_sgemm(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float *a, int lda, const float *b, int ldb,
		 float beta, float *c, int ldc)
{
	(void)order, (void)alpha;
#if PARALLEL == 0
	if (__sync_add_and_fetch(&inside, 1) > 1)
		fprintf(stderr, "complaint: two callers at once\n");
	usleep(2000);
#elif PARALLEL == 2
	if (omp_get_max_threads() != 1)
		fprintf(stderr, "complaint: a caller with %d threads\n", omp_get_max_threads());
#endif
	for (int i = 0; i < m; i++)
		for (int j = 0; j < n; j++) {
			float sum = beta == 0 ? 0 : beta * c[i * ldc + j];
			for (int p = 0; p < k; p++)
				sum += (trans_a == 112 ? a[p * lda + i] : a[i * lda + p]) * (trans_b == 112 ? b[j * ldb + p] : b[p * ldb + j]);
			c[i * ldc + j] = sum;
		}
	__sync_sub_and_fetch(&inside, 1);
}
