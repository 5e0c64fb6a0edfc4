// The state of the emulated driver. One lock guards all of it (driver.cpp), because any thread may make CUDA's calls.
#ifndef FLUENTPS_CUEMU_STATE_H
#define FLUENTPS_CUEMU_STATE_H

#define CULOAD_NAMES_OF_CUDA // this is the driver: it has CUDA's names, and not those of our loader
#include <cuda.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace cuemu {

struct Stream;
struct Context;

// Clock says how many operations of each stream come before something, for the emulator's race check.
typedef std::vector<unsigned> Clock;
void join(Clock &c, const Clock &other);

// Event is recorded by an operation in a stream. It has passed when all enqueued records have run.
struct Event {
	Context *context;
	Stream *stream = nullptr; // of the latest record
	long enqueued = 0, run = 0;
	int asked = 0; // queries since the latest record
	bool sleeps = false; // waits for it do not poll
	Clock clock{}; // of the records that have run
};

struct Function {
	Context *context;
	std::string entry;
	std::vector<int> sizes; // of the parameters, in bytes
};

struct Module {
	Context *context;
	std::map<std::string, std::vector<int>> entries;
	std::vector<std::unique_ptr<Function>> functions;
};

// Op is an operation that a stream still has to do.
struct Op {
	enum Kind { Copy, Set, Launch, Call, Record, Wait } kind;
	void *to = nullptr;
	const void *from = nullptr;
	size_t bytes = 0;
	unsigned value = 0;
	Event *event = nullptr;
	long upto = 0; // Wait: the record that must have run
	std::string entry;
	unsigned grid[3] = {}, block[3] = {}, shared = 0;
	std::vector<unsigned long long> args;
	std::function<int()> call; // the computation of a library call; nonzero: it failed
	Clock clock;               // of the host, when it enqueued the operation

	explicit Op(Kind kind) : kind(kind) {}
};

struct Stream {
	Context *context;
	std::deque<Op> todo;
	bool running = false; // detects streams that wait for each other
	unsigned number = streams++;
	Clock clock{}; // of what its next operation comes behind

	static unsigned streams;
};

// Context is the primary context of a device.
struct Context {
	int device = 0, users = 0;
	unsigned flags = 0; // those of cuDevicePrimaryCtxSetFlags
	CUresult sticky = CUDA_SUCCESS; // the result of every call after a kernel has failed
	std::map<CUdeviceptr, size_t> memory; // bytes
	size_t to_host = 0, to_gpu = 0;       // bytes of the copies that the program requested
	size_t launches = 0, copies_to_host = 0, copies_to_gpu = 0;
	std::map<char *, size_t> pinned; // allocated or registered host memory
	std::set<char *> registered;     // the registered ones of pinned
	std::set<Stream *> streams;
	std::set<Event *> events;
	std::set<Module *> modules;
	Stream legacy{this, {}, false};
};

extern thread_local Context *current;
extern Clock host; // what the host has waited for

CUresult drain(Stream *s, const Event *until, long upto);
CUresult drain_for_host(Stream *s);
void advance(Context *c);
bool on_device(Context *c, CUdeviceptr p, size_t bytes);
bool pinned(Context *c, const void *p, size_t bytes);
bool is_ptx(const std::string &text);
std::map<std::string, std::vector<int>> entries_of(const std::string &ptx, std::string *problem);
std::string leftovers(Context *c);
const char *name_of(CUresult code);

} // namespace cuemu

// The emulator of kernels. ../cuemu.h is not included here, because it defines CUDA's keywords as macros.
extern "C" {
int cuemu_launch(const char *entry, const unsigned grid[3], const unsigned block[3], unsigned shared_bytes, void **args);
int cuemu_has(const char *entry);
unsigned cuemu_threads_max(const char *entry);
const char *cuemu_error(void);
void *cuemu_alloc(size_t bytes);
int cuemu_free(void *memory);
int cuemu_copy(void *to, const void *from, size_t bytes);
int cuemu_set(void *to, unsigned value, size_t count);
int cuemu_touch(const void *memory, size_t bytes, int writes);
void cuemu_begin(unsigned stream, const unsigned *before, unsigned streams, const char *what);
void cuemu_open(const void *address);
void cuemu_close(const void *address);
}

#endif
