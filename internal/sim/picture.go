package sim

import (
	"fmt"
	"strings"
	"time"

	"fluentps/internal/configs"
	"fluentps/internal/core/shard"
	"fluentps/ps/scheme"
)

const (
	timelineWorkers = 4
	timelineStep    = 10 * time.Millisecond // one column
	timelineColumns = 72
	timelineText    = `name: timeline
cluster: {servers: 1}
data: {set: generated}
model: {name: softmax}
train: {batch_per_worker: 1, optimizer: {name: sgd, lr: 0.1}, stop: {time: 1h}}
sync: [{match: "*", scheme: %s}]
faults: [{worker: 3, slow: {factor: 3}}, {worker: "*", slow: {kind: normal, factor: 1.42857, spread: 0.33333}}] # 30 ms on average
simulate: {workers: 4, compute: 21ms, network: {bandwidth: 0B, latency: 0s}, server: {fold: 0B, commit: 0B}}
`
)

// Timeline draws the effect of a scheme with its defaults on 4 workers, of which the last is 3 times slower. There is one row per
// worker and one column per 10 ms of virtual time: the last digit of the iteration that is computed, or a dot if the worker waits.
// Where the scheme's own terms refuse such a run, it says why.
func Timeline(e scheme.Entry) (string, error) {
	set := []string{fmt.Sprintf("train.stop.time=%s", timelineColumns*timelineStep)}
	if e.WorkPolicy() != "" {
		set = append(set, "work.policy="+e.WorkPolicy())
	}
	cfg, _, ds := configs.Parse("timeline", fmt.Appendf(nil, timelineText, e.Name), configs.Options{Set: set})
	if cfg == nil {
		why := ds.Errors()[0]
		return fmt.Sprintf("not simulated: the run that would be drawn has %d workers, worker 3 is 3 times slower, and %s: %s\n",
			timelineWorkers, why.Path, why.Msg), nil
	}
	plan, err := shard.Cut([]shard.Param{{Name: "w", N: 1}},
		shard.Options{Slice: cfg.Shards.Slice, MaxBytes: cfg.Shards.MaxBytes, Servers: 1, Rules: []string{"*"}})
	if err != nil {
		return "", err
	}
	rows := make([][]byte, timelineWorkers)
	for w := range rows {
		rows[w] = []byte(strings.Repeat(".", timelineColumns))
	}
	_, err = Run(Options{Config: cfg, Plan: plan, Rows: 1, Computed: func(worker int, iter int64, from, until time.Duration) {
		for at := from; at < until; at += timelineStep {
			if c := int(at / timelineStep); c < timelineColumns {
				rows[worker][c] = byte('0' + iter%10)
			}
		}
	}})
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "simulated: %d workers, worker 3 is 3 times slower; a column is %v, a digit the iteration in "+
		"progress, a dot a wait\n", timelineWorkers, timelineStep)
	for w, row := range rows {
		fmt.Fprintf(&b, "  w%d |%s|\n", w, row)
	}
	return b.String(), nil
}
