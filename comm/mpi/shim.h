// The C side of the transport. MPI handles stay behind this interface: Go sees slots.
#ifndef FLUENTPS_SHIM_H
#define FLUENTPS_SHIM_H

#include <stdint.h>

enum { FP_TEXT = 512 };
#define FP_NONE UINT32_MAX // no slot
enum { FP_LEFT = -1 };     // of fp_send: it is complete, and no poll will say so

// What fp_init finds out.
struct fp_world {
	int node_rank, node_size;
	int *node_peers; // world ranks by node rank, never freed
	int64_t tag_max;
	const char *failed; // the call that failed, or NULL
};

// One completion.
struct fp_done {
	uint32_t slot;
	int32_t source, tag, bytes;
	int32_t code;      // an MPI error code, 0 for none
	int32_t truncated; // code is of class MPI_ERR_TRUNCATE
	int32_t cancelled;
};

// All return an MPI error code, 0 for none, unless said otherwise. Addresses of messages are numbers: the memory is not Go's,
// and Go need not look whether it is.
int fp_init(struct fp_world *w);
// fp_send with sync completes only when the receiver has met the message.
int fp_send(int ch, int to, int tag, uintptr_t p, int n, uint32_t slot, int sync);
// fp_recv takes from -1 for any source; before is the last slot in flight of the same stream, or FP_NONE.
int fp_recv(int ch, int from, int tag, uintptr_t p, int n, uint32_t slot, uint32_t before);
int fp_barrier(uint32_t slot);
// fp_gather brings k numbers of every rank to all, in order of rank.
int fp_gather(const int64_t *mine, int k, int64_t *all, uint32_t slot);
int fp_allreduce(void *p, int n, uint32_t slot); // n float32 values, in place
int fp_cancel(uint32_t slot);

// A batch of completions, valid until the next poll; n is -1 with an error code.
struct fp_batch {
	int n, code;
	struct fp_done *done;
};

// With wait fp_poll returns an empty batch only after fp_wake.
struct fp_batch fp_poll(int wait);
void fp_wake(void);
// fp_beat sends a byte to a rank, unless it has not met the one before: 1 if it did. Any thread may call it and fp_heard.
int fp_beat(int to, int word);
// fp_heard returns a rank that a byte has come from, FP_SILENT, or FP_BUSY when another thread is inside MPI for long.
int fp_heard(int *word);
enum { FP_SILENT = -1, FP_BUSY = -2 };
int fp_unmet(void); // bytes sent that were not met yet

void fp_abort(int code);
int fp_close(void); // before MPI_Finalize

// fp_map maps n bytes of a file whose pages are there; with populate they are in this process's tables at once. It returns an
// errno, 0 for none, as fp_unmap does.
int fp_map(int fd, int64_t n, int populate, void **at);
int fp_unmap(void *at, int64_t n);
// fp_bind keeps the calling thread on one core, whose number it returns, where this host has more ranks than cores and they
// are not bound; else it returns -1. With on 0 it lets the thread run on all again.
int fp_bind(int on, int node_rank);
// fp_cuda_aware says whether the library takes messages in memory of NVIDIA GPUs: 1 if it says so, 0 if not, -1 where it
// cannot be asked. It comes after fp_init: before, some libraries end the process. fp_cuda_built is what the headers say.
int fp_cuda_aware(void);
int fp_cuda_built(void);
int64_t fp_clock(void); // ns of CLOCK_MONOTONIC
void fp_error(int code, char *text);          // FP_TEXT bytes
void fp_library(char *compiled, char *running); // FP_TEXT bytes each

#endif
