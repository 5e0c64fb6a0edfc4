package runtime

import "testing"

// Mixed placement, with dedicated servers beside servers that also work, only changes where sums are computed.
func TestMixedPlacementEndsWithTheBitsOfSpread(t *testing.T) {
	want := mustTrain(t, load(t), 6).Summary.ParametersSHA256
	for servers, ranks := range map[string]int{"1": 5, "3": 7, "4": 8} {
		s := mustTrain(t, load(t, "cluster.placement=mixed", "cluster.servers="+servers), ranks).Summary
		if s.ParametersSHA256 != want || s.Workers != 4 || s.Servers != ranks {
			t.Errorf("%s dedicated servers: %d servers, %d workers, %s, want %s", servers, s.Servers, s.Workers, s.ParametersSHA256, want)
		}
	}
}
