//go:build cuemu

// Device memory of the emulator. Each vector ends at a page that faults, and starts after bytes that no kernel may write.
#include "cuemu.h"

#include <map>
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>

namespace {

struct Mapping {
	unsigned char *base;
	size_t bytes; // including the pages that fault, one on each side
};

std::mutex lock;
std::map<void *, Mapping> mappings;

const unsigned char untouched = 0xff; // four of these bytes are a NaN, so that a read in front of a vector shows too

} // namespace

void *cuemu_alloc(size_t bytes) {
	const size_t page = sysconf(_SC_PAGESIZE);
	size_t inside = (bytes + page) / page * page; // at least one byte in front
	void *p = mmap(nullptr, inside + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return nullptr;
	Mapping m = {static_cast<unsigned char *>(p), inside + 2 * page};
	if (mprotect(m.base + page, inside, PROT_READ | PROT_WRITE)) {
		munmap(p, m.bytes);
		return nullptr;
	}
	memset(m.base + page, untouched, inside - bytes);
	unsigned char *start = m.base + page + inside - bytes;
	std::lock_guard<std::mutex> hold(lock);
	mappings[start] = m;
	return start;
}

int cuemu_free(void *memory) {
	const size_t page = sysconf(_SC_PAGESIZE);
	std::lock_guard<std::mutex> hold(lock);
	auto at = mappings.find(memory);
	if (at == mappings.end())
		return 1;
	Mapping m = at->second;
	int spoilt = 0;
	for (unsigned char *p = m.base + page; p < memory; p++)
		spoilt |= *p != untouched;
	munmap(m.base, m.bytes);
	mappings.erase(at);
	return spoilt;
}
