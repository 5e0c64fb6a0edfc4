package sim

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// job is a transfer of a random history.
type job struct {
	at       int64
	from, to int
	bytes    int64
}

// simulated runs a history through the network, and returns when each transfer ends.
func simulated(hosts int, bandwidth int64, jobs []job) []float64 {
	n := newNetwork(hosts, bandwidth)
	ends := make([]float64, len(jobs))
	now, left := int64(0), len(jobs)
	for k := 0; left > 0; {
		n.settle(now)
		at, ok := n.next()
		if k < len(jobs) && (!ok || jobs[k].at <= at) {
			now = jobs[k].at
			for ; k < len(jobs) && jobs[k].at == now; k++ {
				n.start(jobs[k].from, jobs[k].to, jobs[k].bytes, uint64(k), int32(k))
			}
			continue
		}
		now = at
		n.finished(now, func(tag int32) { ends[tag] = float64(now); left-- })
	}
	return ends
}

// plain is the same model in a few lines: at every change it recomputes all rates and advances to the first end.
func plain(hosts int, bandwidth int64, jobs []job) []float64 {
	ends, left := make([]float64, len(jobs)), make([]float64, len(jobs))
	var active []int
	now := 0.0
	for k := 0; k < len(jobs) || len(active) > 0; {
		out, in := make([]int, hosts), make([]int, hosts)
		for _, i := range active {
			out[jobs[i].from]++
			in[jobs[i].to]++
		}
		speed := func(i int) float64 { return float64(bandwidth) / 1e9 / float64(max(out[jobs[i].from], in[jobs[i].to])) }
		until := math.Inf(1)
		for _, i := range active {
			until = min(until, now+left[i]/speed(i))
		}
		start := k < len(jobs) && float64(jobs[k].at) <= until
		if start {
			until = float64(jobs[k].at)
		}
		for _, i := range active {
			left[i] -= (until - now) * speed(i)
		}
		now = until
		active = slices.DeleteFunc(active, func(i int) bool { ends[i] = now; return left[i] < 1e-6 })
		if start {
			left[k] = float64(jobs[k].bytes)
			active = append(active, k)
			k++
		}
	}
	return ends
}

func TestNetworkIsProcessorSharing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hosts := rapid.IntRange(2, 6).Draw(t, "hosts")
		bandwidth := rapid.SampledFrom([]int64{1_000_000, 100_000_000, 12_500_000_000}).Draw(t, "bandwidth")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		burst := rapid.IntRange(1, 20).Draw(t, "burst")
		jobs := make([]job, rapid.IntRange(1, 60).Draw(t, "jobs"))
		at, total := int64(0), int64(0)
		for k := range jobs {
			if k%burst == 0 {
				at += r.Int64N(3_000_000)
			}
			jobs[k] = job{at: at, from: r.IntN(hosts), to: r.IntN(hosts), bytes: r.Int64N(bandwidth/1000) + 1}
			total += jobs[k].bytes
		}
		got, want := simulated(hosts, bandwidth, jobs), plain(hosts, bandwidth, jobs)
		for k := range jobs {
			// Times are whole nanoseconds, and the rounding of one transfer moves the others.
			if math.Abs(got[k]-want[k]) > float64(20*len(jobs)) {
				t.Fatalf("transfer %d %+v ends at %.0f, want %.0f", k, jobs[k], got[k], want[k])
			}
		}
	})
}

// Two transfers in a direction get half of its bandwidth each. When one ends, the other gets all of it.
func TestNetworkByHand(t *testing.T) {
	got := simulated(3, 1_000_000_000, []job{ // 1 byte per ns
		{at: 0, from: 0, to: 1, bytes: 1000},
		{at: 0, from: 0, to: 2, bytes: 500},
		{at: 0, from: 2, to: 0, bytes: 800}, // the other way: full duplex
	})
	if want := []float64{1500, 1000, 800}; !slices.Equal(got, want) {
		t.Errorf("ends at %v, want %v", got, want)
	}
}

func TestQueueGivesEventsByTimeThenAge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := queue{delay: [2]int64{0, 7}}
		now, made := int64(0), int32(0)
		var last event
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			for range rapid.IntRange(0, 3).Draw(t, "new") {
				d := rapid.SampledFrom([]int64{0, 7, 1, 7, 0, 30}).Draw(t, "delay")
				q.after(now, d, evControl, 0, made)
				made++
			}
			e, from := q.first()
			if e == nil {
				continue
			}
			got := q.pop(from)
			if got.before(&last) {
				t.Fatalf("%+v after %+v", got, last)
			}
			last, now = got, got.at
		}
	})
}
