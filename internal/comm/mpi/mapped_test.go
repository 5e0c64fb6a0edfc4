//go:build mpi

package mpi

import (
	"slices"
	"testing"
)

// The pages that Open MPI maps for each rank are allocated. Not so the many GiB that other libraries map and hardly
// use, nor any if little would be left for others.
func TestWhichMappingsArePopulated(t *testing.T) {
	const maps = `00400000-00401000 rw-p 00000000 fe:00 12 /usr/bin/fluentps
10000000-10401000 rw-s 00000000 00:1a 2 /dev/shm/vader_segment.h.0.1
20000000-21001000 rw-s 00000000 00:1a 3 /dev/shm/sm_segment.h.0.2
100000000-300000000 rw-s 00000000 00:1a 4 /dev/shm/Intel_MPI_heap
30000000-30001000 r--s 00000000 00:1a 5 /dev/shm/read
40000000-40001000 rw-s 00000000 fe:00 6 /tmp/dstore_sm.lock
50000000-50001000 rw-s 00000000 00:01 7
`
	all := []region{{0x10000000, 0x10401000}, {0x20000000, 0x21001000}}
	for _, c := range []struct {
		free int64
		want []region
	}{{1 << 40, all}, {2 * (0x401000 + 0x1001000), all}, {2*(0x401000+0x1001000) - 2, nil}, {0, nil}} {
		if got := toPopulate(maps, 2, c.free); !slices.Equal(got, c.want) {
			t.Errorf("with %d bytes free: %x, want %x", c.free, got, c.want)
		}
	}
}
