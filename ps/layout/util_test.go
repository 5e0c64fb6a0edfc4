package layout

import (
	"bytes"
	"sync"
	"testing"

	"fluentps/configs"
	"fluentps/ps/workload"
)

// base is 2 servers and 4 workers on 480 generated rows.
const base = `
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

func load(t testing.TB, set ...string) *configs.Config {
	t.Helper()
	c, _, diags := configs.Parse("test.yaml", []byte(base), configs.Options{Set: set})
	if diags.Failed() {
		var b bytes.Buffer
		_ = diags.Write(&b)
		t.Fatal(b.String())
	}
	return c
}

var (
	cacheMu sync.Mutex
	cache   = map[workload.DataSpec]*workload.Set{}
)

// cached reads each data set once for all tests: sets are read-only.
func cached(spec workload.DataSpec) (*workload.Set, error) {
	cacheMu.Lock()
	defer cacheMu.Unlock()
	if set := cache[spec]; set != nil {
		return set, nil
	}
	set, err := workload.Load(spec)
	if err == nil {
		cache[spec] = set
	}
	return set, err
}
