//go:build cuemu && !races

// What the race check has found, in words.
#include "races.h"

#ifdef CUEMU_RACES

#include "cuemu.h"
#include "memory.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

namespace cuemu {
namespace races {

namespace {

// line_of says where in the sources code lies: "softmax_xent.cu:38". It asks addr2line, which takes some ms: only reports need it.
std::string line_of(void *code) {
	Dl_info info;
	if (!dladdr(code, &info) || !info.dli_fname)
		return "?";
	unsigned long at = reinterpret_cast<unsigned long>(code) - 1; // the call, not what follows it
	char fallback[64];
	snprintf(fallback, sizeof fallback, "code %#lx", at);
	if (static_cast<const Elf64_Ehdr *>(info.dli_fbase)->e_type == ET_DYN)
		at -= reinterpret_cast<unsigned long>(info.dli_fbase);
	std::string file = info.dli_fname;
	if (access(file.c_str(), R_OK) != 0) // the program may have been started by a name that the search path completes
		file = "/proc/" + std::to_string(getpid()) + "/exe";
	char number[32], line[1024];
	snprintf(number, sizeof number, "%#lx", at);
	FILE *f = popen(("addr2line -i -e '" + file + "' " + number + " 2>/dev/null").c_str(), "r");
	if (!f)
		return fallback;
	std::string innermost, source;
	while (fgets(line, sizeof line, f)) { // from the innermost function outwards, as they are inlined
		line[strcspn(line, " \n")] = 0;
		const char *slash = strrchr(line, '/'), *found = slash ? slash + 1 : line;
		if (innermost.empty())
			innermost = found;
		if (source.empty() && strstr(found, ".cu"))
			source = found;
	}
	pclose(f);
	if (innermost.empty() || innermost[0] == '?')
		return fallback;
	return source.empty() ? innermost : source;
}

std::string name(unsigned long at, const uint3 &size) {
	return "(" + std::to_string(at % size.x) + "," + std::to_string(at / size.x % size.y) + "," + std::to_string(at / size.x / size.y) + ")";
}

std::string thread_name(unsigned thread, unsigned long block) {
	return "thread " + name(thread, position.block_dim) + " of block " + name(block, position.grid_dim);
}

// place names the 4 bytes: by the parameter whose vector holds them.
std::string place(unsigned pointers, void **arguments) {
	if (fault.shared)
		return "byte " + std::to_string(fault.shared_byte) + " of shared memory";
	size_t offset = 0, from;
	const char *address = reinterpret_cast<char *>(fault.address), *nearest = nullptr;
	unsigned parameter = 0;
	locate(address, &offset);
	for (unsigned i = 0; pointers >> i; i++) {
		const char *p = pointers >> i & 1 ? *static_cast<char **>(arguments[i]) : nullptr;
		if (!p || p > address || p <= nearest || !locate(p, &from) || p - from != address - offset)
			continue;
		nearest = p;
		parameter = i + 1;
	}
	if (!nearest)
		return "memory";
	return "element " + std::to_string((address - nearest) / 4) + " of parameter " + std::to_string(parameter);
}

} // namespace

std::string describe(unsigned pointers, void **arguments) {
	const std::string who = fault.code ? thread_name(fault.thread, fault.block) : "", line = fault.code ? line_of(fault.code) : "";
	if (!fault.other_operation.empty())
		return "race on " + (fault.code ? place(pointers, arguments) : "memory") + ": " + fault.other_operation + ", in another stream, " +
		       (fault.other_write ? "writes it" : "reads it") + (fault.other_code ? " in " + line_of(fault.other_code) : "") + ", " +
		       (fault.code ? who : "this") + (fault.write ? " writes" : " reads") + " it" + (fault.code ? " in " + line : "") +
		       ", and no event orders the two";
	if (fault.unwritten)
		return who + " reads " + place(pointers, arguments) + ", which no thread of the block has written, in " + line;
	return "race on " + place(pointers, arguments) + ": " + thread_name(fault.other_thread, fault.other_block) +
	       (fault.other_write ? " writes it in " : " reads it in ") + line_of(fault.other_code) + ", " + who + (fault.write ? " writes" : " reads") +
	       " it in " + line + ", and nothing orders the two";
}

} // namespace races
} // namespace cuemu

#endif
