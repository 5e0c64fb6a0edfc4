package runtime

import (
	"path/filepath"
	"testing"

	"fluentps/internal/configs"
	"fluentps/internal/policy/local"
	"fluentps/internal/policy/local/localtest"
)

// inTurn is a policy of a test: rounds of 1 and of 5 steps in turn. It remembers whose turn it is, unless it is forgetful.
type inTurn struct {
	turn      float64
	forgetful bool
}

func (p *inTurn) Round(local.Now) local.Round {
	p.turn++
	return local.Round{Steps: 1 + 4*(int64(p.turn)%2)}
}

func (p *inTurn) Memory() []float64 { return []float64{p.turn} }

func (p *inTurn) Recall(m []float64) error {
	if !p.forgetful {
		p.turn = m[0]
	}
	return nil
}

// A policy that a line adds to the table resumes where it was by what it remembers, and no other code knows of it.
func TestAPolicyThatIsAddedResumes(t *testing.T) {
	forgetful := false
	remove, err := localtest.Add(local.Entry{Name: "in_turn", Rule: "rounds of 1 and of 5 steps in turn", Source: "ours",
		Varies: func(*local.Spec) bool { return true }}.
		Making(func(local.Spec, local.Env) local.Policy { return &inTurn{forgetful: forgetful} }))
	if err != nil {
		t.Fatal(err)
	}
	defer remove()
	to := func(updates string) *configs.Config {
		return load(t, "local={policy: in_turn}", "train.stop.updates="+updates,
			"train.optimizer={name: momentum, lr: 0.05}", "model={name: mlp, layers: [16]}")
	}
	want := mustTrain(t, to("14"), 6).Summary
	for _, forgetful = range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "out")
		mustRunPart(t, to("7"), 6, dir, "")
		got := mustRunPart(t, to("14"), 6, dir, dir).Summary
		if same := got.ParametersSHA256 == want.ParametersSHA256; same == forgetful || got.Iterations != 14 {
			t.Errorf("a policy that forgets: %t; in %d iterations it ends with the parameters of a run without a break: %t",
				forgetful, got.Iterations, same)
		}
	}
}
