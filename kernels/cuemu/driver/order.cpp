// The order in which the work of streams is done. There are two orders, and a program that waits for the work it needs is
// correct in both:
//   lazy   (default) no work is done before the program waits for it: a program that does not wait reads old values
//   eager  (CUEMU_ORDER=eager) copies are done as soon as the events that their stream waits for have passed, and kernels
//          late: a program that does not order a copy after a kernel overwrites the values that the kernel must read
#include "state.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace cuemu {

static bool passed(const Op &op) { return op.event->run >= op.upto; }

Clock host;
unsigned Stream::streams;

void join(Clock &c, const Clock &other)
{
	c.resize(std::max(c.size(), other.size()));
	for (size_t i = 0; i < other.size(); i++) {
		c[i] = std::max(c[i], other[i]);
	}
}

// begin tells the race check what an operation comes behind.
static void begin(Stream *s, const Op &op, const char *what)
{
	join(s->clock, op.clock);
	s->clock.resize(std::max<size_t>(s->clock.size(), s->number + 1));
	cuemu_begin(s->number, s->clock.data(), s->clock.size(), what);
	s->clock[s->number]++;
}

static CUresult outcome(Stream *s, int failed)
{
	if (failed) {
		fprintf(stderr, "cuemu: %s\n", cuemu_error());
		s->context->sticky = CUDA_ERROR_LAUNCH_FAILED;
	}
	return s->context->sticky;
}

static CUresult run(Stream *s, Op &op)
{
	switch (op.kind) {
	case Op::Copy:
		begin(s, op, "a copy");
		return outcome(s, cuemu_copy(op.to, op.from, op.bytes));
	case Op::Set:
		begin(s, op, "a memset");
		return outcome(s, cuemu_set(op.to, op.value, op.bytes / 4));
	case Op::Record:
		op.event->run++;
		join(op.event->clock, s->clock);
		join(op.event->clock, op.clock);
		return CUDA_SUCCESS;
	case Op::Wait: {
		CUresult code = passed(op) ? CUDA_SUCCESS : drain(op.event->stream, op.event, op.upto);
		join(s->clock, op.event->clock);
		return code;
	}
	case Op::Call:
		begin(s, op, "a library");
		return outcome(s, op.call());
	case Op::Launch:
		break;
	}
	std::vector<void *> args;
	for (auto &a : op.args) {
		args.push_back(&a);
	}
	begin(s, op, op.entry.c_str());
	return outcome(s, cuemu_launch(op.entry.c_str(), op.grid, op.block, op.shared, args.data()));
}

// drain does the work of a stream, up to a record of an event or all of it.
CUresult drain(Stream *s, const Event *until, long upto)
{
	if (s->running) {
		fprintf(stderr, "cuemu: streams wait for each other in a circle\n");
		abort();
	}
	s->running = true;
	CUresult code = s->context->sticky;
	while (code == CUDA_SUCCESS && !s->todo.empty() && !(until && until->run >= upto)) {
		Op op = std::move(s->todo.front());
		s->todo.pop_front();
		code = run(s, op);
	}
	s->running = false;
	return code;
}

// drain_for_host does all work of a stream, for which the host waits.
CUresult drain_for_host(Stream *s)
{
	CUresult code = drain(s, nullptr, 0);
	join(host, s->clock);
	return code;
}

// advance does the work that needs neither computing nor waiting.
void advance(Context *c)
{
	const char *order = getenv("CUEMU_ORDER");
	if (!order || strcmp(order, "eager") != 0) {
		return;
	}
	for (bool moved = true; moved;) {
		moved = false;
		for (Stream *s : c->streams) {
			while (!s->running && !s->todo.empty() && s->todo.front().kind != Op::Launch && s->todo.front().kind != Op::Call &&
			       (s->todo.front().kind != Op::Wait || passed(s->todo.front()))) {
				Op op = std::move(s->todo.front());
				s->todo.pop_front();
				run(s, op);
				moved = true;
			}
		}
	}
}

bool on_device(Context *c, CUdeviceptr p, size_t bytes)
{
	auto it = c->memory.upper_bound(p);
	if (it == c->memory.begin()) {
		return false;
	}
	--it;
	return p + bytes <= it->first + it->second;
}

bool pinned(Context *c, const void *p, size_t bytes)
{
	char *from = static_cast<char *>(const_cast<void *>(p));
	auto it = c->pinned.upper_bound(from);
	if (it == c->pinned.begin()) {
		return false;
	}
	--it;
	return from + bytes <= it->first + it->second;
}

// Text that is not PTX at all does not reach the assembler: the driver reports an unknown format (observed with driver 580).
bool is_ptx(const std::string &text) { return text.find(".version") != std::string::npos && text.find(".target") != std::string::npos; }

// entries_of returns the kernels of a PTX text and the sizes of their parameters.
std::map<std::string, std::vector<int>> entries_of(const std::string &ptx, std::string *problem)
{
	std::map<std::string, std::vector<int>> found;
	for (size_t at = ptx.find(".entry "); at != std::string::npos; at = ptx.find(".entry ", at)) {
		at += strlen(".entry ");
		size_t open = ptx.find('(', at), close = ptx.find(')', at);
		if (open == std::string::npos || close == std::string::npos) {
			*problem = "ptxas fatal : an .entry without parameters";
			return found;
		}
		std::string name = ptx.substr(at, open - at);
		while (!name.empty() && isspace(static_cast<unsigned char>(name.back()))) {
			name.pop_back();
		}
		std::vector<int> &sizes = found[name];
		for (size_t p = ptx.find(".param", open); p < close; p = ptx.find(".param", p + 1)) {
			size_t digits = ptx.find_first_of("0123456789", p);
			sizes.push_back(atoi(ptx.c_str() + digits) / 8);
		}
	}
	return found;
}

std::string leftovers(Context *c)
{
	std::string text;
	auto count = [&text](const char *what, size_t n) {
		if (n > 0) {
			text += (text.empty() ? "" : ", ") + std::to_string(n) + " " + what;
		}
	};
	count("allocations", c->memory.size());
	count("pinned host ranges", c->pinned.size());
	count("streams", c->streams.size());
	count("events", c->events.size());
	count("modules", c->modules.size());
	return text;
}

} // namespace cuemu
