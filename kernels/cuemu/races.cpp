//go:build cuemu && !races

// The race check: happens-before between the threads of a launch. The compiler instruments the kernels with -fsanitize=thread;
// its calls land here, not in libtsan.
//
// Blocks run one after the other, and a block from barrier to barrier. So one number, the phase, tells of an access which launch,
// which block and between which barriers: phases grow. Of two accesses of the same 4 bytes, one of them a write,
//   - those of one block in different phases are ordered by a barrier
//   - those of one phase are ordered within a thread, and within a warp by __syncwarp: each thread knows the clocks of the other
//     lanes of its warp as of the latest one. A shuffle orders no memory.
//   - those of two blocks of a launch are never ordered
//   - those of two launches are, unless two streams run them side by side (operations.cpp)
// A cell remembers the latest write, and the reads of the latest phase that has any: FastTrack's epochs (Flanagan, Freund, PLDI
// 2009), where a set of reads in one warp replaces its vector of reads. [P]
#include "races.h"

#ifdef CUEMU_RACES

#include <array>
#include <map>
#include <unordered_map>
#include <vector>

#include <stdlib.h>
#include <sys/mman.h>

namespace cuemu {
namespace races {

Fault fault;

namespace {

typedef uint16_t Clock;

struct Cell {
	uint64_t write, read;         // the phase, and in the low 10 bits the thread, or the warp and the two flags below
	int32_t write_code, read_code; // from anchor; of the first of the readers
	uint32_t lanes;               // of the warp, that read. With many_warps: a thread, and 16 bits higher one of another warp
	Clock write_clock, read_clock; // of the readers, unless read_clocks has a clock for each
	uint64_t read_beside;          // the phase of a read in a stream that ran beside that of a later read
};

const unsigned thread_bits = 10, many_warps = 1 << 5, other_blocks = 1 << 6;
const Clock apart = 0xffff;
const size_t arena_bytes = (size_t)1 << 34;

char *arena;          // device memory
size_t arena_used;
Cell *arena_cells;
std::multimap<size_t, char *> released;

char *shared;
size_t shared_bytes;
Cell *shared_cells; // the variables of all kernels lie side by side
size_t shared_lowest;

bool active;
uint64_t phase = 1, launch_begin, block_begin; // phases
std::vector<std::pair<uint64_t, uint64_t>> blocks; // their first phases, and their numbers in the grid
unsigned now;                                 // the running thread
unsigned threads;
Clock clocks[1024];                           // of threads
Clock known[1024][32];                        // by each thread, of the lanes of its warp: the first clock that it does not know
Clock warp_clocks[32];
bool synced;                                  // a warp has, since the latest barrier
std::unordered_map<const Cell *, std::array<Clock, 32>> read_clocks;

void anchor() {}

void *map(size_t bytes, int access) {
	void *p = mmap(nullptr, bytes, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return p == MAP_FAILED ? nullptr : p;
}

inline void *code_at(int32_t offset) { return reinterpret_cast<char *>(anchor) + offset; }

inline bool ordered(unsigned thread, Clock clock) { // before the running thread
	return thread == now || (thread / 32 == now / 32 && known[now][thread % 32] > clock);
}

Clock read_clock(const Cell *c, unsigned lane) { return c->read_clock == apart ? read_clocks[c][lane] : c->read_clock; }

uint64_t block_of(uint64_t phase) {
	size_t low = 0, high = blocks.size();
	while (high - low > 1) {
		size_t middle = (low + high) / 2;
		(blocks[middle].first <= phase ? low : high) = middle;
	}
	return blocks[low].second;
}

[[noreturn]] void found(uintptr_t address, bool write, void *code, bool other_write, unsigned other, uint64_t other_phase, void *other_code) {
	active = false;
	bool in_shared = address - (uintptr_t)shared < shared_bytes;
	fault = {false, in_shared, address, address - (uintptr_t)shared - shared_lowest, write, other_write, now, other,
	         block_of(phase), block_of(other_phase), code, other_code, ""};
	stop();
}

[[noreturn]] void unwritten(uintptr_t address, void *code) {
	active = false;
	const size_t lowest = shared_lowest < shared_bytes ? shared_lowest : 0;
	fault = {true, true, address, address - (uintptr_t)shared - lowest, false, false, now, now, block_of(phase), block_of(phase), code, code, ""};
	stop();
}

// after_operations checks an access of device memory against one in an earlier launch or copy.
inline void after_operations(uint64_t when, uintptr_t address, bool write, void *code, bool other_write, int32_t other_code) {
	const std::string *other = when >= beside_from ? beside(when) : nullptr;
	if (!other)
		return;
	active = false;
	fault = {false, false, address, 0, write, other_write, now, 0, block_of(phase), 0, code, other_code ? code_at(other_code) : nullptr, *other};
	stop();
}

// after_write checks an access against the latest write.
inline void after_write(const Cell *c, uintptr_t address, bool is_shared, bool write, void *code) {
	const uint64_t when = c->write >> thread_bits;
	if (when < (is_shared ? block_begin : launch_begin)) {
		if (!is_shared)
			after_operations(when, address, write, code, true, c->write_code);
		return;
	}
	const unsigned thread = c->write & ((1 << thread_bits) - 1);
	if (when < block_begin || (when == phase && !ordered(thread, c->write_clock)))
		found(address, write, code, true, thread, when, code_at(c->write_code));
}

// after_reads checks a write against the reads.
inline void after_reads(const Cell *c, uintptr_t address, bool is_shared, void *code) {
	const uint64_t when = c->read >> thread_bits;
	if (!is_shared && c->read_beside)
		after_operations(c->read_beside, address, true, code, false, 0);
	if (when < (is_shared ? block_begin : launch_begin)) {
		if (!is_shared)
			after_operations(when, address, true, code, false, c->read_code);
		return;
	}
	const unsigned warp = c->read & 31;
	unsigned other = c->read & many_warps ? c->lanes & 0xffff : warp * 32 + __builtin_ctz(c->lanes);
	if (when < block_begin)
		found(address, true, code, false, other, when, code_at(c->read_code));
	if (c->read & other_blocks)
		found(address, true, code, false, other, when == phase ? launch_begin : when, code_at(c->read_code));
	if (when != phase)
		return;
	if (c->read & many_warps) {
		if (other / 32 == now / 32)
			other = c->lanes >> 16;
		found(address, true, code, false, other, when, code_at(c->read_code));
	}
	for (uint32_t left = c->lanes; left; left &= left - 1) {
		unsigned lane = __builtin_ctz(left);
		if (!ordered(warp * 32 + lane, read_clock(c, lane)))
			found(address, true, code, false, warp * 32 + lane, when, code_at(c->read_code));
	}
}

inline void first_read(Cell *c, unsigned flags, int32_t code) {
	c->read = phase << thread_bits | now / 32 | flags;
	c->lanes = 1u << now % 32;
	c->read_clock = clocks[now];
	c->read_code = code;
}

// note_read adds the running thread to the readers.
inline void note_read(Cell *c, bool is_shared, int32_t code) {
	const uint64_t when = c->read >> thread_bits;
	const unsigned lane = now % 32;
	if (when != phase) {
		if (!is_shared && when >= beside_from && when < launch_begin && beside(when))
			c->read_beside = when;
		bool others = !is_shared && when >= launch_begin && (when < block_begin || c->read & other_blocks);
		return first_read(c, others ? other_blocks : 0, code);
	}
	if (c->read & many_warps)
		return;
	if ((c->read & 31) != now / 32) {
		c->lanes = ((c->read & 31) * 32 + __builtin_ctz(c->lanes)) | now << 16;
		c->read |= many_warps;
		return;
	}
	if (c->read_clock == clocks[now]) {
		c->lanes |= 1u << lane;
		return;
	}
	bool all = true; // earlier reads are ordered before this one: whoever is ordered after this one is after them
	for (uint32_t left = c->lanes; left && all; left &= left - 1)
		all = ordered(now / 32 * 32 + __builtin_ctz(left), read_clock(c, __builtin_ctz(left)));
	if (all)
		return first_read(c, c->read & other_blocks, code);
	std::array<Clock, 32> each = {};
	for (unsigned i = 0; i < 32; i++)
		each[i] = c->lanes >> i & 1 ? read_clock(c, i) : 0;
	each[lane] = clocks[now];
	read_clocks[c] = each;
	c->read_clock = apart;
	c->lanes |= 1u << lane;
}

inline void access(const void *memory, unsigned bytes, bool write, void *code) {
	uintptr_t address = reinterpret_cast<uintptr_t>(memory);
	const bool is_shared = address - reinterpret_cast<uintptr_t>(shared) < shared_bytes;
	if (!is_shared && address - reinterpret_cast<uintptr_t>(arena) >= arena_used)
		return;
	if (!active)
		return;
	const uintptr_t from = is_shared ? reinterpret_cast<uintptr_t>(shared) : reinterpret_cast<uintptr_t>(arena);
	Cell *c = (is_shared ? shared_cells : arena_cells) + (address - from) / 4;
	const int32_t offset = code ? static_cast<char *>(code) - reinterpret_cast<char *>(anchor) : 0;
	for (const uintptr_t end = address + bytes; address < end; address += 4, c++) {
		after_write(c, address, is_shared, write, code);
		if (!write) {
			if (is_shared && c->write >> thread_bits < block_begin)
				unwritten(address, code);
			note_read(c, is_shared, offset);
			continue;
		}
		after_reads(c, address, is_shared, code);
		c->write = phase << thread_bits | now;
		c->write_clock = clocks[now];
		c->write_code = offset;
		if (is_shared && address - from < shared_lowest)
			shared_lowest = address - from;
	}
}

} // namespace

// reserve returns pages that nobody can access. Memory that forget gave back is taken again where the sizes are equal.
char *reserve(size_t bytes) {
	if (!arena) {
		arena = static_cast<char *>(map(arena_bytes, PROT_NONE));
		arena_cells = static_cast<Cell *>(map(arena_bytes / 4 * sizeof(Cell), PROT_READ | PROT_WRITE));
		if (!arena || !arena_cells)
			return arena = nullptr;
	}
	auto at = released.find(bytes);
	if (at != released.end()) {
		char *p = at->second;
		released.erase(at);
		return p;
	}
	if (arena_bytes - arena_used < bytes)
		return nullptr;
	arena_used += bytes;
	return arena + arena_used - bytes;
}

void forget(char *from, size_t bytes) {
	mprotect(from, bytes, PROT_NONE);
	madvise(from, bytes, MADV_DONTNEED);
	madvise(arena_cells + (from - arena) / 4, bytes / 4 * sizeof(Cell), MADV_DONTNEED);
	released.insert({bytes, from});
}

void start_launch(char *section, size_t bytes, unsigned count) {
	if (!shared_cells)
		shared_cells = static_cast<Cell *>(map((bytes / 4 + 1) * sizeof(Cell), PROT_READ | PROT_WRITE));
	if (!shared_cells)
		abort();
	shared = section;
	shared_bytes = bytes;
	shared_lowest = bytes;
	threads = count;
	launch_begin = ++phase;
	blocks.clear();
}

void end_launch() { active = false; }

void start_block(uint64_t block) {
	passed_barrier();
	block_begin = phase;
	blocks.push_back({phase, block});
	active = true;
}

void passed_barrier() {
	phase++;
	if (!synced)
		return;
	for (unsigned i = 0; i < 1024; i++) {
		clocks[i] = 0;
		for (unsigned k = 0; k < 32; k++)
			known[i][k] = 0;
	}
	for (Clock &c : warp_clocks)
		c = 0;
	read_clocks.clear();
	synced = false;
}

void passed_warp_sync(unsigned warp, unsigned mask) {
	synced = true;
	if (++warp_clocks[warp / 32] == apart) {
		// Accesses of before would be forgotten: no kernel comes near.
		__builtin_trap();
	}
	Clock together[32] = {};
	for (unsigned k = 0; k < 32; k++) {
		if (!(mask >> k & 1) || warp + k >= threads)
			continue;
		for (unsigned i = 0; i < 32; i++)
			if (together[i] < known[warp + k][i])
				together[i] = known[warp + k][i];
		if (together[k] <= clocks[warp + k])
			together[k] = clocks[warp + k] + 1;
	}
	for (unsigned k = 0; k < 32; k++) {
		if (!(mask >> k & 1) || warp + k >= threads)
			continue;
		for (unsigned i = 0; i < 32; i++)
			known[warp + k][i] = together[i];
		clocks[warp + k] = warp_clocks[warp / 32];
	}
}

void run(unsigned thread) { now = thread; }

void begin(unsigned stream, const unsigned *before, unsigned streams, const char *what) {
	start_operation(++phase, stream, before, streams, what);
}

void touch(const void *memory, size_t bytes, bool write) {
	if (!operating())
		return;
	launch_begin = block_begin = ++phase;
	blocks.assign(1, {phase, 0});
	now = 0;
	active = true;
	access(memory, bytes, write, nullptr);
	active = false;
}

} // namespace races
} // namespace cuemu

#define CODE __builtin_extract_return_addr(__builtin_return_address(0))
#define ACCESS(bytes)                                                                                                  \
	void __tsan_read##bytes(void *p) { cuemu::races::access(p, bytes, false, CODE); }                        \
	void __tsan_write##bytes(void *p) { cuemu::races::access(p, bytes, true, CODE); }                        \
	void __tsan_unaligned_read##bytes(void *p) { cuemu::races::access(p, bytes, false, CODE); }              \
	void __tsan_unaligned_write##bytes(void *p) { cuemu::races::access(p, bytes, true, CODE); }

extern "C" {
ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)
void __tsan_read_range(void *p, size_t bytes) { cuemu::races::access(p, bytes, false, CODE); }
void __tsan_write_range(void *p, size_t bytes) { cuemu::races::access(p, bytes, true, CODE); }
void __tsan_vptr_update(void **, void *) {}
void __tsan_vptr_read(void **) {}
void __tsan_func_entry(void *) {}
void __tsan_func_exit() {}
void __tsan_init() {}
}

#endif
