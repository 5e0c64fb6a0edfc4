// nvrtc SOURCE gpu.cuh [HEADER...] -- FLAG...: compiles a kernel's .cu to PTX on standard output, with the headers of its folder, with the NVRTC library that the
// environment variable NVRTC names, or libnvrtc.so.11.2. It needs no header and no GPU.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct program *program;

static void *library;

static void *symbol(const char *name) {
	void *found = dlsym(library, name);
	if (!found) {
		fprintf(stderr, "nvrtc: %s\n", dlerror());
		exit(1);
	}
	return found;
}

static char *contents(const char *path) {
	FILE *f = fopen(path, "rb");
	if (!f) {
		perror(path);
		exit(1);
	}
	fseek(f, 0, SEEK_END);
	long size = ftell(f);
	rewind(f);
	char *text = calloc(size + 1, 1);
	if (!text || fread(text, 1, size, f) != (size_t)size) {
		perror(path);
		exit(1);
	}
	fclose(f);
	return text;
}

int main(int argc, char **argv) {
	int count = 0; // of the headers
	while (2 + count < argc && strcmp(argv[2 + count], "--") != 0)
		count++;
	if (count < 1 || count > 8 || 2 + count == argc) {
		fprintf(stderr, "usage: nvrtc SOURCE gpu.cuh [HEADER...] -- FLAG...\n");
		return 2;
	}
	const char *path = getenv("NVRTC") ? getenv("NVRTC") : "libnvrtc.so.11.2";
	library = dlopen(path, RTLD_NOW);
	if (!library) {
		fprintf(stderr, "nvrtc: %s\n", dlerror());
		return 3;
	}
	int (*create)(program *, const char *, const char *, int, const char *const *, const char *const *) = symbol("nvrtcCreateProgram");
	int (*compile)(program, int, const char *const *) = symbol("nvrtcCompileProgram");
	int (*log_size)(program, size_t *) = symbol("nvrtcGetProgramLogSize");
	int (*get_log)(program, char *) = symbol("nvrtcGetProgramLog");
	int (*ptx_size)(program, size_t *) = symbol("nvrtcGetPTXSize");
	int (*get_ptx)(program, char *) = symbol("nvrtcGetPTX");

	// The file's name without folders, so that the PTX does not depend on where the tree lies.
	const char *slash = strrchr(argv[1], '/');
	const char *headers[8], *names[8];
	for (int i = 0; i < count; i++) {
		const char *name = strrchr(argv[2 + i], '/');
		headers[i] = contents(argv[2 + i]);
		names[i] = i == 0 ? "../gpu.cuh" : name ? name + 1 : argv[2 + i];
	}
	program p;
	if (create(&p, contents(argv[1]), slash ? slash + 1 : argv[1], count, headers, names)) {
		fprintf(stderr, "nvrtc: cannot create a program\n");
		return 1;
	}
	int failed = compile(p, argc - 3 - count, (const char *const *)argv + 3 + count);
	size_t size = 0;
	log_size(p, &size);
	char *text = calloc(size + 1, 1);
	get_log(p, text);
	fputs(text, stderr);
	if (failed)
		return 1;
	ptx_size(p, &size);
	text = calloc(size + 1, 1);
	get_ptx(p, text);
	fputs(text, stdout);
	return 0;
}
