package rules

import (
	"fluentps/internal/configs/keys"
	"fluentps/internal/configs/settings"
)

// crossDevice refuses tf32 with our own kernels: only cuBLAS rounds to TF32.
func (w *checks) crossDevice(t *keys.Table) {
	math, gemm := t.ByPath["device.math"], t.ByPath["device.gemm"]
	if math.Bad || gemm.Bad || w.Config.Device.Math != "tf32" || w.Config.Device.Gemm != "own" {
		return
	}
	w.Fatal(math.Node, math.Path, "set device.gemm: auto or cublas, or device.math: float32",
		"only cuBLAS has tf32; with device.gemm own, our kernels multiply in float32")
}

// crossMixed refuses every slicing except even, the only one that can give servers unequal parts.
func (w *checks) crossMixed(t *keys.Table) {
	at, slice := t.ByPath["cluster.placement"], t.ByPath["shards.slice"]
	if at.Bad || slice.Bad || w.Config.Cluster.Placement != "mixed" || w.Config.Baseline == settings.BaselineAllreduce ||
		w.Config.Shards.Slice == "even" {
		return
	}
	w.Fatal(at.Node, at.Path, "set shards.slice: even, or another placement",
		"mixed gives a smaller part to a server that also works than to one that only serves; shards.slice %s cannot do that",
		w.Config.Shards.Slice)
}
