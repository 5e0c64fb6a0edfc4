//go:build !linux

package comm

// adviseHuge does nothing where the system is not asked for huge pages.
func adviseHuge([]byte) {}
