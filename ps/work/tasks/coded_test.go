package tasks

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fluentps/ps/core"
	"fluentps/ps/work"
)

func codedSpec(kind string, stragglers int) work.Spec {
	s := work.Defaults()
	s.Policy, s.Code.Kind, s.Code.Stragglers = work.Coded, kind, stragglers
	return s
}

// What one worker does in three iterations: the first is closed when it has done all, the second at once, the third after a task.
func TestCodedScript(t *testing.T) {
	var b strings.Builder
	for _, c := range []struct {
		kind          string
		me            int32
		n, stragglers int
	}{{"cyclic", 3, 5, 2}, {"fractional", 3, 6, 2}, {"auto", 1, 4, 0}} {
		fmt.Fprintf(&b, "worker %d of %d, %s, %d stragglers\n", c.me, c.n, c.kind, c.stragglers)
		b.WriteString(script(New(codedSpec(c.kind, c.stragglers), Env{Me: c.me, Batches: slices.Repeat([]int{8}, c.n)}), c.me, []int{-1, 0, 1}))
		b.WriteByte('\n')
	}
	file := filepath.Join("testdata", "coded.txt")
	if *rewrite {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != b.String() {
		t.Errorf("%v; got\n%swant\n%s", err, b.String(), want)
	}
}

// A worker keeps each of its partitions once and pushes once, for itself and last. After it was answered it begins nothing.
func TestCodedPushesOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "workers")
		s := rapid.IntRange(0, n-1).Draw(t, "stragglers")
		me := rapid.Int32Range(0, int32(n-1)).Draw(t, "me")
		p := New(codedSpec("cyclic", s), Env{Me: me, Batches: slices.Repeat([]int{4}, n)})
		for iter := range int64(3) {
			closes := rapid.IntRange(0, 2*n).Draw(t, "closes after")
			orders := p.Step(core.WorkEvent{Kind: core.Starting, Task: core.Task{Owner: me, Parts: 1, Iter: iter}}, nil)
			var computed []int32
			pushes := 0
			for done := 0; len(orders) > 0; done++ {
				now := orders[0].Task
				if now.Iter != iter || pushes > 0 {
					t.Fatalf("%+v after %d pushes of iteration %d", now, pushes, iter)
				}
				if now.Keep != core.Again {
					computed = append(computed, now.Owner)
				}
				if now.Keep != core.Kept {
					if pushes++; now.Owner != me || len(computed) != s+1 {
						t.Fatalf("pushes %+v after computing %v, s = %d", now, computed, s)
					}
				}
				if done == closes {
					p.Step(core.WorkEvent{Kind: core.Answered}, nil)
				}
				if orders = p.Step(core.WorkEvent{Kind: core.Computed, Task: now}, nil); done >= closes && len(orders) > 0 {
					t.Fatalf("begins %+v of a closed iteration", orders[0].Task)
				}
			}
			for k, j := range computed {
				if j != (me+int32(k))%int32(n) {
					t.Fatalf("computes %v", computed)
				}
			}
			p.Step(core.WorkEvent{Kind: core.Answered}, nil)
		}
	})
}
