package files

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// splitStream separates the draws of a split from others with the same seed.
const splitStream = 0x73706c6974

// TestRows picks a share of the rows of a file as test rows, in their order. Which ones depends on the number of rows and on the seed
// alone.
func TestRows(path string, rows int, share float64, seed uint64) ([]int32, error) {
	n := int(math.Round(share * float64(rows)))
	if n < 1 || n >= rows {
		return nil, fmt.Errorf("data: %s: data.split.test is %g, which makes %d of %d rows test rows, and both parts need a row: "+
			"set another share, or name test rows in data.test", path, share, n, rows)
	}
	order := make([]int32, rows)
	for i := range order {
		order[i] = int32(i)
	}
	draw := rand.New(rand.NewPCG(seed, splitStream))
	draw.Shuffle(rows, func(i, j int) { order[i], order[j] = order[j], order[i] })
	picked := slices.Clone(order[:n])
	slices.Sort(picked)
	return picked, nil
}

// Part divides rows of so many values into those that are picked and, in the memory of all, the others. Both keep their order.
func Part[T any](all []T, width int, picked []int32) (others, part []T) {
	part = make([]T, 0, len(picked)*width)
	to, next := 0, 0
	for at := 0; at < len(all); at += width {
		row := all[at : at+width]
		if next < len(picked) && int(picked[next])*width == at {
			part = append(part, row...)
			next++
			continue
		}
		to += copy(all[to:], row)
	}
	return all[:to], part
}
