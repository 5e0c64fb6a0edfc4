package mpitest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// answers are the functions by which MPI libraries report whether they are CUDA-aware.
const answers = `
int MPIX_Query_cuda_support(void) { return ANSWER; }
int MPIX_GPU_query_support(int kind, int *yes) { *yes = kind == 0 && ANSWER; return 0; }
`

// contexts stands in front of the MPI functions that move messages. Once a message was in the memory of a GPU, and as long as this memory
// exists, each of them ends the process on a thread without a CUDA context: whichever it is, MPI may copy memory of the GPU in it. The
// arguments are passed on as words, since their types depend on the MPI.
const contexts = `
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static volatile long on_device;

static void *of_cuda(const char *name) {
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	return driver ? dlsym(driver, name) : NULL;
}

static int is_on_device(long p) {
	int kind = 0;
	int (*attribute)(void *, int, unsigned long) = of_cuda("cuPointerGetAttribute");
	return p && attribute && attribute(&kind, 2, p) == 0 && kind == 2;
}

static void check(const char *call) {
	void *context = NULL;
	int (*current)(void **) = of_cuda("cuCtxGetCurrent");
	if (is_on_device(on_device) && (current(&context) != 0 || !context)) {
		fprintf(stderr, "%s is called on a thread without a CUDA context\n", call);
		_Exit(99);
	}
}

static void message(long p) {
	if (is_on_device(p))
		on_device = p;
}

#define MOVES(name) \
	int name(long a, long b, long c, long d, long e, long f, long g) { \
		static int (*next)(long, long, long, long, long, long, long); \
		if (!next) \
			next = dlsym(RTLD_NEXT, #name); \
		FIRST \
		check(#name); \
		return next(a, b, c, d, e, f, g); \
	}
#define FIRST message(a);
MOVES(MPI_Isend)
MOVES(MPI_Issend)
MOVES(MPI_Irecv)
#undef FIRST
#define FIRST
MOVES(MPI_Recv)
MOVES(MPI_Test)
MOVES(MPI_Testsome)
MOVES(MPI_Iprobe)
`

// SayCUDA makes a library that answers in place of MPI whether it is CUDA-aware, and returns the environment variable
// that makes ranks load it first. If it says yes, it also checks the contexts of threads.
func SayCUDA(t testing.TB, yes bool) string {
	t.Helper()
	answer, text := 0, answers
	if yes {
		answer, text = 1, contexts+answers
	}
	source, library := filepath.Join(t.TempDir(), "answers.c"), filepath.Join(t.TempDir(), "libanswers.so")
	if err := os.WriteFile(source, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("cc", fmt.Sprintf("-DANSWER=%d", answer), "-shared", "-fPIC", "-o", library, source, "-ldl").CombinedOutput()
	if err != nil {
		t.Fatalf("cc: %v\n%s", err, out)
	}
	return "LD_PRELOAD=" + library
}
