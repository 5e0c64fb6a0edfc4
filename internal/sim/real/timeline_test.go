package real

import (
	"bytes"
	"testing"

	"fluentps/internal/show/timeline"
	"fluentps/internal/show/timeline/timelinetest"
	"fluentps/internal/sim/check"
)

// A simulated run has a timeline of the same form, the same one with the same seed, and recording changes nothing in the run.
func TestTimelineInVirtualTime(t *testing.T) {
	const text = `
name: t
cluster: {servers: 2}
data: {set: generated, rows: 1000, features: 64, classes: 10}
model: {name: mlp, layers: [64, 32]}
train: {batch_per_worker: 10, optimizer: {name: sgd, lr: 0.1}, stop: {updates: 30}}
evaluate: {every_epochs: 0}
faults: [{worker: 1, slow: {factor: 3}}]
simulate: {workers: 4, compute: 5ms}
`
	for _, set := range [][]string{nil, {"sync=[{match: '*', scheme: asp}]"}, {"sync=[{match: '*', scheme: essp, staleness: 2}]"},
		{"local={policy: averaging, steps: 4}"},
		{"work={policy: flexrr}", "sync=[{match: '*', scheme: ssp, staleness: 1}]"}, {"cluster.placement=colocate"}} {
		var files [2]bytes.Buffer
		var hashes [3]uint64
		for i := range 3 {
			o := optionsOf(t, text, set...)
			o.Timeline = i < 2
			res, err := check.Run(o.Options)
			if err != nil {
				t.Fatal(err)
			}
			hashes[i] = res.Trace
			if !o.Timeline {
				continue
			}
			about := make([]timeline.About, len(res.Timeline))
			for rank := range about {
				about[rank] = timeline.About{Role: res.Roles[rank], Clock: timeline.Clock{Aligned: true}}
			}
			if err := timeline.Write(&files[i], "t", res.Timeline, about); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(files[0].Bytes(), files[1].Bytes()) || hashes[0] != hashes[2] {
			t.Errorf("%q: two timelines of one run differ, or recording changes the run", set)
		}
		trace, err := timelinetest.Parse(files[0].Bytes())
		if err != nil {
			t.Fatalf("%q: %v", set, err)
		}
		if f := trace.Figures(); f.Pushes == 0 || f.Whole == 0 || f.Loose > 0 || set == nil && (f.Overlapped == 0 || f.Whole != f.Pushes) {
			t.Errorf("%q: %+v", set, f)
		}
	}
}
