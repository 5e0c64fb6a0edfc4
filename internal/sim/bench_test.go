package sim_test

import (
	"runtime"
	"testing"
	"time"

	"fluentps/internal/sim/check"
	"fluentps/internal/sim/simtest"
)

// BenchmarkNodeSteps reports node steps (one core Step on a push, pull or reply) per second in timing mode.
func BenchmarkNodeSteps(b *testing.B) {
	for _, c := range []struct {
		name string
		simtest.Setting
	}{
		{"bsp/workers=16/servers=4", simtest.Setting{Workers: 16, Servers: 4, Scheme: "bsp", Iterations: 500}},
		{"bsp/workers=100/servers=64", simtest.Setting{Workers: 100, Servers: 64, Scheme: "bsp", Iterations: 20}},
		{"bsp/workers=1000/servers=64", simtest.Setting{Workers: 1000, Servers: 64, Scheme: "bsp", Iterations: 4}},
		{"ssp/workers=100/servers=16", simtest.Setting{Workers: 100, Servers: 16, Scheme: "ssp", Iterations: 60}},
		{"asp/workers=100/servers=16", simtest.Setting{Workers: 100, Servers: 16, Scheme: "asp", Iterations: 60}},
	} {
		b.Run(c.name, func(b *testing.B) {
			c.Bytes = 1_000_000
			c.Set = append(simtest.Noisy(10*time.Millisecond, 0.1), "simulate.network={bandwidth: 1GB, latency: 20us}",
				"simulate.server={fold: 4GB, commit: 2GB}")
			steps := int64(0)
			for b.Loop() {
				o := c.Options(b)
				o.CheckEvery = 4096
				r, err := check.Run(o)
				if err != nil {
					b.Fatal(err)
				}
				steps += r.Steps
			}
			b.ReportMetric(float64(steps)/b.Elapsed().Seconds(), "steps/s")
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			b.ReportMetric(float64(m.Sys)/(1<<20), "MiB-of-process")
		})
	}
}
