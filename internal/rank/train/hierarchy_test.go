package train_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"fluentps/internal/plan/layout"
	"fluentps/internal/rank/sidestest"
	"fluentps/internal/rank/station/stationtest"
)

// The law of hierarchy: the result is that of the flat run, within float tolerance, for any number of ranks on each host,
// and to the bit if each host has one rank.
func TestHierarchyEqualsFlat(t *testing.T) {
	for _, c := range []struct {
		hosts string
		teams string
		set   []string
	}{
		{"aaabbb", "[[1 2] [4 5]]", nil},
		{"aaaabb", "[[1 2 3] [5]]", nil},
		{"aaaaaa", "[[2 3 4 5]]", nil},
		{"abcdef", "[[2] [3] [4] [5]]", nil},
		{"ababab", "[[2 4] [3 5]]", nil},
		{"aabb", "[[0 1] [2 3]]", []string{"cluster.placement=colocate"}}, // members serve: host b's second rank does not, host a's leader does
		{"aabb", "[[0 1] [2 3]]", []string{"cluster={placement: colocate, servers: 4}"}},
		{"aaabbb", "[[1 2] [4 5]]",
			[]string{"model={name: mlp, layers: [12, 9]}", "shards={slice: layer, max_bytes: 128B}", "send={order: priority, window: 256B}"}},
		{"aaabbb", "[[1 2] [4 5]]", []string{"train.batch_per_worker=null", "train.batch_global=30"}},
		{"aaabbb", "[[1 2] [4 5]]",
			[]string{"data.partition=disjoint_contiguous", `faults=[{worker: 3, slow: {sleep: 1ms}}, {worker: 0, slow: {sleep: 1ms, from: 9}}]`}},
	} {
		if stationtest.UnderRace && len(c.set) == 0 && c.hosts != "aaabbb" {
			continue
		}
		t.Run(c.hosts+" "+strings.Join(c.set, " "), func(t *testing.T) {
			flat := trainOn(t, c.hosts, load(t, c.set...))
			cfg := load(t, append(slices.Clone(c.set), "cluster.hierarchy=node")...)
			node := trainOn(t, c.hosts, cfg)
			roles, err := layout.Roles(cfg, strings.Split(c.hosts, ""))
			if err != nil || fmt.Sprint(roles.Teams) != c.teams {
				t.Fatalf("teams %v, %v, want %s", roles.Teams, err, c.teams)
			}
			if len(node.Workers) != 4 || node.Pushes() != int64(30*len(roles.Workers)) ||
				node.Committed() != flat.Committed() || node.LeadMax() != 0 {
				t.Errorf("%d ranks compute, %d pushes of %d workers, %d samples, flat %d, at a lead of %d", len(node.Workers), node.Pushes(),
					len(roles.Workers), node.Committed(), flat.Committed(), node.LeadMax())
			}
			atMost(t, node.Parameters, flat.Parameters, 1e-5)
			if x := math.Abs(node.Loss - flat.Loss); !(x <= 1e-5) || flat.Loss == 0 {
				t.Errorf("train loss %v, flat %v", node.Loss, flat.Loss)
			}
			if one := len(roles.Workers) == 4; one && node.SHA256() != flat.SHA256() {
				t.Errorf("one rank a host: sha256 %s, flat %s", node.SHA256(), flat.SHA256())
			}
			if again := trainOn(t, c.hosts, cfg); again.SHA256() != node.SHA256() {
				t.Errorf("sha256 %s, and another time %s", node.SHA256(), again.SHA256())
			}
		})
	}
}

// If sums are exact, as for the gradients of model synthetic, the bits are those of the flat run.
func TestHierarchyEqualsFlatExactlyForIntegers(t *testing.T) {
	set := []string{"model={name: synthetic, layers: [100, 3000, 7]}", "train.optimizer={name: sgd, lr: 0.0625}",
		"train.stop={updates: 12}"}
	flat := trainOn(t, "aaaabb", load(t, set...))
	node := trainOn(t, "aaaabb", load(t, append(set, "cluster.hierarchy=node")...))
	if flat.Pushes() != 12*4 || node.Pushes() != 12*2 || node.SHA256() != flat.SHA256() {
		t.Errorf("%d pushes, sha256 %s; flat %d, %s", node.Pushes(), node.SHA256(), flat.Pushes(), flat.SHA256())
	}
}

// With two ranks on each of two hosts, half as much crosses the network: parameters, gradients and their headers.
func TestHierarchyHalvesWhatCrossesTheNetwork(t *testing.T) {
	set := []string{"model={name: mlp, layers: [64]}"}
	flat := trainOn(t, "aaabbb", load(t, set...))
	node := trainOn(t, "aaabbb", load(t, append(set, "cluster.hierarchy=node")...))
	if flat.Between == 0 || 2*node.Between != flat.Between {
		t.Errorf("%d bytes between hosts, flat %d", node.Between, flat.Between)
	}
	if f := float64(node.Sent) / float64(flat.Sent); f > 0.65 { // including the messages inside a host
		t.Errorf("%d bytes sent, flat %d", node.Sent, flat.Sent)
	}
}

// Teams are workers like any other under every scheme, also if they push deltas, keep copies, have their link scheduled, or
// if members serve.
func TestHierarchyUnderOtherSchemes(t *testing.T) {
	for _, set := range [][]string{
		{"sync=[{match: '*', scheme: asp}]"},
		{"sync=[{match: '*', scheme: ssp, staleness: 2}]", `faults=[{worker: 1, slow: {factor: 3}}]`},
		{"sync=[{match: '*', scheme: ssp, staleness: 2, cache: true, push: delta}]"},
		{"sync=[{match: '*', scheme: essp, staleness: 2}]"},
		{"sync=[{match: '*', scheme: consgd}]"},
		{"sync=[{match: '*', scheme: consgd}]", "cluster.placement=colocate"},
		{"sync=[{match: '*', scheme: r2sp}]"},
		{"sync=[{match: 'fc1.*', scheme: bsp}, {match: '*', scheme: ssp, staleness: 1}]", "model={name: mlp, layers: [12]}"},
		{"sync=[{match: '*', scheme: drop, contributors: step, required: 1}]"},
	} {
		if rule := strings.Join(set, " "); stationtest.UnderRace && !strings.Contains(rule, "essp") && !strings.Contains(rule, "cache") {
			continue
		}
		t.Run(strings.Join(set, " "), func(t *testing.T) {
			hosts := "aaaabbb"
			if slices.Contains(set, "cluster.placement=colocate") {
				hosts = "aaabb"
			}
			cfg := load(t, append(slices.Clone(set), "cluster.hierarchy=node", "train.stop={epochs: 6}")...)
			got := trainOn(t, hosts, cfg)
			if len(got.Workers) != 5 || got.Committed() < 6*480 {
				t.Errorf("%d ranks compute, %d samples", len(got.Workers), got.Committed())
			}
			if _, share := sidestest.OnTestSet(t, cfg, got.Parameters); share < 0.7 {
				t.Errorf("test accuracy %.3f", share)
			}
		})
	}
}

// A delta is the step of the team: under BSP with plain SGD, the sum of all samples weighs as much as in the flat run.
func TestHierarchyPushesTheDeltaOfTheTeam(t *testing.T) {
	set := []string{"sync=[{match: '*', scheme: bsp, push: delta}]", "train.optimizer={name: sgd, lr: 0.1}"}
	flat := trainOn(t, "aaaabb", load(t, set...))
	node := trainOn(t, "aaaabb", load(t, append(set, "cluster.hierarchy=node")...))
	atMost(t, node.Parameters, flat.Parameters, 1e-5)
}
