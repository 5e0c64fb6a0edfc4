package layout

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// If there are two hosts, each file is on two of them, and the files of a host are spread over the ranks of the next.
func TestNeighborsAreOnTheNextHost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hosts := rapid.SliceOfN(rapid.IntRange(0, 4), 1, 20).Draw(t, "hosts")
		nodeOf := make([]int, len(hosts))
		for rank, host := range hosts {
			nodeOf[rank] = slices.Index(hosts, host)
		}
		senders := map[[2]int]int{}
		for rank, to := range Neighbors(nodeOf) {
			alone := !slices.ContainsFunc(hosts, func(h int) bool { return h != hosts[rank] })
			if alone != (to < 0) || to >= 0 && nodeOf[to] == nodeOf[rank] {
				t.Fatalf("rank %d of %v sends to %d", rank, hosts, to)
			}
			if to >= 0 {
				senders[[2]int{nodeOf[rank], to}]++
			}
		}
		for key, n := range senders {
			of, on := 0, 0
			for _, node := range nodeOf {
				if node == key[0] {
					of++
				}
				if node == nodeOf[key[1]] {
					on++
				}
			}
			if most := (of + on - 1) / on; n > most {
				t.Fatalf("rank %d of %v hears of %d ranks, want at most %d", key[1], hosts, n, most)
			}
		}
	})
}
