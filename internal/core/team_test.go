package core

import (
	"testing"

	"pgregory.net/rapid"

	"fluentps/internal/comm/wire"
)

// In whatever order the ranks of a node are ready, a layer is whole with its last rank and not before, once per
// iteration, and the sum counts all ranks.
func TestTeamIsReadyWithItsLastRank(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 5).Draw(t, "ranks")
		layers := rapid.IntRange(1, 4).Draw(t, "layers")
		team := NewTeam(size, layers)
		for iter := range int64(3) {
			team.Begin(iter * 2)
			forwarded, samples := 0, int64(0)
			next := make([]int, size) // -1: before the forward pass; else layers done, last first
			for m := range next {
				next[m] = -1
			}
			missing := make([]int, layers)
			for l := range missing {
				missing[l] = size
			}
			for left := size * (layers + 1); left > 0; left-- {
				m := rapid.IntRange(0, size-1).Filter(func(m int) bool { return next[m] < layers }).Draw(t, "rank")
				if next[m]++; next[m] == 0 {
					head := wire.Header{Samples: int64(10 + m), Correct: int64(m), Loss: float64(m) / 2, Blocked: int64(100 + 100*m)}
					samples += head.Samples
					forwarded++
					sum, whole := team.Forwarded(m, head)
					if whole != (forwarded == size) {
						t.Fatalf("whole is %v after %d of %d ranks: %v", whole, forwarded, size, team)
					}
					if n := int64(size * (size - 1) / 2); whole &&
						(sum.Samples != samples || sum.Correct != n || sum.Loss != float64(n)/2 || sum.Blocked != 100) {
						t.Fatalf("sum of %d ranks is %+v", size, sum)
					}
					continue
				}
				layer := layers - next[m]
				missing[layer]--
				if whole := team.Ready(m, layer); whole != (missing[layer] == 0) {
					t.Fatalf("layer %d is whole: %v, and %d ranks are missing: %v", layer, whole, missing[layer], team)
				}
			}
		}
	})
}

func TestTeamRefusesInvalidInputs(t *testing.T) {
	for name, wrong := range map[string]func(*Team){
		"ready before forward":  func(t *Team) { t.Ready(1, 0) },
		"forward twice":         func(t *Team) { t.Forwarded(0, wire.Header{}); t.Forwarded(0, wire.Header{}) },
		"ready twice":           func(t *Team) { t.Forwarded(0, wire.Header{}); t.Ready(0, 1); t.Ready(0, 1) },
		"begins before the end": func(t *Team) { t.Begin(8) },
	} {
		t.Run(name, func(t *testing.T) {
			team := NewTeam(2, 2)
			team.Begin(7)
			defer func() {
				if recover() == nil {
					t.Errorf("accepted: %v", team)
				}
			}()
			wrong(team)
		})
	}
}
