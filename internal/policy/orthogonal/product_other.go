//go:build !amd64 || purego

package orthogonal

func tile(dst []float32, stride int, left, right []float32) { tileGo(dst, stride, left, right) }
