// The C side of the transport. MPI handles stay behind this interface: Go sees slots.
#ifndef FLUENTPS_SHIM_H
#define FLUENTPS_SHIM_H

#include <stdint.h>

enum { FP_TEXT = 512 };
#define FP_NONE UINT32_MAX // no slot
enum { FP_SENT = -1 }; // returned by fp_send: the send has completed, and no poll reports it

// Output of fp_init.
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

// All functions return an MPI error code, 0 for none, unless said otherwise. Addresses of messages are passed as
// numbers: the memory is not Go's, and Go need not check that.
int fp_init(struct fp_world *w);
// With sync, fp_send completes only when the receiver has matched the message.
int fp_send(int ch, int to, int tag, uintptr_t p, int n, uint32_t slot, int sync);
// fp_recv with from -1 accepts any source; before is the last slot in flight of the same stream, or FP_NONE.
int fp_recv(int ch, int from, int tag, uintptr_t p, int n, uint32_t slot, uint32_t before);
int fp_barrier(uint32_t slot);
// fp_gather collects k numbers of every rank on all ranks, in order of rank.
int fp_gather(const int64_t *mine, int k, int64_t *all, uint32_t slot);
int fp_allreduce(void *p, int n, uint32_t slot); // n float32 values, in place
int fp_cancel(uint32_t slot);

// A batch of completions, valid until the next poll; n is -1 with an error code.
struct fp_batch {
	int n, code;
	int tired; // Go should reschedule the goroutine
	int woken; // sleeps that a bell has ended
	struct fp_done *done;
};

// With wait, fp_poll returns an empty batch only after fp_wake, or if it is tired.
struct fp_batch fp_poll(int wait);
void fp_wake(void);
// fp_hang_bells has ranks of a host wake each other. at: for each rank of the world its shared memory, FP_BELL_BYTES zeros at first; NULL
// for those of other hosts. The memory stays mapped as long as the process lives.
int fp_hang_bells(int ranks, int rank, void *const *at);
enum { FP_BELL_BYTES = 4096 };
// fp_beat sends a byte to a rank and returns 1; it returns 0 if that rank has not received the byte before. Any thread
// may call fp_beat and fp_heard.
int fp_beat(int to, int word);
// fp_heard receives a byte and returns its source; FP_SILENT if there is none, FP_BUSY if another thread is inside MPI
// for long.
int fp_heard(int *word);
enum { FP_SILENT = -1, FP_BUSY = -2 };
int fp_unmet(void); // bytes sent that were not received yet

void fp_abort(int code);
int fp_close(void); // before MPI_Finalize

// fp_map maps n bytes of a file that has all of its pages; with populate it fills this process's page tables at once.
// fp_map and fp_unmap return an errno, 0 for none.
int fp_map(int fd, int64_t n, int populate, void **at);
int fp_unmap(void *at, int64_t n);
// fp_bind keeps the calling thread on one core and returns its number, if this host has more ranks than cores and the
// launcher has not bound them; otherwise it returns -1. With on 0 it lets the thread run on all cores again.
int fp_bind(int on, int node_rank);

// fp_crowded says whether this host has more ranks than cores.
int fp_crowded(void);
// fp_cuda_aware returns 1 if the library reports that it sends from and receives into memory of NVIDIA GPUs, 0 if not,
// -1 if it cannot be asked. Call it after fp_init: before, some libraries end the process. fp_cuda_built returns the
// same from the headers.
int fp_cuda_aware(void);
int fp_cuda_built(void);
int64_t fp_clock(void); // ns of CLOCK_MONOTONIC
void fp_error(int code, char *text);          // FP_TEXT bytes
void fp_library(char *compiled, char *running); // FP_TEXT bytes each

#endif
