package comm

import "syscall"

// adviseHuge asks for huge pages. A system without them says no, and small ones do as well.
func adviseHuge(mem []byte) { _ = syscall.Madvise(mem, syscall.MADV_HUGEPAGE) }
