#include "../gpu.cuh"

// source is where element i of the output comes from, or -1 for a channel that the input lacks.
DEVICE int source(int i, int channels, int height, int width, int out) {
	const int rows = (height + 1) / 2, cols = (width + 1) / 2;
	const int col = i % cols, row = i / cols % rows, plane = i / (cols * rows), channel = plane % out;
	return channel < channels ? ((plane / out * channels + channel) * height + 2 * row) * width + 2 * col : -1;
}

extern "C" __global__ void shortcut_pad(const float *x, float *y, int images, int channels, int height, int width, int out) {
	const int count = images * out * ((height + 1) / 2) * ((width + 1) / 2);
	for (int i = first(); i < count; i += stride()) {
		const int from = source(i, channels, height, width, out);
		y[i] = from < 0 ? 0 : x[from];
	}
}

extern "C" __global__ void shortcut_pad_grad(const float *dy, float *dx, int images, int channels, int height, int width, int out) {
	const int count = images * out * ((height + 1) / 2) * ((width + 1) / 2);
	for (int i = first(); i < count; i += stride()) {
		const int to = source(i, channels, height, width, out);
		if (to >= 0)
			dx[to] += dy[i];
	}
}
