// What the emulator asks of its device memory, beside the C interface.
#ifndef CUEMU_MEMORY_H
#define CUEMU_MEMORY_H

#include <stddef.h>

namespace cuemu {

// locate finds the vector that contains an address, and how far from its start the address lies.
bool locate(const void *address, size_t *offset);

} // namespace cuemu

#endif
