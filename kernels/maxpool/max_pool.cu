#include "../gpu.cuh"

DEVICE void take(float v, int k, float &best, int &which) {
	if (v > best || v != v) {
		best = v;
		which = k;
	}
}

extern "C" __global__ void max_pool(const float *x, float *y, float *which, int planes, int height, int width) {
	const int rows = height / 2, cols = width / 2;
	for (int i = first(); i < planes * rows * cols; i += stride()) {
		const float *block = x + (i / (rows * cols) * height + i / cols % rows * 2) * width + i % cols * 2;
		float best = block[0];
		int k = 0;
		take(block[1], 1, best, k);
		take(block[width], 2, best, k);
		take(block[width + 1], 3, best, k);
		y[i] = best;
		which[i] = k;
	}
}

// One thread for each value of dx: what no block covers, at odd ends, becomes 0 like the others.
extern "C" __global__ void max_pool_grad(const float *dy, const float *which, float *dx, int planes, int height, int width) {
	const int rows = height / 2, cols = width / 2;
	for (int i = first(); i < planes * height * width; i += stride()) {
		int col = i % width, row = i / width % height, plane = i / (width * height);
		float v = 0;
		if (row / 2 < rows && col / 2 < cols) {
			int out = (plane * rows + row / 2) * cols + col / 2;
			if ((int)which[out] == row % 2 * 2 + col % 2)
				v = dy[out];
		}
		dx[i] = v;
	}
}
