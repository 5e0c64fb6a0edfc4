package configs

// crossDevice refuses tf32 with our own kernels: only cuBLAS rounds to TF32.
func (w *walker) crossDevice(t *table) {
	math, gemm := t.byPath["device.math"], t.byPath["device.gemm"]
	if math.bad || gemm.bad || w.cfg.Device.Math != "tf32" || w.cfg.Device.Gemm != "own" {
		return
	}
	w.fatal(math.node, math.path, "set device.gemm: auto or cublas, or device.math: float32",
		"only cuBLAS has tf32; with device.gemm own, our kernels multiply in float32")
}
