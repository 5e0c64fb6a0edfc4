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
void touch(const void *memory, size_t bytes, bool write); // by a copy

// operations.cpp: what follows belongs to an operation of a stream, which comes behind the first before[i] operations of stream i.
void start_operation(uint64_t phase, unsigned stream, const unsigned *before, unsigned streams, const char *what);
bool operating();               // there are operations: streams have an order
const std::string &operation(); // the latest one
extern uint64_t beside_from;    // what happened in earlier phases than this is ordered before the latest operation
const std::string *beside(uint64_t phase); // the operation of a phase, if it is not ordered before the latest one
void begin(unsigned stream, const unsigned *before, unsigned streams, const char *what);
[[noreturn]] void stop();                          // cuemu.cpp: ends the launch, which describes what was found

// Fault is what ended a launch: shared memory that nobody wrote, or two accesses without an order.
struct Fault {
	bool unwritten, shared;
	uintptr_t address;
	size_t shared_byte; // from the lowest byte that the launch has written
	bool write, other_write;
	unsigned thread, other_thread;
	uint64_t block, other_block; // their numbers in the grid
	void *code, *other_code;     // behind the access; nullptr: by a copy
	std::string other_operation; // of another stream
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
