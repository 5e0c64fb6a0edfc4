package real

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"fluentps/internal/configs"
	"fluentps/internal/core/shard"
	"fluentps/internal/plan/layout"
	"fluentps/internal/policy/local"
	"fluentps/internal/policy/local/localtest"
)

// oneAndMany is a policy of a test: rounds of 1 and of steps steps in turn. It remembers whose turn it is.
type oneAndMany struct {
	many int64
	turn float64
}

func (p *oneAndMany) Round(n local.Now) local.Round {
	steps := int64(1)
	if p.turn++; int64(p.turn)%2 == 0 {
		steps = p.many
	}
	if n.Left >= 0 {
		steps = max(1, min(steps, n.Left))
	}
	return local.Round{Steps: steps}
}

func (p *oneAndMany) Memory() []float64 { return []float64{p.turn} }

func (p *oneAndMany) Recall(m []float64) error {
	if len(m) != 1 {
		return fmt.Errorf("one_and_many: %d saved numbers, want 1", len(m))
	}
	p.turn = m[0]
	return nil
}

// addOneAndMany adds it to the table for one test.
func addOneAndMany(t *testing.T, change func(e *local.Entry)) {
	t.Helper()
	e := local.Entry{Name: "one_and_many", Rule: "rounds of one step and of steps steps in turn", Source: "ours",
		Varies:   func(*local.Spec) bool { return true },
		Defaults: map[string]string{"local.steps": "5", "local.outer.lr": "0.9"}}.Making(func(s local.Spec,
		_ local.Env) local.Policy {
		return &oneAndMany{many: s.Steps}
	})
	if change != nil {
		change(&e)
	}
	remove, err := localtest.Add(e)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(remove)
}

// A policy is a line in the table of internal/policy/local: configurations, their schema, plan, the simulator and a run know it from there.
func TestAPolicyIsALineInTheTable(t *testing.T) {
	const mine = "local={policy: one_and_many}"
	if _, _, ds := configs.Parse("x", []byte(realBase), configs.Options{Set: []string{mine}}); !ds.Failed() {
		t.Fatal("a policy that is not in the table is taken")
	}
	for name, change := range map[string]func(e *local.Entry){
		"as it is": nil,
		"late":     func(e *local.Entry) { e.Late = true },
		"elastic":  func(e *local.Entry) { e.Late, e.Take, e.Weigh, e.Defaults = true, local.Elastic, local.Whole, nil },
		"equally":  func(e *local.Entry) { e.Weigh = local.Equally },
		"outer":    func(e *local.Entry) { e.Outer = "slowmo" },
	} {
		t.Run(name, func(t *testing.T) {
			addOneAndMany(t, change)
			e, _ := local.All.Lookup("one_and_many")
			o := realOptions(t, mine, "cluster.servers=2", "model={name: mlp, layers: [16]}", "evaluate={every_epochs: 1, where: after}")
			if e.Defaults != nil && (o.Config.Local.Steps != 5 || o.Config.Local.Outer.LR != 0.9) {
				t.Errorf("%+v lacks the defaults of the policy", o.Config.Local)
			}
			got, want := runReal(t, o), measured(t, o)
			if got.Summary.ParametersSHA256 != want.ParametersSHA256 || got.Summary.Finished != "ok" ||
				want.Finished != "ok" || got.Summary.Iterations != 30 || want.Iterations != 30 {
				t.Errorf("simulated %.12s in %d iterations, the run %.12s in %d", got.Summary.ParametersSHA256,
					got.Summary.Iterations, want.ParametersSHA256, want.Iterations)
			}
			hosts := slices.Repeat([]string{"a"}, 6)
			roles, err := shard.Assign(hosts, 2, o.Config.Cluster.Placement)
			if err != nil {
				t.Fatal(err)
			}
			if text := layout.Text(o.Config, o.Plan, roles, hosts, o.Gradients.Set, layout.Link{}); !strings.Contains(text,
				"local one_and_many: "+e.Rule) || !strings.Contains(text, "an iteration is an exchange, and the steps before it") {
				t.Errorf("plan does not say what an iteration of one_and_many is:\n%s", text)
			}
			keysKnow(t, &e)
		})
	}
}

// keysKnow looks for the policy among the keys of configurations, and in the schema.
func keysKnow(t *testing.T, e *local.Entry) {
	t.Helper()
	for _, k := range configs.Keys() {
		switch has := strings.Contains(k.With, e.Name); k.Path {
		case "local.policy":
			if !slices.Contains(k.Values, e.Name) {
				t.Errorf("local.policy may be %v", k.Values)
			}
		case "local.outer.lr", "local.outer.momentum":
			if has != (e.Take != local.Elastic) {
				t.Errorf("%s exists with %s", k.Path, k.With)
			}
		case "local.outer.name":
			if has != (e.Take != local.Elastic && e.Outer == "") {
				t.Errorf("%s exists with %s", k.Path, k.With)
			}
		default:
			if has {
				t.Errorf("%s exists with %s", k.Path, k.With)
			}
		}
	}
	if !strings.Contains(string(configs.Schema()), e.Name) {
		t.Error("the schema does not have the policy")
	}
	for set, want := range map[string]string{
		"local.fragments=2":            "belongs to local.policy",
		"local.steps=0":                "set 1 or more",
		"local.period={name: adacomm}": "has rounds of its own",
	} {
		if _, _, ds := configs.Parse("x", []byte(realBase),
			configs.Options{Set: []string{"local={policy: one_and_many}", set}}); !ds.Failed() || !strings.Contains(fmt.Sprint(ds), want) {
			t.Errorf("%s: %v, want %q in it", set, ds, want)
		}
	}
}
