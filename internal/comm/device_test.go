package comm

import (
	"testing"
	"unsafe"
)

func TestADeviceBufHasTheDeviceAddress(t *testing.T) {
	const address = 0x700000000000
	b := NewDevice(address, 64)
	span := Span(b, 16, 8)
	if at := uintptr(unsafe.Pointer(unsafe.SliceData(span))); at != address+16 || len(span) != 8 || b.Len() != 64 {
		t.Errorf("8 bytes at 16 of 64 at %#x: %d at %#x of %d", address, len(span), at, b.Len())
	}
	b.Release()
	for _, bad := range []func(){func() { NewDevice(0, 8) }, func() { NewDevice(address, -1) }, func() { NewDevice(address, 8).Free() }} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			bad()
		}()
	}
}
