//go:build cuemu && !races

// The emulator. It runs the threads of a CUDA block as fibers of one host thread, which switches between them at barriers
// and shuffles. It reports behaviour that a real device leaves undefined, or makes it visible: barriers that not all threads
// reach, shuffles with absent lanes, shared memory read before it is written, accesses outside of vectors.
#include "cuemu.h"

#include <mutex>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include "fiber.h"
#include "races.h"

extern "C" {
// The linker defines these two as the ends of the section that __shared__ puts variables into.
extern char __start_cuemu_shared[] __attribute__((weak));
extern char __stop_cuemu_shared[] __attribute__((weak));
}

namespace cuemu {

Position position;

namespace {

const unsigned max_threads = 1024, max_shared = 48 << 10, max_grid_yz = 65535, max_grid_x = 0x7fffffff;
const size_t stack_bytes = 64 << 10;

enum State { ready, at_barrier, in_shuffle, returned };

struct Thread {
	Fiber fiber;
	State state;
	uint3 index;
	int line;            // of the barrier or shuffle where it waits
	unsigned mask;       // lanes that its shuffle names
	bool ordering;       // it is a __syncwarp: what the lanes did before is seen behind it
	unsigned shuffles;   // number of shuffles that it has begun
	uint64_t sent[2];    // values of its latest shuffle and of the one before, which slower lanes may not have read yet
};

const Entry *entries;
std::mutex one_launch;
bool reversed;
thread_local std::string error;

// The running launch.
Fiber scheduler;
std::vector<Thread> threads;
unsigned live;           // threads of the block; threads[live:] are from larger blocks before
Thread *running;
const Entry *launched;
void **arguments;
char *stacks;
sigjmp_buf escape;
const int stopped_by_signal = 1, stopped_by_races = 2;
volatile sig_atomic_t watching; // faults of this thread belong to the kernel
thread_local bool launching;
const void *volatile fault_address;
volatile int fault_signal;
struct sigaction go_on[3];
const int signals[3] = {SIGSEGV, SIGBUS, SIGFPE};

std::string name(const uint3 &i) {
	return "(" + std::to_string(i.x) + "," + std::to_string(i.y) + "," + std::to_string(i.z) + ")";
}

bool fail(const std::string &what) {
	error = std::string(launched ? launched->name : "launch") + ": " + what;
	return false;
}

void on_fault(int number, siginfo_t *info, void *context) {
	if (launching && watching) {
		fault_address = info->si_addr;
		fault_signal = number;
		siglongjmp(escape, stopped_by_signal);
	}
	for (int i = 0; i < 3; i++) { // not a kernel's fault: the old handler takes it
		if (signals[i] != number)
			continue;
		if (go_on[i].sa_flags & SA_SIGINFO) {
			go_on[i].sa_sigaction(number, info, context);
		} else {
			sigaction(number, &go_on[i], nullptr);
		}
	}
}

void watch(bool on) {
	struct sigaction ours = {};
	ours.sa_sigaction = on_fault;
	ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
	for (int i = 0; i < 3; i++)
		sigaction(signals[i], on ? &ours : &go_on[i], on ? &go_on[i] : nullptr);
	watching = launching = on;
}

void body() {
	launched->run(arguments);
	running->state = returned;
	fiber_switch(&running->fiber, &scheduler);
	__builtin_unreachable();
}

void wait(State state, int line) {
	running->state = state;
	running->line = line;
	fiber_switch(&running->fiber, &scheduler);
}

// release_shuffles makes the lanes of a warp ready once all of them have arrived at the same shuffle.
bool release_shuffles(unsigned warp) {
	bool any = false;
	for (unsigned i = warp; i < warp + 32 && i < live; i++) {
		Thread &t = threads[i];
		if (t.state != in_shuffle)
			continue;
		bool complete = true;
		for (unsigned k = 0; k < 32 && complete; k++) {
			if (!(t.mask >> k & 1))
				continue;
			const Thread *other = warp + k < live ? &threads[warp + k] : nullptr;
			complete = other && other->state == in_shuffle && other->line == t.line && other->mask == t.mask;
		}
		if (!complete)
			continue;
		if (t.ordering)
			races::passed_warp_sync(warp, t.mask);
		for (unsigned k = 0; k < 32; k++)
			if (t.mask >> k & 1)
				threads[warp + k].state = ready;
		any = true;
	}
	return any;
}

bool release_barrier() {
	for (unsigned i = 0; i < live; i++)
		if (threads[i].state != at_barrier || threads[i].line != threads[0].line)
			return false;
	for (unsigned i = 0; i < live; i++)
		threads[i].state = ready;
	races::passed_barrier();
	return true;
}

bool deadlock() {
	std::string what = "block " + name(position.block) + ": deadlock:";
	for (unsigned i = 0; i < live; i++) {
		const Thread &t = threads[i];
		if (i > 0 && t.state == threads[i - 1].state && t.line == threads[i - 1].line)
			continue;
		what += i > 0 ? "; from thread " : " from thread ";
		what += name(t.index);
		what += t.state == returned ? " returned" : t.state == at_barrier ? " at the barrier of line " : " at the shuffle of line ";
		if (t.state != returned)
			what += std::to_string(t.line);
	}
	return fail(what);
}

void start_block() {
	memset(__start_cuemu_shared, 0xff, __stop_cuemu_shared - __start_cuemu_shared);
	for (unsigned i = 0; i < live; i++) {
		Thread &t = threads[i];
		t.state = ready;
		t.shuffles = 0;
		t.line = 0;
		t.index = {i % position.block_dim.x, i / position.block_dim.x % position.block_dim.y,
		           i / position.block_dim.x / position.block_dim.y};
		fiber_start(&t.fiber, stacks + i * stack_bytes, stack_bytes, body);
	}
}

// run_warp runs a warp until it needs the other warps: it passes shuffles, but not barriers. So warps are as far apart
// as they can be on a GPU, and a missing barrier between two of them shows.
void run_warp(unsigned warp) {
	const unsigned lanes = live - warp < 32 ? live - warp : 32;
	do {
		for (unsigned k = 0; k < lanes; k++) {
			Thread &t = threads[warp + (reversed ? lanes - 1 - k : k)];
			if (t.state != ready)
				continue;
			running = &t;
			races::run(&t - threads.data());
			position.thread = t.index;
			fiber_switch(&scheduler, &t.fiber);
		}
	} while (release_shuffles(warp));
}

bool run_block() {
	start_block();
	const unsigned warps = (live + 31) / 32;
	for (;;) {
		for (unsigned k = 0; k < warps; k++)
			run_warp(32 * (reversed ? warps - 1 - k : k));
		bool done = true;
		for (unsigned i = 0; i < live && done; i++)
			done = threads[i].state == returned;
		if (done)
			return true;
		if (!release_barrier())
			return deadlock();
	}
}

bool run_blocks() {
	races::start_launch(__start_cuemu_shared, __stop_cuemu_shared - __start_cuemu_shared, live);
	const uint3 g = position.grid_dim;
	uint64_t count = (uint64_t)g.x * g.y * g.z;
	for (uint64_t k = 0; k < count; k++) {
		uint64_t b = reversed ? count - 1 - k : k;
		position.block = {(unsigned)(b % g.x), (unsigned)(b / g.x % g.y), (unsigned)(b / g.x / g.y)};
		races::start_block(b);
		if (!run_block())
			return false;
	}
	return true;
}

const Entry *find(const char *name) {
	for (const Entry *e = entries; e; e = e->next)
		if (!strcmp(e->name, name))
			return e;
	return nullptr;
}

bool prepare(const char *entry, uint3 grid, uint3 block, unsigned shared_bytes) {
	launched = find(entry);
	if (!launched)
		return fail(std::string(entry) + ": no such entry");
	uint64_t size = (uint64_t)block.x * block.y * block.z;
	if (size == 0 || size > max_threads || block.z > 64)
		return fail("a block of " + name(block) + " threads; 1 to 1024 are possible, z at most 64");
	if (size > launched->threads_max)
		return fail("a block of " + name(block) + " threads; its __launch_bounds__ allow " + std::to_string(launched->threads_max));
	if ((uint64_t)grid.x * grid.y * grid.z == 0 || grid.x > max_grid_x || grid.y > max_grid_yz || grid.z > max_grid_yz)
		return fail("a grid of " + name(grid) + " blocks; at least 1, y and z at most 65535");
	if (shared_bytes > max_shared)
		return fail(std::to_string(shared_bytes) + " bytes of shared memory; at most 49152");
	if (!stacks) {
		void *p = mmap(nullptr, max_threads * stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (p == MAP_FAILED)
			return fail("no memory for stacks");
		stacks = static_cast<char *>(p);
	}
	live = size;
	if (threads.size() < live)
		threads.resize(live);
	position.grid_dim = grid;
	position.block_dim = block;
	return true;
}

std::string fault_found() {
	char where[32];
	snprintf(where, sizeof where, "%p", fault_address);
	return "thread " + name(position.thread) + " of block " + name(position.block) +
	       (fault_signal == SIGFPE ? ": division by zero" : std::string(": access outside of every vector, at ") + where);
}

std::string races_found() {
#ifdef CUEMU_RACES
	return races::describe(launched->pointers, arguments);
#else
	return "";
#endif
}

// each_vector calls f with the address of each vector that the launch gets.
void each_vector(void (*f)(const void *)) {
	for (unsigned i = 0; launched->pointers >> i; i++)
		if (launched->pointers >> i & 1)
			f(*static_cast<void **>(arguments[i]));
}

} // namespace

Entry::Entry(const char *name, void (*run)(void **), unsigned pointers, unsigned threads_max)
    : name(name), run(run), pointers(pointers), threads_max(threads_max), next(entries) {
	entries = this;
}

void barrier(int line) { wait(at_barrier, line); }

void sync_warp(int line, unsigned mask) {
	running->mask = mask | 1u << lane();
	running->ordering = true;
	wait(in_shuffle, line);
}

#ifdef CUEMU_RACES
void races::stop() { siglongjmp(escape, stopped_by_races); }
#endif

unsigned lane() { return (running - threads.data()) % 32; }

uint64_t shuffle(int line, unsigned mask, uint64_t value, unsigned from) {
	unsigned parity = running->shuffles++ % 2;
	running->sent[parity] = value;
	running->mask = mask | 1u << lane();
	running->ordering = false;
	wait(in_shuffle, line);
	if (!(mask >> from % 32 & 1))
		return ~0ull; // a lane that does not take part has sent nothing
	return threads[(running - threads.data()) / 32 * 32 + from % 32].sent[parity];
}

} // namespace cuemu

using namespace cuemu;

int cuemu_launch(const char *entry, const unsigned grid[3], const unsigned block[3], unsigned shared_bytes, void **args) {
	std::lock_guard<std::mutex> lock(one_launch);
	if (!prepare(entry, {grid[0], grid[1], grid[2]}, {block[0], block[1], block[2]}, shared_bytes))
		return 1;
	arguments = args;
	each_vector(cuemu_open);
	bool done;
	const int stopped = sigsetjmp(escape, 1);
	if (!stopped) {
		watch(true);
		done = run_blocks();
	} else {
		done = fail(stopped_by_races == stopped ? races_found() : fault_found());
	}
	watch(false);
	races::end_launch();
	each_vector(cuemu_close);
	return !done;
}

const char *cuemu_error(void) { return error.c_str(); }

int cuemu_has(const char *entry) { return find(entry) != nullptr; }

unsigned cuemu_threads_max(const char *entry) {
	const Entry *found = find(entry);
	return found ? found->threads_max : 0;
}

void cuemu_reverse(int on) {
	std::lock_guard<std::mutex> lock(one_launch);
	reversed = on;
}

#ifdef CUEMU_RACES

int cuemu_touch(const void *memory, size_t bytes, int writes) {
	std::lock_guard<std::mutex> lock(one_launch);
	if (sigsetjmp(escape, 0)) {
		error = races::operation() + ": " + races::describe(0, nullptr);
		return 1;
	}
	races::touch(memory, bytes, writes);
	return 0;
}

void cuemu_begin(unsigned stream, const unsigned *before, unsigned streams, const char *what) {
	std::lock_guard<std::mutex> lock(one_launch);
	races::begin(stream, before, streams, what);
}

#else

int cuemu_touch(const void *, size_t, int) { return 0; }
void cuemu_begin(unsigned, const unsigned *, unsigned, const char *) {}

#endif
