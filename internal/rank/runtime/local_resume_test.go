package runtime

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fluentps/internal/configs"
	"fluentps/internal/disk/checkpoint"
)

// localPolicies are runs under bsp whose workers take a fixed number of steps of their own between two exchanges, or one that follows from
// the run alone: with them equal seeds give equal bits.
var localPolicies = map[string][]string{
	"averaging": {"local={policy: averaging, steps: 3}"},
	"averaging, adam": {"local={policy: averaging, steps: 3}",
		"train.optimizer={name: adam, lr: 0.01, weight_decay: 0.01}", "shards.max_bytes=64B", "send={order: priority}"},
	"averaging, topk":    {"local={policy: averaging, steps: 2}", "payload={push: topk, ratio: 0.1}"},
	"averaging, adacomm": {"local={policy: averaging, steps: 9, period: {name: adacomm, interval: 3}}"},
	"averaging, qsr": {"local={policy: averaging, steps: 2, period: {name: qsr, alpha: 0.05}}",
		"train.schedule={name: cosine, over: 60, floor: 0.1, warm_up: 4}", "train.stop.samples=1000000"},
	"averaging, nesterov": {"local={policy: averaging, steps: 3, outer: {name: nesterov, lr: 0.7, momentum: 0.5}}",
		"send={overlap: false}", "cluster.shared_memory=off"},
	"post_local":          {"local={policy: post_local, steps: 3, switch: 13}"},
	"post_local, adacomm": {"local={policy: post_local, steps: 6, switch: 9, period: {name: adacomm, interval: 2}}"},
	"diloco":              {"local={policy: diloco, steps: 4}", "train.optimizer={name: adam, lr: 0.01}"},
	"slowmo":              {"local={policy: slowmo, steps: 3}", "train.schedule={name: step, every: 30, factor: 0.5, warm_up: 4}"},
	"bmuf":                {"local={policy: bmuf, steps: 3, outer: {momentum: 0.3}}"},
	"hpsgd":               {"local={policy: hpsgd, steps: 3}"},
	"hpsgd, adam": {"local={policy: hpsgd, steps: 2, compensate: 0.04}",
		"train.optimizer={name: adam, lr: 0.01}", "shards.max_bytes=64B"},
	"hpsgd, topk": {"local={policy: hpsgd, steps: 2}", "payload={push: topk, ratio: 0.2}"},
	"easgd":       {"local={policy: easgd, steps: 3, pull: 0.1}"},
	"easgd, messages": {"local={policy: easgd, steps: 3, pull: 0.1}", "cluster.shared_memory=off",
		"train.optimizer={name: momentum, lr: 0.05}"},
	"streaming":           {"local={policy: streaming_diloco, steps: 8, fragments: 4, delay: 1, keep: 0.25}"},
	"streaming, no delay": {"local={policy: streaming_diloco, steps: 6, fragments: 3, delay: 0}", "train.optimizer={name: adam, lr: 0.01}"},
	"streaming, all delay": {"local={policy: streaming_diloco, steps: 6, fragments: 2, delay: 3, keep: 0.5}",
		"payload={push: topk, ratio: 0.2}"},
	"streaming, one":      {"local={policy: streaming_diloco, steps: 3, fragments: 1, delay: 2}"},
	"streaming, colocate": {"local={policy: streaming_diloco, steps: 6, fragments: 3, delay: 1}", "cluster.placement=colocate"},
	"averaging, colocate": {"local={policy: averaging, steps: 3}", "cluster.placement=colocate"},
	"hpsgd, colocate":     {"local={policy: hpsgd, steps: 3}", "cluster.placement=colocate"},
}

// localRanks is the number of ranks of such a run with 4 workers.
func localRanks(name string) int {
	if strings.HasSuffix(name, "colocate") {
		return 4
	}
	return 6
}

// toUpdates is the configuration of such a run up to a version of the lead shard.
func toUpdates(t *testing.T, n int64, set ...string) *configs.Config {
	t.Helper()
	return load(t, append([]string{"model={name: mlp, layers: [16, 8, 8]}", "shards.slice=layer",
		"train.optimizer={name: momentum, lr: 0.05}", "evaluate.every_epochs=0", updates(n), "cluster.servers=2"}, set...)...)
}

// A run whose workers take steps of their own ends with the bits and counts of a run that was never interrupted, if it is stopped and
// resumed, also in the middle of a round and of the turns of fragments, and if it was killed after any of its checkpoints.
func TestRoundsResumeBitEqual(t *testing.T) {
	for name, set := range localPolicies {
		if underRace && !strings.HasPrefix(name, "hpsgd") && !strings.HasPrefix(name, "streaming") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := localRanks(name)
			const end = 30
			straight := mustTrain(t, toUpdates(t, end, set...), n)
			want := straight.Summary
			same := func(got Result, from string) {
				t.Helper()
				if s := got.Summary; s.ParametersSHA256 != want.ParametersSHA256 || s.Samples != want.Samples ||
					*s.TrainLoss != *want.TrainLoss || s.Resumed == nil {
					t.Errorf("%s: sha256 %.12s of %d samples, loss %v, relative difference %.3g; want %.12s of %d, loss %v", from,
						s.ParametersSHA256, s.Samples, *s.TrainLoss, relativeDistance(got.Parameters, straight.Parameters),
						want.ParametersSHA256, want.Samples, *want.TrainLoss)
				}
			}
			dir := filepath.Join(t.TempDir(), "out")
			mustRunPart(t, toUpdates(t, 7, set...), n, dir, "")
			mustRunPart(t, toUpdates(t, 12, set...), n, dir, dir)
			same(mustRunPart(t, toUpdates(t, end, set...), n, dir, dir), "stopped twice")

			dir = filepath.Join(t.TempDir(), "out")
			often := append([]string{"checkpoint={every_updates: 4, keep: 1000}"}, set...)
			interrupted(t, toUpdates(t, end, append(often, "train.stop={time: 1h, samples: 1000000}")...), n, dir, 3)
			dirs, err := checkpoint.List(filepath.Join(dir, checkpoint.Folder))
			if err != nil || len(dirs) < 4 {
				t.Fatalf("%d checkpoints, %v", len(dirs), err)
			}
			first, err := checkpoint.Open(dirs[len(dirs)-1])
			if err != nil {
				t.Fatal(err)
			}
			last, err := checkpoint.Open(dirs[0])
			if err != nil {
				t.Fatal(err)
			}
			straight = mustTrain(t, toUpdates(t, last.Iteration+9, set...), n)
			want = straight.Summary
			for _, d := range []string{dirs[0], dirs[len(dirs)-1]} {
				copied := filepath.Join(t.TempDir(), "out")
				if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
					t.Fatal(err)
				}
				from := filepath.Base(d)
				same(mustRunPart(t, toUpdates(t, last.Iteration+9, often...), n, copied,
					filepath.Join(copied, checkpoint.Folder, from)), fmt.Sprintf("from %s of %d, the first at %d", from, len(dirs), first.Iteration))
			}
		})
	}
}

// relativeDistance is the distance between two vectors, relative to the second.
func relativeDistance(a, b []float32) float64 {
	var diff, norm float64
	for i := range b {
		d := float64(a[i]) - float64(b[i])
		diff += d * d
		norm += float64(b[i]) * float64(b[i])
	}
	return math.Sqrt(diff / norm)
}
