// Fibers. Each fiber has a stack. On x86-64 a switch between fibers takes a dozen instructions. Elsewhere ucontext makes it,
// with two system calls.
#ifndef CUEMU_FIBER_H
#define CUEMU_FIBER_H

#include <stddef.h>

#if defined(__x86_64__) && !defined(CUEMU_UCONTEXT)

namespace cuemu {
struct Fiber {
	void *stack; // the top of the stack, where the callee-saved registers lie
};
} // namespace cuemu

extern "C" void cuemu_switch(void **save, void *load);

asm(R"(
	.text
	.globl cuemu_switch
	.type cuemu_switch, @function
cuemu_switch:
	pushq %rbp
	pushq %rbx
	pushq %r12
	pushq %r13
	pushq %r14
	pushq %r15
	movq %rsp, (%rdi)
	movq %rsi, %rsp
	popq %r15
	popq %r14
	popq %r13
	popq %r12
	popq %rbx
	popq %rbp
	ret
	.size cuemu_switch, .-cuemu_switch
)");

namespace cuemu {

inline void fiber_switch(Fiber *from, Fiber *to) { cuemu_switch(&from->stack, to->stack); }

// fiber_start makes the first switch to f call body, which must not return.
inline void fiber_start(Fiber *f, char *stack, size_t bytes, void (*body)()) {
	void **top = reinterpret_cast<void **>(stack + bytes);
	*--top = nullptr; // where body would return to; also keeps the stack aligned as a call would
	*--top = reinterpret_cast<void *>(body);
	for (int i = 0; i < 6; i++)
		*--top = nullptr;
	f->stack = top;
}

} // namespace cuemu

#else

#include <ucontext.h>

namespace cuemu {

struct Fiber {
	ucontext_t context;
};

inline void fiber_switch(Fiber *from, Fiber *to) { swapcontext(&from->context, &to->context); }

inline void fiber_start(Fiber *f, char *stack, size_t bytes, void (*body)()) {
	getcontext(&f->context);
	f->context.uc_stack.ss_sp = stack;
	f->context.uc_stack.ss_size = bytes;
	f->context.uc_link = nullptr;
	makecontext(&f->context, body, 0);
}

} // namespace cuemu

#endif
#endif
