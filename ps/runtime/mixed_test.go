package runtime

import "testing"

// Where a server of its own serves beside servers that work too, nothing but the place of the sums changes.
func TestMixedPlacementEndsWithTheBitsOfSpread(t *testing.T) {
	want := trained(t, load(t), 6).Summary.ParametersSHA256
	for servers, ranks := range map[string]int{"1": 5, "3": 7, "4": 8} {
		s := trained(t, load(t, "cluster.placement=mixed", "cluster.servers="+servers), ranks).Summary
		if s.ParametersSHA256 != want || s.Workers != 4 || s.Servers != ranks {
			t.Errorf("%s servers of their own: %d servers, %d workers, %s, want %s", servers, s.Servers, s.Workers, s.ParametersSHA256, want)
		}
	}
}
