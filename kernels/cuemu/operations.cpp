//go:build cuemu && !races

// The order of launches and copies in streams, for the race check. The emulated driver says of each operation which ones came before it:
// those of its stream, and what the stream or the host has waited for. Others may run beside it, whatever order the driver takes.
#include "races.h"

#ifdef CUEMU_RACES

#include <vector>

namespace cuemu {
namespace races {

uint64_t beside_from = ~0ull;

namespace {

struct Operation {
	uint64_t phase; // its first one
	unsigned stream, number;
	std::string what;
};

std::vector<Operation> operations;             // in the order in which they ran
std::vector<std::vector<uint64_t>> of_streams; // their phases
std::vector<unsigned> seen;                    // by the running one: so many operations of each stream
unsigned running;                              // the stream of it

} // namespace

bool operating() { return !operations.empty(); }

const std::string &operation() { return operations.back().what; }

void start_operation(uint64_t phase, unsigned stream, const unsigned *before, unsigned streams, const char *what) {
	if (of_streams.size() <= stream)
		of_streams.resize(stream + 1);
	operations.push_back({phase, stream, (unsigned)of_streams[stream].size(), what});
	of_streams[stream].push_back(phase);
	seen.assign(before, before + streams);
	seen.resize(of_streams.size());
	running = stream;
	beside_from = ~0ull;
	for (size_t i = 0; i < of_streams.size(); i++)
		if (i != stream && seen[i] < of_streams[i].size() && of_streams[i][seen[i]] < beside_from)
			beside_from = of_streams[i][seen[i]];
}

const std::string *beside(uint64_t phase) {
	size_t low = 0, high = operations.size();
	while (high - low > 1) {
		size_t middle = (low + high) / 2;
		(operations[middle].phase <= phase ? low : high) = middle;
	}
	const Operation &o = operations[low];
	return o.stream != running && o.number >= seen[o.stream] ? &o.what : nullptr;
}

} // namespace races
} // namespace cuemu

#endif
