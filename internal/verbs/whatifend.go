package verbs

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"fluentps/internal/disk/durable"
	ps "fluentps/internal/rank/runtime"
	"fluentps/internal/show/metrics"
	"fluentps/internal/sim/whatif"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
)

// At the end of a run, what-if is asked only if training took so long, and its simulations are shorter, so that they take about a second.
const (
	whatIfTrainMin  = 10 * time.Second
	whatIfPushesEnd = 20_000
)

// The models are fitted by a simulation of the whole run. That of a run with more pushes takes longer than a user
// would wait at its end. Nobody waits longer than whatIfWait, whatever holds it up: the run is over, and its job
// still has all its nodes.
const (
	whatIfPushesFitted = 3_000_000
	whatIfWait         = 5 * time.Second
)

// coresUsedMax is the share of the hosts' processor time from which on their ranks competed for cores. Then the
// computing times of the run are not those of the ranks alone, and no scheme would be as fast as they tell.
const coresUsedMax = 0.8

// competed says whether the ranks of a run competed for cores: the transport has told that there are more of them
// than cores, and these were busy. It is false where that is unknown. Ranks that a launcher binds have one core each,
// and do not compete.
func competed(dir string) bool {
	var s metrics.Summary
	var info struct {
		Crowded bool
		Cores   int `json:"gomaxprocs"` // of rank 0, as Crowded; the other hosts are taken to be alike
		Ranks   []struct{ Host string }
	}
	for name, into := range map[string]any{metrics.SummaryName: &s, metrics.RunInfoName: &info} {
		data, err := durable.ReadFile(filepath.Join(dir, name), metrics.SummaryMax)
		if err != nil || json.Unmarshal(data, into) != nil {
			return false
		}
	}
	hosts := map[string]bool{}
	for _, r := range info.Ranks {
		hosts[r.Host] = true
	}
	return info.Crowded && s.CPUS != nil && float64(*s.CPUS) > coresUsedMax*float64(info.Cores*len(hosts))*float64(s.TrainS)
}

// whatIf says at the end of a run, on rank 0, what other schemes would have been. The run is over: it says nothing
// where nothing can be told.
func (j *job) whatIf(res *ps.Result) {
	s := res.Summary
	if res.Dir == "" || j.c.Bool("no-what-if") || s == nil || s.Finished != metrics.FinishedOK ||
		float64(s.TrainS) < whatIfTrainMin.Seconds() || s.Baseline != "" || j.set == nil || competed(res.Dir) {
		return
	}
	a, err := j.askWhatIf(res)
	if errors.Is(err, errLater) {
		fmt.Fprintf(j.out, "What if: ask with fluentps what-if %s\n", commandLine([]string{res.Dir}))
		return
	}
	if err != nil || !a.Told() {
		return
	}
	if data, err := json.MarshalIndent(a, "", "  "); err == nil {
		f := metrics.At(res.Dir)
		// best effort, as what follows
		_ = f.Guarded(func() error { return f.CheckStart(res.Start) }).Write(metrics.WhatIfName, append(data, '\n'))
		_ = f.Close()
	}
	fmt.Fprintf(j.out, "What if: %s\n", metrics.Wrap(a.Line(), metrics.TextWidth, 2))
}

// errLater: the answer takes longer than a user would wait for it at the end of a run.
var errLater = errors.New("the answer takes too long")

// askWhatIf asks about the run that has just ended, with the data set that it has in memory. A bug in it must not
// make the run fail, and a file system that does not answer must not keep the job.
func (j *job) askWhatIf(res *ps.Result) (a *whatif.Answer, err error) {
	s := res.Summary
	if s.Iterations*int64(s.Workers)*int64(max(1, len(s.PerShard))) > whatIfPushesFitted {
		return nil, errLater
	}
	ended := make(chan struct{})
	var answer *whatif.Answer
	failed := errors.New("bug in fluentps")
	go func() {
		defer close(ended)
		defer func() { _ = recover() }() // failed stays
		answer, failed = askWhatIf(j.c, res.Dir, nil, whatIfPushesEnd, func(workload.DataSpec) (*dataset.Set, error) { return j.set, nil })
	}()
	select {
	case <-ended:
		return answer, failed
	case <-time.After(whatIfWait):
		return nil, errLater
	}
}
