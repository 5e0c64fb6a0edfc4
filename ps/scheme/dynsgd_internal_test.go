package scheme

import "testing"

// TestVersionsOfDynSGDAreMoreThanSAndTwo: "at most s+2 live versions" (DynSGD, multi-version form [M]) does not hold
// under the rule told with it, where the first worker to leave the newest version opens the next. A worker that leads
// by s may stand still while another goes from s behind it to s ahead of it, and opens a version at each step. Here s =
// 2 and 5 are live. So replied keeps workers on the newest version when s+2 are open.
func TestVersionsOfDynSGDAreMoreThanSAndTwo(t *testing.T) {
	for _, c := range []struct{ max, want int }{{100, 5}, {4, 4}} {
		s, err := newDynSGD(Env{Workers: 2, Shards: []int32{0}, Servers: 1}, Common{},
			&DynSGDParams{Versions: "multi", Staleness: 2, Release: ReleaseSoft})
		if err != nil {
			t.Fatal(err)
		}
		g := s.(*gate)
		versions := g.mix.(*byVersion)
		versions.max = c.max
		next := []int64{-1, -1}
		for _, w := range []int32{0, 1, 1, 1, 1, 0, 1, 0, 1, 0, 0, 0, 0, 0} { // each pushes, and pulls
			if next[w] >= 0 {
				g.Step(Event{Kind: Pushed, Worker: w, Owner: w, Parts: 1, Samples: 1, Iter: next[w]}, nil)
			}
			next[w]++
			g.Step(Event{Kind: Wanted, Worker: w, Iter: next[w]}, nil)
		}
		if got := len(versions.versions); got != c.want {
			t.Errorf("with room for %d: %d live versions, want %d: %v", c.max, got, c.want, g)
		}
	}
}
