// Kernels that make one pass or a few passes over their operands, for processors with AVX2 and FMA.
#ifndef FLUENTPS_LOOPS_H
#define FLUENTPS_LOOPS_H

// loop is a kernel of the Table. Threads may divide its parts among themselves; no result depends on the split.
typedef enum {
	LOOP_BATCH_NORM,        // parts are channels
	LOOP_BATCH_NORM_EVAL,   // channels
	LOOP_BATCH_NORM_GRAD,   // channels
	LOOP_BIAS_RELU,         // rows
	LOOP_RELU_GRAD,         // elements
	LOOP_BIAS_GRAD,         // columns
	LOOP_CHANNEL_BIAS_RELU, // channels
	LOOP_CHANNEL_BIAS_GRAD, // channels
	LOOP_MAX_POOL,          // planes
	LOOP_MAX_POOL_GRAD,     // planes
} loop;

// loop_run computes parts first to last-1 of a launch with sizes n and scalar f on vectors v, in the order that the kernel
// documents. Each vector is an argument of its own, because Go may not pass an array of its pointers.
void loop_run(loop k, long n0, long n1, long n2, long n3, float f, float *v0, float *v1, float *v2, float *v3, float *v4, float *v5,
	      float *v6, float *v7, long first, long last);

#endif
