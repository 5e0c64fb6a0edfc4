package local_test

import (
	"slices"
	"strings"
	"testing"

	"fluentps/internal/policy/local"
	"fluentps/internal/policy/local/localtest"
)

// one takes one step in each round.
type one struct{}

func (one) Round(local.Now) local.Round { return local.Round{Steps: 1} }
func (one) Memory() []float64           { return nil }
func (one) Recall([]float64) error      { return nil }

func whole() local.Entry {
	return local.Entry{Name: "one", Rule: "one step", Source: "ours",
		Defaults: map[string]string{"local.steps": "1"}}.Making(func(local.Spec, local.Env) local.Policy { return one{} })
}

// A policy can be added, and taken out again, and the ones of the table could be added.
func TestAPolicyIsAdded(t *testing.T) {
	for _, e := range local.All[1:] {
		if err := e.Complete(); err != nil {
			t.Errorf("%s: %v", e.Name, err)
		}
	}
	before := local.All.Names()
	remove, err := localtest.Add(whole())
	if err != nil {
		t.Fatal(err)
	}
	for what, names := range map[string][]string{"policy": local.All.Names(),
		"policy with a rule of the servers": local.OuterRules(), "policy with a rate": local.OuterRates()} {
		if !slices.Contains(names, "one") {
			t.Errorf("one is no %s: %v", what, names)
		}
	}
	s := local.Defaults()
	s.Policy, s.Steps = "one", 7
	if p, err := local.New(s, local.Env{Workers: 1, Rate: func(float64) float64 { return 1 }}); err != nil ||
		p.Round(local.Now{}).Steps != 1 || s.Constant() != 7 {
		t.Errorf("a policy %v, %v, whose rounds have %d steps", p, err, s.Constant())
	}
	if _, err := localtest.Add(whole()); err == nil || !strings.Contains(err.Error(), `"one": the name is taken`) {
		t.Errorf("added twice: %v", err)
	}
	if remove(); !slices.Equal(local.All.Names(), before) {
		t.Errorf("after it was taken out: %v", local.All.Names())
	}
}

// What an entry lacks is named.
func TestAPolicyLacksSomething(t *testing.T) {
	for want, change := range map[string]func(e *local.Entry){
		"small letters":          func(e *local.Entry) { e.Name = "One" },
		"lacks the field Rule":   func(e *local.Entry) { e.Rule = "" },
		"lacks the field Source": func(e *local.Entry) { e.Source = "" },
		"call Making":            func(e *local.Entry) { *e = e.Making(nil) },
		"one of Late and Fragm":  func(e *local.Entry) { e.Late, e.Fragments = true, true },
		"set Fragments":          func(e *local.Entry) { e.Take = local.Mix },
		"set Late":               func(e *local.Entry) { e.Take = local.Elastic },
		"have the key train.lr":  func(e *local.Entry) { e.Defaults["train.lr"] = "1" },
	} {
		e := whole()
		change(&e)
		if _, err := localtest.Add(e); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
}
