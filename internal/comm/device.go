package comm

import (
	"fmt"
	"unsafe"
)

// CUDAAware is a Transport that may move messages between memory of NVIDIA GPUs and hosts.
type CUDAAware interface {
	// CUDAAware returns nil if Isend and Irecv accept Bufs of NewDevice, otherwise the reason why they do not.
	CUDAAware() error
}

// NewDevice returns a Buf over n bytes of a GPU's memory, for transports that are CUDA-aware. The host knows only the
// address: it must not read or write what Bytes and F32 return. Transports know nothing of streams: call Isend after
// the kernels that write the bytes have ended, and launch a kernel that reads them after the Irecv has completed. The
// owner of the memory frees it when no operation is in flight; Free panics.
func NewDevice(address uint64, n int) *Buf {
	if address == 0 || n < 0 {
		panic(fmt.Sprintf("comm: %d bytes of a device at address %#x", n, address))
	}
	p := uintptr(address)
	return NewSegment(unsafe.Slice(*(**byte)(unsafe.Pointer(&p)), n))
}
