package checkpoint

import (
	"os"
	"path/filepath"
	"testing"

	"fluentps/internal/disk/durable"
)

// BenchmarkWriteFile writes 256 MiB of parameters. "copy" writes the same bytes without format and checksums.
func BenchmarkWriteFile(b *testing.B) {
	v := make([]float32, 64<<20)
	for i := range v {
		v[i] = float32(i)
	}
	dir := b.TempDir()
	b.Run("file", func(b *testing.B) {
		b.SetBytes(4 * int64(len(v)))
		for range b.N {
			if _, err := WriteFile(durable.Below(dir), "a.bin", nil, v); err != nil {
				b.Fatal(err)
			}
			if err := os.Remove(filepath.Join(dir, "a.bin")); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("copy", func(b *testing.B) {
		b.SetBytes(4 * int64(len(v)))
		bytes := make([]byte, 4*len(v))
		for range b.N {
			if err := durable.WriteFile(filepath.Join(dir, "b.bin"), bytes); err != nil {
				b.Fatal(err)
			}
			if err := os.Remove(filepath.Join(dir, "b.bin")); err != nil {
				b.Fatal(err)
			}
		}
	})
}
