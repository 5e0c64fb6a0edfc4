/* Raw MPI between two ranks, the floor under `fluentps bench comm`: half a round trip, a one-way stream,
 * and both ways at once. One JSON line per size; the stream of the smallest sizes is the message rate.
 *
 *   mpirun -n 2 mpibench [--sizes 8,4KiB,64MiB] [--seconds 0.2]
 */
#include "bench.h"

static char *out, *in;

/* window is how many messages are on their way at once. */
static int window(long n) { return n <= 64 << 10 ? 16 : n <= 1 << 20 ? 8 : 4; }

static void pingpong(long n, int times)
{
	for (int i = 0; i < times; i++) {
		if (rank_ == 0) MPI_Send(out, (int)n, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
		MPI_Recv(in, (int)n, MPI_BYTE, 1 - rank_, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (rank_ == 1) MPI_Send(out, (int)n, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
	}
}

/* stream keeps a window of sends, of receives, or of both open. One way, an empty message back ends it. */
static void stream(long n, int times, int sends, int receives)
{
	MPI_Request s[16], r[16];
	int w = window(n), peer = 1 - rank_;
	for (int i = 0; i < times + w; i++) {
		int k = i % w;
		if (i >= w && i - w < times) {
			if (receives) MPI_Wait(&r[k], MPI_STATUS_IGNORE);
			if (sends) MPI_Wait(&s[k], MPI_STATUS_IGNORE);
		}
		if (i >= times) continue;
		if (receives) MPI_Irecv(in, (int)n, MPI_BYTE, peer, 2, MPI_COMM_WORLD, &r[k]);
		if (sends) MPI_Isend(out, (int)n, MPI_BYTE, peer, 2, MPI_COMM_WORLD, &s[k]);
	}
	if (sends && receives) return; /* whoever has all has sent all */
	if (sends) MPI_Recv(NULL, 0, MPI_BYTE, peer, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	else MPI_Send(NULL, 0, MPI_BYTE, peer, 3, MPI_COMM_WORLD);
}

static void run(int kind, long n, int times)
{
	if (kind == 0) pingpong(n, times);
	else stream(n, times, kind == 2 || rank_ == 0, kind == 2 || rank_ == 1);
}

enum { PASSES = 5, MANY = 500 };

/* seconds_each times one operation for about that long, at least 5 of them; of many it is the median of 5 passes.
 * Shorter passes before say how many that are, each longer than the last, so that one hiccup decides neither. */
static double seconds_each(int kind, long n, double seconds)
{
	double each[PASSES];
	int times = 5, left = 0;
	for (int pass = 0;;) {
		MPI_Barrier(MPI_COMM_WORLD);
		double from = MPI_Wtime();
		run(kind, n, times);
		double took = MPI_Wtime() - from;
		if (left) {
			each[pass++] = took / times;
			if (pass == left) return quantile(each, pass, 0.5);
			continue;
		}
		int next[2] = {times * 8, 0};
		if (took > seconds / 8) {
			double want = 1 + seconds / took * times;
			next[1] = want < MANY ? 1 : PASSES;
			want /= next[1];
			next[0] = want < 5 ? 5 : want > 1e7 ? 10000000 : (int)want;
		}
		MPI_Bcast(next, 2, MPI_INT, 0, MPI_COMM_WORLD);
		times = next[0];
		left = next[1];
	}
}

static void check(long n)
{
	for (long i = 0; i < n; i++) out[i] = (char)(i * 7 + rank_);
	memset(in, -1, (size_t)n);
	pingpong(n, 1);
	for (long i = 0; i < n; i++)
		if (in[i] != (char)(i * 7 + 1 - rank_)) die("received other bytes than were sent");
}

int main(int argc, char **argv)
{
	start_mpi(&argc, &argv);
	if (ranks_ != 2) die("mpibench needs 2 ranks");
	long sizes[SIZES_MAX];
	int count = sizes_of(option(argc, argv, "--sizes", "8,64,1024,4KiB,16KiB,64KiB,256KiB,1MiB,4MiB,16MiB,64MiB"), sizes);
	double seconds = atof(option(argc, argv, "--seconds", "0.2"));
	for (int i = 0; i < count; i++) {
		long n = sizes[i];
		out = take((size_t)n);
		in = take((size_t)n);
		check(n);
		double half = seconds_each(0, n, seconds) / 2;
		double one = seconds_each(1, n, seconds);
		double both = seconds_each(2, n, seconds);
		if (rank_ == 0) {
			printf("{\"what\": \"comm\", \"who\": \"c\", \"bytes\": %ld, \"latency_us\": %.3f, \"gb_per_s\": %.4f, "
			       "\"both_gb_per_s\": %.4f, \"messages_per_s\": %.0f, ",
			       n, 1e6 * half, 1e-9 * n / one, 2e-9 * n / both, 1 / one);
			print_host();
		}
		free(out);
		free(in);
	}
	MPI_Finalize();
	return 0;
}
