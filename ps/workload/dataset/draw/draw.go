// Package draw makes random numbers that are a pure function of what they are for: of a seed, a worker, an iteration, a place.
package draw

// Mix is a hash of two words: SplitMix64's output function (Steele, Lea, Flood 2014) over their
// weighted sum.
func Mix(a, b uint64) uint64 {
	z := a + (b+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
