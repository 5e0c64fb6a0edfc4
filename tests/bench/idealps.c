/* The ideal parameter server, the ceiling over `fluentps bench pushpull`: what MPI and one loop of additions
 * allow, with no headers, no schemes and nothing to configure. The first --servers ranks serve, the others work.
 * A round: each worker Isends the slices of its gradient, the servers do w += a*g as they arrive and Isend the new
 * slice back. One round at a time; the slowest worker counts.
 *
 *   mpirun -n 4 idealps --servers 2 [--scheme asp|bsp] [--chunk 0,256KiB] [--sizes 4KiB,64MiB] [--seconds 0.2]
 *
 * --chunk 0 sends whole slices, one message a server and direction; otherwise slices are cut, so that transfer and
 * addition overlap and stay in cache. asp answers each worker's chunk at once, bsp all workers when all have pushed
 * all; --bsp-by-chunk yes answers a chunk when all have pushed that chunk. One JSON line per size and chunk.
 */
#include "bench.h"

static int servers, workers, bsp, by_chunk;
static long length, chunk; /* of the parameters of the run, in floats */

/* A slice is what one server owns, cut in messages. */
struct slice {
	long from, n, step;
	int messages;
};

static struct slice slice_of(int server)
{
	struct slice s;
	long each = length / servers, more = length % servers;
	s.from = server * each + (server < more ? server : more);
	s.n = each + (server < more);
	s.step = chunk ? chunk : s.n;
	s.messages = s.n ? (int)((s.n + s.step - 1) / s.step) : 0;
	return s;
}

static long floats_of(const struct slice *s, int message)
{
	long left = s->n - message * s->step;
	return left < s->step ? left : s->step;
}

static const float rate = 0.25f;

static float gradient(long i) { return (float)(1 + i % 7); }
static float initial(long i) { return (float)(i % 1000); }

static void add(float *restrict w, const float *restrict g, long n)
{
	for (long i = 0; i < n; i++) w[i] += rate * g[i];
}

/* What a rank holds for one size. A server has a place for the push of each worker. */
static float *params, *grads;
static MPI_Request *recvs, *sends;
static int *landed; /* by message: pushes in this round, of bsp */

static void post(const struct slice *s, int worker, int m)
{
	MPI_Irecv(grads + worker * s->n + m * s->step, (int)floats_of(s, m), MPI_FLOAT, servers + worker, m, MPI_COMM_WORLD,
		  &recvs[worker * s->messages + m]);
}

static void answer(const struct slice *s, int worker, int m)
{
	MPI_Isend(params + m * s->step, (int)floats_of(s, m), MPI_FLOAT, servers + worker, m, MPI_COMM_WORLD,
		  &sends[worker * s->messages + m]);
}

/* arrived folds one message, and answers whom the scheme lets go. What is on its way out is not written to. */
static void arrived(const struct slice *s, int worker, int m, int *pushed)
{
	for (int w = 0; w < workers; w++) MPI_Wait(&sends[w * s->messages + m], MPI_STATUS_IGNORE);
	add(params + m * s->step, grads + worker * s->n + m * s->step, floats_of(s, m));
	if (!bsp) {
		answer(s, worker, m);
		return;
	}
	if (by_chunk) {
		if (++landed[m] < workers) return;
		landed[m] = 0;
		for (int w = 0; w < workers; w++) answer(s, w, m);
		return;
	}
	if (++*pushed < workers * s->messages) return;
	*pushed = 0;
	for (int k = 0; k < s->messages; k++)
		for (int w = 0; w < workers; w++) answer(s, w, k);
}

static void serve(int rounds)
{
	struct slice s = slice_of(rank_);
	int all = workers * s.messages, pushed = 0;
	long left = (long)rounds * all;
	int *which = take((size_t)all * sizeof *which), *done = take((size_t)all * sizeof *done);
	for (int w = 0; w < workers; w++)
		for (int m = 0; m < s.messages; m++) {
			done[w * s.messages + m] = 0;
			sends[w * s.messages + m] = MPI_REQUEST_NULL;
			post(&s, w, m);
		}
	while (left) {
		int n;
		MPI_Waitsome(all, recvs, &n, which, MPI_STATUSES_IGNORE);
		for (int i = 0; i < n; i++, left--) {
			int w = which[i] / s.messages, m = which[i] % s.messages;
			arrived(&s, w, m, &pushed);
			if (++done[which[i]] < rounds) post(&s, w, m);
		}
	}
	MPI_Waitall(all, sends, MPI_STATUSES_IGNORE);
	free(which);
	free(done);
}

/* work records the time of each round, in microseconds, and returns that of all, in seconds. */
static double work(int rounds, double *us)
{
	double from = MPI_Wtime(), last = from;
	for (int r = 0; r < rounds; r++) {
		int n = 0;
		for (int v = 0; v < servers; v++) {
			struct slice s = slice_of(v);
			for (int m = 0; m < s.messages; m++)
				MPI_Irecv(params + s.from + m * s.step, (int)floats_of(&s, m), MPI_FLOAT, v, m, MPI_COMM_WORLD, &recvs[n++]);
		}
		n = 0;
		for (int v = 0; v < servers; v++) {
			struct slice s = slice_of(v);
			for (int m = 0; m < s.messages; m++)
				MPI_Isend(grads + s.from + m * s.step, (int)floats_of(&s, m), MPI_FLOAT, v, m, MPI_COMM_WORLD, &sends[n++]);
		}
		MPI_Waitall(n, recvs, MPI_STATUSES_IGNORE);
		MPI_Waitall(n, sends, MPI_STATUSES_IGNORE);
		double now = MPI_Wtime();
		us[r] = 1e6 * (now - last);
		last = now;
	}
	return last - from;
}

/* figures are a worker's; the slowest one's count. */
struct figures {
	double mean_us, p10_us, p50_us, p99_us, cpu_s;
};

static struct figures run(int rounds, double *us)
{
	struct figures mine = {0}, all;
	MPI_Barrier(MPI_COMM_WORLD);
	mine.cpu_s = cpu_s();
	if (rank_ < servers) {
		serve(rounds);
	} else {
		mine.mean_us = 1e6 * work(rounds, us) / rounds;
	}
	mine.cpu_s = cpu_s() - mine.cpu_s;
	if (rank_ >= servers) {
		mine.p10_us = quantile(us, rounds, 0.1);
		mine.p50_us = quantile(us, rounds, 0.5);
		mine.p99_us = quantile(us, rounds, 0.99);
	}
	MPI_Allreduce(&mine, &all, 4, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	MPI_Allreduce(&mine.cpu_s, &all.cpu_s, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	return all;
}

static void prepare(void)
{
	struct slice s = rank_ < servers ? slice_of(rank_) : (struct slice){0, length, 0, 0};
	int messages = 0;
	if (rank_ < servers) messages = workers * s.messages;
	else
		for (int v = 0; v < servers; v++) messages += slice_of(v).messages;
	recvs = take((size_t)messages * sizeof *recvs);
	sends = take((size_t)messages * sizeof *sends);
	landed = take((size_t)(s.messages + 1) * sizeof *landed);
	params = take((size_t)s.n * sizeof *params);
	grads = take((size_t)s.n * sizeof *grads * (rank_ < servers ? (size_t)workers : 1));
	if (rank_ < servers)
		for (long i = 0; i < s.n; i++) params[i] = initial(s.from + i);
	else
		for (long i = 0; i < s.n; i++) grads[i] = gradient(i);
}

static void give_back(void)
{
	free(recvs);
	free(sends);
	free(landed);
	free(params);
	free(grads);
}

/* check compares with the sum after so many rounds of all workers, which float32 holds exactly. Under bsp the workers
 * have it too. */
static void check(int rounds)
{
	if (rank_ >= servers && !bsp && workers > 1) return;
	struct slice s = rank_ < servers ? slice_of(rank_) : (struct slice){0, length, 0, 0};
	for (long i = 0; i < s.n; i++) {
		float want = initial(s.from + i) + rate * (float)rounds * (float)workers * gradient(s.from + i);
		if (params[i] != want) die("the sum after the rounds is wrong");
	}
}

static void measure(long bytes, double seconds, double *us)
{
	const int warm = bytes < 4 << 20 ? 50 : 3;
	length = bytes / (long)sizeof(float);
	prepare();
	run(warm, us);
	check(warm);
	struct figures f = run(warm, us);
	double want = 1 + 1e6 * seconds / f.p50_us;
	int rounds = want < 5 ? 5 : want > ROUNDS_MAX ? ROUNDS_MAX : (int)want;
	MPI_Bcast(&rounds, 1, MPI_INT, 0, MPI_COMM_WORLD);
	f = run(rounds, us);
	if (rounds < 100000) check(2 * warm + rounds);
	double moved = 2.0 * (double)bytes; /* by one worker in one round */
	if (rank_ == 0) {
		printf("{\"what\": \"pushpull\", \"who\": \"c\", \"servers\": %d, \"workers\": %d, \"scheme\": \"%s\", \"bytes\": %ld, "
		       "\"chunk_bytes\": %ld, \"by_chunk\": %s, \"rounds\": %d, \"round_us_mean\": %.3f, \"round_us_p10\": %.3f, "
		       "\"round_us_p50\": %.3f, \"round_us_p99\": %.3f, \"gb_per_s\": %.4f, \"gb_per_s_p50\": %.4f, \"cpu_s_per_gb\": %.4f, ",
		       servers, workers, bsp ? "bsp" : "asp", bytes, chunk * (long)sizeof(float), by_chunk ? "true" : "false", rounds,
		       f.mean_us, f.p10_us, f.p50_us, f.p99_us, 1e-3 * moved / f.mean_us, 1e-3 * moved / f.p50_us, 1e9 * f.cpu_s / (moved * rounds * workers));
		print_host();
	}
	give_back();
}

int main(int argc, char **argv)
{
	start_mpi(&argc, &argv);
	servers = atoi(option(argc, argv, "--servers", "1"));
	workers = ranks_ - servers;
	if (servers < 1 || workers < 1) die("--servers must leave at least one rank to serve and one to work");
	const char *scheme = option(argc, argv, "--scheme", "asp");
	bsp = !strcmp(scheme, "bsp");
	if (!bsp && strcmp(scheme, "asp")) die("--scheme is asp or bsp");
	by_chunk = !strcmp(option(argc, argv, "--bsp-by-chunk", "no"), "yes");
	long sizes[SIZES_MAX], chunks[SIZES_MAX];
	int count = sizes_of(option(argc, argv, "--sizes", "4KiB,64KiB,1MiB,16MiB,64MiB"), sizes);
	int variants = 0;
	for (const char *text = option(argc, argv, "--chunk", "0,256KiB"); *text && variants < SIZES_MAX;) {
		char *end;
		chunks[variants++] = bytes_of(text, &end) / (long)sizeof(float);
		text = *end ? end + 1 : end;
	}
	double seconds = atof(option(argc, argv, "--seconds", "0.2"));
	double *us = take(ROUNDS_MAX * sizeof *us);
	for (int i = 0; i < count; i++)
		for (int v = 0; v < variants; v++) {
			chunk = chunks[v];
			measure(sizes[i], seconds, us);
		}
	free(us);
	MPI_Finalize();
	return 0;
}
