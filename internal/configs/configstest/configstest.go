// Package configstest gives the tests of several packages one small run to change: its configuration, and data that are read
// once. It also has a run for tests of steps that workers take of their own.
package configstest

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	"fluentps/internal/configs"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
)

// Base trains softmax on generated data: 4 workers, 2 servers, 30 iterations.
const Base = `
name: test
seed: 11
cluster: {servers: 2}
data: {set: generated, rows: 480, test_rows: 200, features: 20, classes: 4}
model: {name: softmax}
train:
  batch_per_worker: 8
  optimizer: {name: momentum, lr: 0.1, momentum: 0.9}
  stop: {updates: 30}
evaluate: {every_epochs: 1, where: after}
sync:
  - {match: "*", scheme: bsp}
`

// Load is Base with some values set, as by --set.
func Load(t testing.TB, set ...string) *configs.Config {
	t.Helper()
	c, _, diags := configs.Parse("test.yaml", []byte(Base), configs.Options{Set: set})
	if diags.Failed() {
		var b bytes.Buffer
		_ = diags.Write(&b)
		t.Fatal(b.String())
	}
	return c
}

// LocalSteps is a run over 960 rows in steps of 16 samples a worker, whose workers may take steps of their own. local and stop are the keys
// of these sections, and rule those of the only rule beside match.
func LocalSteps(t testing.TB, local, stop, rule string) (*configs.Config, *configs.Origins) {
	t.Helper()
	c, o, ds := configs.Parse("a.yaml", fmt.Appendf(nil, `name: a
data: {set: generated, rows: 960}
model: {name: mlp, layers: [8]}
train: {batch_per_worker: 16, optimizer: {lr: 1}, schedule: {name: step, every: 60}, stop: {%s}}
local: {%s}
sync: [{match: '*', %s}]
`, stop, local, rule), configs.Options{})
	if ds.Failed() {
		t.Fatal(ds)
	}
	return c, o
}

var (
	mu   sync.Mutex
	sets = map[workload.DataSpec]*dataset.Set{}
)

// Data reads each data set once for all tests of a package: sets are read-only.
func Data(spec workload.DataSpec) (*dataset.Set, error) {
	mu.Lock()
	defer mu.Unlock()
	if set := sets[spec]; set != nil {
		return set, nil
	}
	set, err := dataset.Load(spec)
	if err == nil {
		sets[spec] = set
	}
	return set, err
}

// Params are the parameters of a model for such samples, in model order.
func Params(t testing.TB, spec workload.ModelSpec, from workload.Samples) []workload.Param {
	t.Helper()
	a, err := workload.NewArchitecture(spec, from)
	if err != nil {
		t.Fatal(err)
	}
	return a.Params()
}
