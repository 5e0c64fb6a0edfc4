/* This file is compiled as a check, and its object is not used: the generated header must agree with CUDA's own. The numbers
 * are those of NVIDIA's documentation of the driver API. */
#include <cuda.h>

#define SAME(name, value) _Static_assert((name) == (value), #name " is not " #value)

SAME(CUDA_SUCCESS, 0);
SAME(CUDA_ERROR_INVALID_VALUE, 1);
SAME(CUDA_ERROR_OUT_OF_MEMORY, 2);
SAME(CUDA_ERROR_NOT_INITIALIZED, 3);
SAME(CUDA_ERROR_NO_DEVICE, 100);
SAME(CUDA_ERROR_INVALID_CONTEXT, 201);
SAME(CUDA_ERROR_INVALID_PTX, 218);
SAME(CUDA_ERROR_NOT_FOUND, 500);
SAME(CUDA_ERROR_NOT_READY, 600);
SAME(CUDA_ERROR_ECC_UNCORRECTABLE, 214);
SAME(CUDA_ERROR_NVLINK_UNCORRECTABLE, 220);
SAME(CUDA_ERROR_ILLEGAL_ADDRESS, 700);
SAME(CUDA_ERROR_LAUNCH_TIMEOUT, 702);
SAME(CUDA_ERROR_CONTEXT_IS_DESTROYED, 709);
SAME(CUDA_ERROR_ASSERT, 710);
SAME(CUDA_ERROR_HARDWARE_STACK_ERROR, 714);
SAME(CUDA_ERROR_ILLEGAL_INSTRUCTION, 715);
SAME(CUDA_ERROR_MISALIGNED_ADDRESS, 716);
SAME(CUDA_ERROR_INVALID_ADDRESS_SPACE, 717);
SAME(CUDA_ERROR_INVALID_PC, 718);
SAME(CUDA_ERROR_LAUNCH_FAILED, 719);
SAME(CUDA_ERROR_UNKNOWN, 999);
SAME(CU_STREAM_NON_BLOCKING, 1);
SAME(CU_EVENT_DISABLE_TIMING, 2);
SAME(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75);
SAME(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76);
SAME(CU_JIT_ERROR_LOG_BUFFER, 5);
SAME(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, 6);
SAME(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 8);

SAME(sizeof(CUdeviceptr), 8);
SAME(sizeof(CUdevice), 4);
SAME(sizeof(CUuuid), 16);
SAME(sizeof(CUresult), 4);
SAME(sizeof(CUDA_MEMCPY2D), 128);
SAME(sizeof(CUDA_MEMCPY3D), 200);
SAME(sizeof(CUDA_KERNEL_NODE_PARAMS), 56);

/* The header must map names to the library's, with CUDA's version suffix: the names without one take sizes of 32 bits. */
#define TEXT(name) #name
#define NAME(name) TEXT(name)
_Static_assert(sizeof NAME(cuMemAlloc) == sizeof "fluentps_cuMemAlloc_v2", "cuMemAlloc is not cuMemAlloc_v2");
_Static_assert(sizeof NAME(cuMemcpyHtoDAsync) == sizeof "fluentps_cuMemcpyHtoDAsync_v2", "cuMemcpyHtoDAsync is not cuMemcpyHtoDAsync_v2");
_Static_assert(sizeof NAME(cuTexRefSetAddress2D) == sizeof "fluentps_cuTexRefSetAddress2D_v3", "cuTexRefSetAddress2D is not cuTexRefSetAddress2D_v3");
