package verbs

import (
	"bytes"
	goflag "flag"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"fluentps/internal/policy/local"
	"fluentps/internal/policy/local/localtest"
)

// explain takes policies and periods from their tables, and a policy that is added there, too.
func TestPoliciesOfLocalAreExplained(t *testing.T) {
	explain := func(name string) string {
		var out bytes.Buffer
		set := goflag.NewFlagSet("explain", goflag.ContinueOnError)
		if err := set.Parse([]string{name}); err != nil {
			t.Fatal(err)
		}
		if err := explainVerb(cli.NewContext(&cli.App{Writer: &out}, set, nil)); err != nil {
			t.Error(err)
		}
		return strings.Join(strings.Fields(out.String()), " ")
	}
	remove, err := localtest.Add(local.Entry{Name: "mine", Rule: "as it likes", Source: "ours",
		Defaults: map[string]string{"local.steps": "13"}}.
		Making(func(local.Spec, local.Env) local.Policy { return nil }))
	if err != nil {
		t.Fatal(err)
	}
	defer remove()
	for _, e := range local.All[1:] {
		got := explain(e.Name)
		for _, want := range []string{"local: {policy: " + e.Name + "}", e.Rule, e.Source} {
			if !strings.Contains(got, strings.Join(strings.Fields(want), " ")) {
				t.Errorf("explain %s lacks %q:\n%s", e.Name, want, got)
			}
		}
		if steps := e.Defaults["local.steps"]; steps != "" && !strings.Contains(got, "steps: "+steps+" ") {
			t.Errorf("explain %s does not say that steps is %s:\n%s", e.Name, steps, got)
		}
	}
	for _, e := range local.Periods[1:] {
		if got := explain(e.Name); !strings.Contains(got, e.Rule) || !strings.Contains(got, e.Source) ||
			!strings.Contains(got, "period: {name: "+e.Name+"}") {
			t.Errorf("explain %s: %s", e.Name, got)
		}
	}
}
