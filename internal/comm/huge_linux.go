package comm

import "syscall"

// adviseHuge asks for huge pages. It ignores a refusal: small pages serve as well.
func adviseHuge(mem []byte) { _ = syscall.Madvise(mem, syscall.MADV_HUGEPAGE) }
