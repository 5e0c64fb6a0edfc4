package kernels

import "embed"

// sources are all files that GPUs' code is made of. They are embedded here so that whatever imports this package is
// built anew when one changes: cgo alone would go on with what it once compiled of them.
//
//go:embed gpu.cuh */*.cu cuda/ptx/flags
var sources embed.FS
