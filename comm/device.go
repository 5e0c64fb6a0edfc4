package comm

import (
	"fmt"
	"unsafe"
)

// CUDAAware is a Transport that may move messages between memory of NVIDIA GPUs and hosts.
type CUDAAware interface {
	// CUDAAware is nil if Isend and Irecv take Bufs of NewDevice, else why they do not.
	CUDAAware() error
}

// NewDevice is a Buf over n bytes of a GPU's memory, for transports that are CUDA-aware. The host knows the address alone:
// nobody reads or writes what Bytes and F32 return. An Isend comes after the kernels that write the bytes are over, a
// kernel that reads them is launched after the Irecv has completed: transports know nothing of streams. The memory is its
// owner's, who frees it when no operation is in flight; Free is not for it.
func NewDevice(address uint64, n int) *Buf {
	if address == 0 || n < 0 {
		panic(fmt.Sprintf("comm: %d bytes of a device at address %#x", n, address))
	}
	p := uintptr(address)
	return NewSegment(unsafe.Slice(*(**byte)(unsafe.Pointer(&p)), n))
}
