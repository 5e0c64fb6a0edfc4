//go:build cuemu && !races

// Device memory of the emulator. Each vector ends at a page that faults, and starts after bytes that no kernel may write.
// As on a GPU, the host cannot access it: only a launch that gets the vector's address can, and what lies between
// cuemu_open and cuemu_close.
#include "cuemu.h"

#include "memory.h"
#include "races.h"

#include <map>
#include <mutex>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

namespace cuemu {

namespace {

struct Mapping {
	unsigned char *base;
	size_t bytes;  // including the pages that fault, one on each side
	size_t length; // of the vector
	int opened;    // so many times; -1: always open
};

std::recursive_mutex lock;
std::map<void *, Mapping> mappings;

const unsigned char untouched = 0xff; // four of these bytes are a NaN, so that a read in front of a vector shows too

const size_t page = sysconf(_SC_PAGESIZE);

#ifdef CUEMU_RACES
unsigned char *reserve(size_t bytes) { return reinterpret_cast<unsigned char *>(races::reserve(bytes)); }
void release(const Mapping &m) { races::forget(reinterpret_cast<char *>(m.base), m.bytes); }
#else
unsigned char *reserve(size_t bytes) {
	void *p = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? nullptr : static_cast<unsigned char *>(p);
}
void release(const Mapping &m) { munmap(m.base, m.bytes); }
#endif

void protect(const Mapping &m, int access) {
	if (mprotect(m.base + page, m.bytes - 2 * page, access)) {
		perror("cuemu: mprotect");
		abort();
	}
}

// find returns the vector at an address, or at its end.
std::map<void *, Mapping>::iterator find(const void *address) {
	auto at = mappings.upper_bound(const_cast<void *>(address));
	if (at == mappings.begin())
		return mappings.end();
	--at;
	const unsigned char *start = static_cast<unsigned char *>(at->first);
	return address <= start + at->second.length ? at : mappings.end();
}

const int signals[2] = {SIGSEGV, SIGBUS};
struct sigaction before[2];

// tell names a fault of the host in device memory. The handler of before deals with it.
void tell(int number, siginfo_t *info, void *context) {
	char text[256];
	std::unique_lock<std::recursive_mutex> hold(lock, std::try_to_lock);
	const void *address = info->si_addr;
	auto at = hold.owns_lock() ? find(address) : mappings.end();
	if (at != mappings.end()) {
		int n = snprintf(text, sizeof text,
		                 "cuemu: the host accesses device memory: byte %zu of a vector of %zu bytes. Only kernels and copies can.\n",
		                 (size_t)((const char *)address - (const char *)at->first), at->second.length);
		if (write(2, text, n) < 0)
			abort();
	}
	if (hold.owns_lock())
		hold.unlock();
	for (int i = 0; i < 2; i++) {
		if (signals[i] != number)
			continue;
		if (before[i].sa_flags & SA_SIGINFO)
			before[i].sa_sigaction(number, info, context);
		else
			sigaction(number, &before[i], nullptr);
	}
}

void watch_host() {
	static bool done;
	if (done)
		return;
	done = true;
	struct sigaction ours = {};
	ours.sa_sigaction = tell;
	ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
	for (int i = 0; i < 2; i++)
		sigaction(signals[i], &ours, &before[i]);
}

} // namespace

bool locate(const void *address, size_t *offset) {
	std::lock_guard<std::recursive_mutex> hold(lock);
	auto at = find(address);
	if (at == mappings.end())
		return false;
	*offset = static_cast<const char *>(address) - static_cast<char *>(at->first);
	return true;
}

} // namespace cuemu

using namespace cuemu;

void *cuemu_alloc(size_t bytes) {
	std::lock_guard<std::recursive_mutex> hold(lock);
	watch_host();
	size_t inside = (bytes + page) / page * page; // at least one byte in front
	unsigned char *base = reserve(inside + 2 * page);
	if (!base)
		return nullptr;
	const char *always = getenv("CUEMU_OPEN");
	Mapping m = {base, inside + 2 * page, bytes, always && *always ? -1 : 0};
	if (mprotect(m.base + page, inside, PROT_READ | PROT_WRITE)) {
		release(m);
		return nullptr;
	}
	memset(m.base + page, untouched, inside - bytes);
	if (m.opened == 0)
		protect(m, PROT_NONE);
	unsigned char *start = m.base + page + inside - bytes;
	mappings[start] = m;
	return start;
}

int cuemu_free(void *memory) {
	std::lock_guard<std::recursive_mutex> hold(lock);
	auto at = mappings.find(memory);
	if (at == mappings.end())
		return 1;
	Mapping m = at->second;
	protect(m, PROT_READ);
	int spoilt = 0;
	for (unsigned char *p = m.base + page; p < memory; p++)
		spoilt |= *p != untouched;
	release(m);
	mappings.erase(at);
	return spoilt;
}

void cuemu_open(const void *address) {
	std::lock_guard<std::recursive_mutex> hold(lock);
	auto at = find(address);
	if (at != mappings.end() && at->second.opened >= 0 && at->second.opened++ == 0)
		protect(at->second, PROT_READ | PROT_WRITE);
}

void cuemu_close(const void *address) {
	std::lock_guard<std::recursive_mutex> hold(lock);
	auto at = find(address);
	if (at != mappings.end() && at->second.opened > 0 && --at->second.opened == 0)
		protect(at->second, PROT_NONE);
}

int cuemu_copy(void *to, const void *from, size_t bytes) {
	if (cuemu_touch(from, bytes, 0) || cuemu_touch(to, bytes, 1))
		return 1;
	cuemu_open(to);
	cuemu_open(from);
	memcpy(to, from, bytes);
	cuemu_close(from);
	cuemu_close(to);
	return 0;
}

int cuemu_set(void *to, unsigned value, size_t count) {
	if (cuemu_touch(to, 4 * count, 1))
		return 1;
	cuemu_open(to);
	for (size_t i = 0; i < count; i++)
		static_cast<unsigned *>(to)[i] = value;
	cuemu_close(to);
	return 0;
}
