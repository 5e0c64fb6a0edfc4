// A cuDNN for tests on the emulated driver: the legacy calls for convolutions that package cuda makes. It computes what is in float32 and in
// NCHW order, and only looks at the operands of all else. Like the library, it refuses what does not fit.
//   STUB_CUDNN=version:70605   says that it is this version
//   STUB_CUDNN=wrong           computes something else
//   STUB_CUDNN=bf16            refuses bf16
//   STUB_CUDNN=create          does not start
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { OK, BAD_PARAM = 3, INTERNAL = 4, NOT_SUPPORTED = 9, FLOAT = 0, BF16 = 9, NCHW = 0, NHWC = 1, MATH_DEFAULT = 0, MATH_TENSOR = 1, MATH_FMA = 3 };

struct handle { void *stream; };
struct tensor { int format, type, n[4], filter; };
struct convolution { int pad, stride, math; };
struct found { int algorithm, status; float ms; size_t memory; int determinism, math, reserved[3]; };

static const char *asked(const char *what)
{
	const char *have = getenv("STUB_CUDNN");
	return have && !strncmp(have, what, strlen(what)) ? have + strlen(what) : NULL;
}

// call calls a function of the driver, which the program has loaded.
static int call(const char *name, size_t a, size_t b, size_t c, size_t d)
{
	int (*f)(size_t, size_t, size_t, size_t) = dlsym(dlopen("libcuda.so.1", RTLD_NOW), name);
	return f ? f(a, b, c, d) : INTERNAL;
}

size_t cudnnGetVersion(void)
{
	const char *version = asked("version:");
	return version ? strtoul(version, NULL, 10) : 91002;
}

const char *cudnnGetErrorString(int status) { return status == NOT_SUPPORTED ? "CUDNN_STATUS_NOT_SUPPORTED" : "CUDNN_STATUS_OTHER"; }

int cudnnCreate(struct handle **h)
{
	if (asked("create"))
		return INTERNAL;
	*h = calloc(1, sizeof **h);
	return OK;
}

#define DESTROYS(name, type) \
	int name(struct type *p) { free(p); return OK; }
#define CREATES(name, type) \
	int name(struct type **p) { *p = calloc(1, sizeof **p); return OK; }
DESTROYS(cudnnDestroy, handle)
CREATES(cudnnCreateTensorDescriptor, tensor)
DESTROYS(cudnnDestroyTensorDescriptor, tensor)
CREATES(cudnnCreateFilterDescriptor, tensor)
DESTROYS(cudnnDestroyFilterDescriptor, tensor)
CREATES(cudnnCreateConvolutionDescriptor, convolution)
DESTROYS(cudnnDestroyConvolutionDescriptor, convolution)

int cudnnSetStream(struct handle *h, void *stream)
{
	h->stream = stream;
	return OK;
}

static int set(struct tensor *t, int format, int type, int a, int b, int c, int d, int filter)
{
	if ((format != NCHW && format != NHWC) || (type != FLOAT && type != BF16) || a < 1 || b < 1 || c < 1 || d < 1)
		return BAD_PARAM;
	*t = (struct tensor){format, type, {a, b, c, d}, filter};
	return type == BF16 && asked("bf16") ? NOT_SUPPORTED : OK;
}

int cudnnSetTensor4dDescriptor(struct tensor *t, int format, int type, int n, int c, int h, int w) { return set(t, format, type, n, c, h, w, 0); }
int cudnnSetFilter4dDescriptor(struct tensor *t, int type, int format, int k, int c, int h, int w) { return set(t, format, type, k, c, h, w, 1); }

int cudnnSetConvolution2dDescriptor(struct convolution *v, int pad_h, int pad_w, int u, int w, int dilation_h, int dilation_w, int mode, int type)
{
	if (pad_h != pad_w || u != w || dilation_h != 1 || dilation_w != 1 || mode != 1 || type != FLOAT)
		return BAD_PARAM;
	*v = (struct convolution){pad_h, u, MATH_DEFAULT};
	return OK;
}

int cudnnSetConvolutionMathType(struct convolution *v, int math)
{
	v->math = math;
	return OK;
}

static size_t length(const struct tensor *t) { return (size_t)t->n[0] * t->n[1] * t->n[2] * t->n[3]; }

// fits says whether images, filters and outputs belong together.
static int fits(const struct tensor *x, const struct tensor *w, const struct tensor *y, const struct convolution *v)
{
	if (x->filter || !w->filter || y->filter || x->type != w->type || x->type != y->type || x->format != w->format || x->format != y->format)
		return 0;
	for (int i = 2; i < 4; i++) {
		if (y->n[i] != (x->n[i] + 2 * v->pad - w->n[i]) / v->stride + 1)
			return 0;
	}
	return x->n[0] == y->n[0] && x->n[1] == w->n[1] && y->n[1] == w->n[0];
}

// fetch copies a tensor from the GPU, store copies it there.
static float *fetch(struct handle *h, const struct tensor *t, void *from)
{
	void *to = NULL;
	size_t bytes = length(t) * (t->type == BF16 ? 2 : 4);
	if (call("cuMemHostAlloc", (size_t)&to, bytes, 0, 0) || call("cuMemcpyDtoHAsync_v2", (size_t)to, (size_t)from, bytes, (size_t)h->stream) ||
	    call("cuStreamSynchronize", (size_t)h->stream, 0, 0, 0))
		return NULL;
	return to;
}

// compute goes through all products of a convolution. to is the index of the one of x, w and y that becomes their sum.
static int compute(struct handle *h, const struct tensor *t[3], void *p[3], const struct convolution *v, int to)
{
	float *host[3], *x, *w, *y;
	for (int i = 0; i < 3; i++) {
		host[i] = fetch(h, t[i], p[i]);
		if (!host[i])
			return INTERNAL;
	}
	x = host[0], w = host[1], y = host[2];
	const int *n = t[0]->n, *f = t[1]->n, *o = t[2]->n;
	if (t[0]->type == FLOAT && t[0]->format == NCHW) {
		memset(host[to], 0, 4 * length(t[to]));
		for (int i = 0; i < n[0]; i++)
		for (int k = 0; k < f[0]; k++)
		for (int c = 0; c < n[1]; c++)
		for (int r = 0; r < o[2]; r++)
		for (int s = 0; s < o[3]; s++)
		for (int a = 0; a < f[2]; a++)
		for (int b = 0; b < f[3]; b++) {
			int row = r * v->stride + a - v->pad, column = s * v->stride + b - v->pad;
			if (row < 0 || row >= n[2] || column < 0 || column >= n[3])
				continue;
			float *xp = &x[((i * n[1] + c) * n[2] + row) * n[3] + column], *wp = &w[((k * f[1] + c) * f[2] + a) * f[3] + b];
			float *yp = &y[((i * o[1] + k) * o[2] + r) * o[3] + s];
			if (to == 0)
				*xp += *wp * *yp;
			else if (to == 1)
				*wp += *xp * *yp;
			else
				*yp += *xp * *wp;
		}
		for (size_t i = 0; i < length(t[to]) && asked("wrong"); i++)
			host[to][i] *= 1.01f;
		if (call("cuMemcpyHtoDAsync_v2", (size_t)p[to], (size_t)host[to], 4 * length(t[to]), (size_t)h->stream) ||
		    call("cuStreamSynchronize", (size_t)h->stream, 0, 0, 0))
			return INTERNAL;
	}
	for (int i = 0; i < 3; i++)
		call("cuMemFreeHost", (size_t)host[i], 0, 0, 0);
	return OK;
}

static int find(const struct tensor *x, const struct tensor *w, const struct tensor *y, const struct convolution *v, int most, int *count, struct found *found)
{
	static const struct found all[] = { // the second one does not run, and there is no room for the third
		{6, OK, 0.1, 64, 1, MATH_DEFAULT, {0}}, {4, NOT_SUPPORTED, -1, 0, 1, MATH_DEFAULT, {0}}, {2, OK, 0.2, (size_t)1 << 40, 1, MATH_DEFAULT, {0}},
		{1, OK, 0.3, 64, 1, MATH_TENSOR, {0}}, {0, OK, 0.4, 0, 1, MATH_DEFAULT, {0}},
	};
	if (!fits(x, w, y, v) || most < 5)
		return BAD_PARAM;
	*count = 5;
	memcpy(found, all, sizeof all);
	return OK;
}

// run refuses the algorithm that find says is the fastest, and rounding where none was asked for.
static int run(struct handle *h, const struct tensor *x, void *xp, const struct tensor *w, void *wp, const struct tensor *y, void *yp,
               const struct convolution *v, int algorithm, const float *alpha, const float *beta, void *room, size_t bytes, int to)
{
	if (!fits(x, w, y, v) || *alpha != 1 || *beta != 0 || !room || bytes < 64)
		return BAD_PARAM;
	if (algorithm == 6)
		return NOT_SUPPORTED;
	if (algorithm > 1 || (v->math != MATH_FMA && algorithm == 1 && v->math != MATH_TENSOR))
		return BAD_PARAM;
	return compute(h, (const struct tensor *[]){x, w, y}, (void *[]){xp, wp, yp}, v, to);
}

typedef struct handle *H;
typedef const struct tensor *T;
typedef const struct convolution *V;

int cudnnFindConvolutionForwardAlgorithmEx(H h, T x, void *xp, T w, void *wp, V v, T y, void *yp, int most, int *count, struct found *f, void *room, size_t bytes)
{
	return find(x, w, y, v, most, count, f);
}

int cudnnFindConvolutionBackwardDataAlgorithmEx(H h, T w, void *wp, T y, void *yp, V v, T x, void *xp, int most, int *count, struct found *f, void *room, size_t bytes)
{
	return find(x, w, y, v, most, count, f);
}

#ifndef WITHOUT_A_CALL
int cudnnFindConvolutionBackwardFilterAlgorithmEx(H h, T x, void *xp, T y, void *yp, V v, T w, void *wp, int most, int *count, struct found *f, void *room, size_t bytes)
{
	return find(x, w, y, v, most, count, f);
}
#endif

int cudnnConvolutionForward(H h, const void *a, T x, void *xp, T w, void *wp, V v, int algorithm, void *room, size_t bytes, const void *b, T y, void *yp)
{
	return run(h, x, xp, w, wp, y, yp, v, algorithm, a, b, room, bytes, 2);
}

int cudnnConvolutionBackwardData(H h, const void *a, T w, void *wp, T y, void *yp, V v, int algorithm, void *room, size_t bytes, const void *b, T x, void *xp)
{
	return run(h, x, xp, w, wp, y, yp, v, algorithm, a, b, room, bytes, 0);
}

int cudnnConvolutionBackwardFilter(H h, const void *a, T x, void *xp, T y, void *yp, V v, int algorithm, void *room, size_t bytes, const void *b, T w, void *wp)
{
	return run(h, x, xp, w, wp, y, yp, v, algorithm, a, b, room, bytes, 1);
}
