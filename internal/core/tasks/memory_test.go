package tasks

import (
	"math"
	"slices"
	"testing"
	"time"

	"fluentps/internal/core"
	"fluentps/internal/policy/work"
)

// What a policy has learned comes back, and what it never returns is refused.
func TestPoliciesRecallWhatTheyLearned(t *testing.T) {
	for _, name := range []string{"flexrr", "epsp"} {
		s := work.Defaults()
		s.Policy = name
		e := Env{Me: 0, Batches: []int{8, 8, 8}}
		learned := New(s, e).(core.Learner)
		now := time.Duration(0)
		own := core.Task{Owner: 0, Parts: 1}
		learned.Step(core.WorkEvent{Kind: core.Starting, Task: own, At: now}, nil)
		for i := int64(1); i <= 8; i++ {
			learned.Step(core.WorkEvent{Kind: core.Stepped, Task: own, Samples: i, At: now}, nil)
			now += 3 * time.Millisecond
		}
		learned.Step(core.WorkEvent{Kind: core.Fixed, Task: own, Samples: 8, At: now}, nil)
		m := learned.Memory()
		fresh := New(s, e).(core.Learner)
		if err := fresh.Recall(m); err != nil || !slices.Equal(fresh.Memory(), m) || slices.Max(m) == 0 {
			t.Errorf("%s: %v comes back as %v: %v", name, m, fresh.Memory(), err)
		}
		for i := range m {
			for _, bad := range []float64{-1, math.NaN(), math.Inf(1)} {
				wrong := slices.Clone(m)
				wrong[i] = bad
				if fresh.Recall(wrong) == nil {
					t.Errorf("%s: %v was taken", name, wrong)
				}
			}
		}
		if fresh.Recall(m[:len(m)-1]) == nil {
			t.Errorf("%s: %v was taken", name, m[:len(m)-1])
		}
	}
}
