package kernels

import "embed"

// sources are all files from which the GPU code is made. They are embedded so that every package which imports this one
// is rebuilt when a source changes: cgo alone would keep the objects that it has compiled before.
//
//go:embed gpu.cuh */*.cu */*.cuh cuda/ptx/flags
var sources embed.FS
