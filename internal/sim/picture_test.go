package sim_test

import (
	"slices"
	"strings"
	"testing"

	"fluentps/internal/policy/terms"
	"fluentps/internal/sim"
	"fluentps/ps/scheme"
)

// A scheme that refuses the run that explain draws has no picture but a reason, so that explain still tells the rest.
func TestNoTimelineOfASchemeThatRefusesTheRunIsDrawn(t *testing.T) {
	all := slices.Clone(scheme.All)
	defer func() { scheme.All = all }()
	e, _ := scheme.All.Lookup("ssp")
	e.Name = "picky"
	e.Says.Terms = []scheme.Term{{If: []terms.Cond{terms.Is("cluster.servers", "==", "1")},
		Why: "{scheme} needs 2 servers", Out: "set cluster.servers: 2"}}
	scheme.All = append(scheme.All, e)
	text, err := sim.Timeline(e)
	if err != nil || !strings.HasPrefix(text, "not simulated: ") || !strings.HasSuffix(text, ": picky needs 2 servers\n") {
		t.Errorf("%q, %v", text, err)
	}
}
