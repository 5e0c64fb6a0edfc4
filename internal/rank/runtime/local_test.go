package runtime

import (
	"math"
	"testing"
)

// Every loss is finite, and each policy learns.
func TestLocalPoliciesLearn(t *testing.T) {
	learns(t)
	for _, policy := range []string{"averaging", "hpsgd", "post_local", "diloco", "streaming_diloco", "slowmo", "bmuf",
		"async_local", "easgd"} {
		set := []string{"local={policy: " + policy + ", steps: 8}", "train.stop={samples: 15360}"}
		if policy == "async_local" {
			set = append(set, `sync=[{match: "*", scheme: asp}]`)
		}
		s := mustTrain(t, load(t,
			append([]string{"cluster.servers=2", "model={name: mlp, layers: [16]}", "train.optimizer={name: sgd, lr: 0.1}"}, set...)...), 6).Summary
		if s.TestAccuracy == nil || !(*s.TestAccuracy > 0.5) || math.IsNaN(float64(*s.TrainLoss)) {
			t.Errorf("%s: accuracy %v, loss %v", policy, s.TestAccuracy, s.TrainLoss)
		}
	}
}

// hostSet are the settings of runs with teams: server 0 on a host of its own, then two hosts of two ranks.
var hostSet = []string{"train.stop.samples=3840", "train.stop.updates=null", "cluster.servers=1",
	"cluster.placement=pack", "cluster.hierarchy=node", "model={name: mlp, layers: [16]}", "train.optimizer={name: sgd, lr: 0.1}"}

// Every policy learns with teams, also those that take steps while an exchange is in flight.
func TestPoliciesWithTeams(t *testing.T) {
	for _, policy := range []string{"averaging", "hpsgd", "diloco", "streaming_diloco", "slowmo", "easgd", "post_local"} {
		set := append(hostSet, "train.stop.samples=15360", "local={policy: "+policy+", steps: 8, host_steps: 2}")
		s := trainOn(t, "abbccc", load(t, set...)).Summary
		if s.TestAccuracy == nil || !(*s.TestAccuracy > 0.5) {
			t.Errorf("%s: accuracy %v", policy, s.TestAccuracy)
		}
	}
}
