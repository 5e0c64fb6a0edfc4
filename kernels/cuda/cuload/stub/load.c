#include "load.h"

#include <dlfcn.h>
#include <stdio.h>

#pragma GCC visibility push(hidden)

/* Generated from names.txt beside the jumps: one slot for each name. */
extern void *cuload_table[];
extern const char *const cuload_names[];
extern const int cuload_count;

enum { NOT_INITIALIZED = 3, NOT_SUPPORTED = 801 };

int cuload_closed(void) { return NOT_INITIALIZED; }

/* Replaces a function that an old driver does not have. */
static int absent(void) { return NOT_SUPPORTED; }

/* cuInit of the header that cuload makes. */
int fluentps_cuInit(unsigned flags)
{
	(void)flags;
	return 0;
}

static char message[512];

const char *cuload_error(void) { return message; }

int cuload_open(const char *path)
{
	/* Local: only calls through the table are meant for this library. */
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		snprintf(message, sizeof message, "%s", dlerror());
		return CULOAD_NO_LIBRARY;
	}
	int (*init)(unsigned) = (int (*)(unsigned))dlsym(library, "cuInit");
	if (!init) {
		snprintf(message, sizeof message, "%s has no cuInit", path);
		dlclose(library);
		return CULOAD_NO_INIT;
	}
	int code = init(0);
	if (code != 0) {
		return code;
	}
	for (int i = 0; i < cuload_count; i++) {
		void *found = dlsym(library, cuload_names[i]);
		cuload_table[i] = found ? found : (void *)absent;
	}
	return 0;
}

#pragma GCC visibility pop
