package csv

import (
	"os"
	"syscall"
	"testing"

	"fluentps/ps/workload/dataset/files"
)

// BenchmarkFile reads the file that FLUENTPS_TEST_CSV names, and reports the processor time, too.
func BenchmarkFile(b *testing.B) {
	path := os.Getenv("FLUENTPS_TEST_CSV")
	if path == "" {
		b.Skip("FLUENTPS_TEST_CSV names no file")
	}
	used := func() float64 {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return float64(u.Utime.Nano() + u.Stime.Nano())
	}
	before := used()
	for b.Loop() {
		train, _, _, err := Read([]string{path}, nil, Options{}, files.New(0))
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(train.Rows()), "rows")
	}
	b.ReportMetric((used()-before)/float64(b.N), "cpu-ns/op")
}
