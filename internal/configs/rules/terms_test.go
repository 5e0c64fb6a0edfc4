package rules_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"fluentps/internal/configs"
	"fluentps/ps/scheme"
)

// TestATermOfAnOwnSchemeIsHeld: a scheme of another module says what it does not go with, in the names of package scheme alone, and
// check refuses that at the key.
func TestATermOfAnOwnSchemeIsHeld(t *testing.T) {
	toy, _ := scheme.All.Lookup("asp")
	toy.Name = "toy"
	toy.Says = scheme.Says{Terms: []scheme.Term{{
		If:  []scheme.Cond{scheme.Key{Path: "train.optimizer.name", Op: "==", Value: "adam"}},
		Why: "{scheme} knows no {train.optimizer.name}", Out: "set train.optimizer.name: sgd"}}}
	before := scheme.All
	t.Cleanup(func() { scheme.All = before })
	scheme.All = append(slices.Clone(before), toy)
	const run = "name: a\ndata: {set: generated}\nmodel: {name: softmax}\nsync: [{match: \"*\", scheme: toy}]\n" +
		"train: {batch_per_worker: 8, stop: {updates: 9}, optimizer: {name: %s, lr: 0.1}}\n"
	for optimizer, want := range map[string]string{"sgd": "", "adam": "toy knows no adam"} {
		_, _, ds := configs.Parse("a.yaml", fmt.Appendf(nil, run, optimizer), configs.Options{})
		if got := fmt.Sprint(ds); (want == "") != (len(ds) == 0) || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q in it", optimizer, got, want)
		}
	}
}
