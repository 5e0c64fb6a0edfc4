package allreduce

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"fluentps/comm"
	"fluentps/comm/sums"
	"fluentps/ps/link"
	"fluentps/ps/metrics"
	"fluentps/ps/shard"
)

// trialBytes is the longest vector that the algorithms are tried on before training: 70 ms over 200 Mbit/s for the best of them.
const trialBytes = 1 << 20

// trialRounds are the sums of a trial. The first opens connections; the last counts.
const trialRounds = 2

// algorithm is one way to add up gradients.
type algorithm struct {
	name    string
	reducer comm.Reducer
}

// openSums makes the algorithms that the configuration allows. Ranks of one host use the transport's: no network is between them.
func (a *AllReduce) openSums(transports comm.Reducer) error {
	r := a.station
	own := slices.ContainsFunc(r.Hosts, func(h string) bool { return h != r.Hosts[0] })
	wanted := r.Config.BaselineAlgorithm
	if wanted == "mpi" || wanted == "auto" {
		a.algorithms = append(a.algorithms, algorithm{"mpi", transports})
	}
	for i, name := range sums.Algorithms() {
		if name != wanted && (wanted != "auto" || !own) {
			continue
		}
		s, err := sums.New(r.Transport, name, link.TagSum|uint32(i))
		if err != nil {
			return err
		}
		a.opened = append(a.opened, s)
		a.algorithms = append(a.algorithms, algorithm{name, s})
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
	best := slices.Index(took, slices.Min(took))
	a.use(a.algorithms[best])
	if a.observer != nil {
		order := slices.Clone(a.algorithms)
		times := map[string]time.Duration{}
		for i, alg := range a.algorithms {
			times[alg.name] = took[i]
		}
		slices.SortFunc(order, func(x, y algorithm) int { return cmp.Compare(times[x.name], times[y.name]) })
		text := ""
		for _, alg := range order {
			text += fmt.Sprintf(" %s %s", alg.name, times[alg.name].Round(10*time.Microsecond))
		}
		a.station.Log.Info("all-reduce: the fastest algorithm was chosen; baseline.algorithm sets one", "bytes", metrics.Size(int64(a.trialElements())*shard.ElemBytes), "times", text[1:])
	}
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
	for _, s := range a.opened {
		s.Close()
	}
	a.opened = nil
}
