package workload

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
)

// HashOf is the sha256, in hex, of parameters in model order, as little-endian float32. So it does not depend on slicing, servers,
// transport or driver. They may come in parts, which need not lie side by side.
func HashOf(parts ...[]float32) string {
	const bytes = 4 // of a float32
	h := sha256.New()
	var b [4096]byte
	for _, parameters := range parts {
		for len(parameters) > 0 {
			n := min(len(parameters), len(b)/bytes)
			for i, x := range parameters[:n] {
				binary.LittleEndian.PutUint32(b[bytes*i:], math.Float32bits(x))
			}
			h.Write(b[:bytes*n])
			parameters = parameters[n:]
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}
