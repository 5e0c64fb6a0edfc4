//go:build !linux

package comm

// adviseHuge does nothing: this system takes no advice on huge pages.
func adviseHuge([]byte) {}
