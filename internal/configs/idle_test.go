package configs

import (
	"testing"

	"fluentps/internal/configs/idle"
	"fluentps/internal/configs/settings"
)

// What is known of the ranks is warned of where it is known, with its place, and once.
func TestIdleWithFactsGolden(t *testing.T) {
	const src = `name: facts
cluster: {servers: 5}
data: {set: idx, path: somewhere}
model: {name: mlp, layers: [8, 8]}
train: {batch_per_worker: 64, optimizer: {lr: 0.1}, stop: {samples: 640, updates: 9000}}
device: {kind: cuda}
sync:
  - {match: "fc1.*", scheme: drop, required: 4}
  - {match: "fc2.*", scheme: ssp, staleness: 4}
  - {match: "fc9.*", scheme: ssp, staleness: 2}
  - {match: "*", schemes: [{scheme: bsp, until: {epochs: 4}}, {scheme: softsync, q: 9, until: {epochs: 6}}, {scheme: asp}]}
`
	c, o, ds := Parse("facts.yaml", []byte(src), Options{})
	text := "parsed\n" + written(t, ds)
	for _, f := range []struct {
		name  string
		facts settings.Facts
	}{
		{"3 workers of 100 rows", settings.Facts{Workers: 3, Computes: 3, Servers: 5, Rows: 100}},
		{"1 worker of 6 ranks", settings.Facts{Workers: 1, Computes: 1, Servers: 5, Rows: 60000}},
		{"2 teams of 3", settings.Facts{Workers: 2, Computes: 6, Servers: 5, Rows: 60000}},
		{"a binary without CUDA", settings.Facts{NoGPU: "this binary is built without CUDA: make build CUDA=1"}},
	} {
		more := idle.More(c, o, f.facts)
		sane(t, more)
		text += f.name + "\n" + written(t, more)
	}
	golden(t, "testdata/idle-facts.yaml", []byte(text))
}
