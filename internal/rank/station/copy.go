package station

import "slices"

// CopyInto copies vectors into memory, which it allocates if memory is nil.
func CopyInto(memory [][]float32, vectors [][]float32) [][]float32 {
	if memory == nil {
		for _, v := range vectors {
			memory = append(memory, slices.Clone(v))
		}
		return memory
	}
	for i, v := range vectors {
		copy(memory[i], v)
	}
	return memory
}
