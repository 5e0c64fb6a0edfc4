package allreduce

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"fluentps/internal/comm"
	"fluentps/internal/comm/sums"
	"fluentps/internal/core/shard"
	"fluentps/internal/plan/layout"
	"fluentps/internal/rank/link"
	"fluentps/internal/show/metrics"
)

// trialBytes is the longest vector that the algorithms are tried on before training: 70 ms over 200 Mbit/s for the best of them.
const trialBytes = 1 << 20

// trialRounds are the sums of a trial. The first opens connections; the last counts.
const trialRounds = 2

// algorithm is one way to add up gradients.
type algorithm struct {
	name    string
	reducer comm.Reducer
	own     *sums.Reducer // the reducer, if its memory is ours; else nil
}

// openSums makes the algorithms that the configuration allows. Ranks of one host use the transport's: no network is between them.
func (a *AllReduce) openSums(transports comm.Reducer) error {
	r := a.station
	own := layout.Apart(r.Hosts)
	wanted := r.Config.BaselineAlgorithm
	if wanted == "mpi" || wanted == "auto" {
		a.algorithms = append(a.algorithms, algorithm{name: "mpi", reducer: transports})
	}
	for i, name := range sums.Algorithms() {
		if name != wanted && (wanted != "auto" || !own) {
			continue
		}
		s, err := sums.New(r.Transport, name, link.TagSum|uint32(i))
		if err != nil {
			return err
		}
		a.algorithms = append(a.algorithms, algorithm{name, s, s})
	}
	a.use(a.algorithms[0])
	return nil
}

func (a *AllReduce) use(chosen algorithm) { a.reducer, a.Algorithm = chosen.reducer, chosen.name }

// Choose tries the algorithms, if there are several, and uses the fastest. Every rank calls it before training; all choose the same.
func (a *AllReduce) Choose() error {
	if len(a.algorithms) < 2 {
		return nil
	}
	took := make([]time.Duration, len(a.algorithms))
	for i, alg := range a.algorithms {
		var err error
		if took[i], err = a.try(alg.reducer); err != nil {
			return fmt.Errorf("allreduce: trial of %s: %w", alg.name, err)
		}
	}
	all, err := link.Gather(a.station.Net, took)
	if err != nil {
		return err
	}
	for _, other := range all { // on rank 0: an algorithm is as slow as its slowest rank
		for i := range took {
			took[i] = max(took[i], other[i])
		}
	}
	if err := link.Spread(a.station.Net, &took); err != nil {
		return err
	}
	best := a.algorithms[slices.Index(took, slices.Min(took))]
	if a.observer != nil {
		var times []string
		for i, alg := range a.algorithms {
			times = append(times, fmt.Sprint(alg.name, " ", took[i].Round(10*time.Microsecond)))
		}
		a.station.Log.Info("all-reduce: chose "+best.name+", the fastest; baseline.algorithm sets one", "bytes",
			metrics.Size(int64(a.trialElements())*shard.ElemBytes), "times", strings.Join(times, ", "))
	}
	others := slices.DeleteFunc(slices.Clone(a.algorithms), func(other algorithm) bool { return other.name == best.name })
	closeAll(others)
	a.algorithms = []algorithm{best}
	a.use(best)
	return nil
}

func (a *AllReduce) trialElements() int {
	return min(trialBytes/shard.ElemBytes, a.grads.Len()/shard.ElemBytes)
}

// try adds up gradients before any were computed: zeros, which stay zeros.
func (a *AllReduce) try(reducer comm.Reducer) (took time.Duration, err error) {
	for range trialRounds {
		if err := a.station.Transport.Barrier(); err != nil {
			return 0, err
		}
		began, open := a.station.Transport.Now(), true
		reducer.Iallreduce(a.grads, 0, a.trialElements()*shard.ElemBytes, func(d comm.Done) {
			open = false
			a.station.Net.Fail(d.Err)
		})
		if err := a.station.Net.Drive(func() bool { return !open }); err != nil {
			return 0, err
		}
		took = a.station.Transport.Now() - began
	}
	return took, nil
}

// Close frees the memory of the algorithms. No sum may be in flight.
func (a *AllReduce) Close() {
	closeAll(a.algorithms)
	a.algorithms = nil
}

func closeAll(list []algorithm) {
	for _, alg := range list {
		if alg.own != nil {
			alg.own.Close()
		}
	}
}
