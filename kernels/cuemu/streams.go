//go:build cuemu && races

package cuemu

// #include <stdlib.h>
// #include "cuemu.h"
import "C"

import "unsafe"

// begin starts an operation of a stream: what follows comes behind the first before[i] operations of each stream i.
func begin(stream int, before []uint32, what string) {
	name := C.CString(what)
	defer C.free(unsafe.Pointer(name))
	C.cuemu_begin(C.uint(stream), (*C.uint)(unsafe.SliceData(before)), C.uint(len(before)), name)
}
