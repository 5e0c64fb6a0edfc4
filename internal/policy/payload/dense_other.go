//go:build !amd64 || purego

package payload

func encodeHalf(dst []byte, src []float32)  { encodeHalfGo(dst, src) }
func decodeHalf(dst []float32, src []byte)  { decodeHalfGo(dst, src) }
func encodeBrain(dst []byte, src []float32) { encodeBrainGo(dst, src) }
func decodeBrain(dst []float32, src []byte) { decodeBrainGo(dst, src) }
