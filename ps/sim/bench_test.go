package sim

import (
	"runtime"
	"testing"
	"time"
)

// BenchmarkNodeSteps reports node steps (one core Step on a push, pull or reply) per second in timing mode.
func BenchmarkNodeSteps(b *testing.B) {
	for _, c := range []struct {
		name string
		setting
	}{
		{"bsp/workers=16/servers=4", setting{workers: 16, servers: 4, scheme: "bsp", iterations: 500}},
		{"bsp/workers=100/servers=64", setting{workers: 100, servers: 64, scheme: "bsp", iterations: 20}},
		{"bsp/workers=1000/servers=64", setting{workers: 1000, servers: 64, scheme: "bsp", iterations: 4}},
		{"ssp/workers=100/servers=16", setting{workers: 100, servers: 16, scheme: "ssp", iterations: 60}},
		{"asp/workers=100/servers=16", setting{workers: 100, servers: 16, scheme: "asp", iterations: 60}},
	} {
		b.Run(c.name, func(b *testing.B) {
			c.bytes = 1_000_000
			c.set = append(noisy(10*time.Millisecond, 0.1), "simulate.network={bandwidth: 1GB, latency: 20us}", "simulate.server={fold: 4GB, commit: 2GB}")
			steps := int64(0)
			for b.Loop() {
				o := c.options(b)
				o.CheckEvery = 4096
				r, err := Run(o)
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
