// The race check: what the emulator tells it. Without CUEMU_RACES there is none, and these do nothing.
#ifndef CUEMU_RACES_H
#define CUEMU_RACES_H

#include <stddef.h>
#include <stdint.h>

#include <string>

namespace cuemu {
namespace races {

#ifdef CUEMU_RACES

// Where the check finds what it knows about each 4 bytes of device memory: memory.cpp takes vectors from here only.
char *reserve(size_t bytes);
void forget(char *from, size_t bytes);

void start_launch(char *shared, size_t shared_bytes, unsigned threads);
void end_launch();
void start_block(uint64_t block);
void passed_barrier();                             // by all threads of the block
void passed_warp_sync(unsigned warp, unsigned mask); // by the lanes of the mask; warp is the first one's thread
void run(unsigned thread);                         // this thread runs now
[[noreturn]] void stop();                          // cuemu.cpp: ends the launch, which describes what was found

// Fault is what ended a launch: shared memory that nobody wrote, or two accesses without an order.
struct Fault {
	bool unwritten, shared;
	uintptr_t address;
	size_t shared_byte; // from the lowest byte that the launch has written
	bool write, other_write;
	unsigned thread, other_thread;
	uint64_t block, other_block; // their numbers in the grid
	void *code, *other_code;     // behind the access
};
extern Fault fault;

// describe puts the fault into words. pointers tells which arguments of the launch are addresses.
std::string describe(unsigned pointers, void **arguments);

#else

inline void start_launch(char *, size_t, unsigned) {}
inline void end_launch() {}
inline void start_block(uint64_t) {}
inline void passed_barrier() {}
inline void passed_warp_sync(unsigned, unsigned) {}
inline void run(unsigned) {}

#endif

} // namespace races
} // namespace cuemu

#endif
