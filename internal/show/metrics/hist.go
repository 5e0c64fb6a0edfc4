package metrics

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"fluentps/internal/show/metrics/records"
)

// HistMax bounds a Hist: values below it are counted exactly, all others share one bucket.
const HistMax = 1024

// Hist counts small integers, such as staleness (versions) and lead (iterations). Its zero value is empty and ready. It has at
// most HistMax counters, and belongs to one goroutine at a time.
type Hist struct {
	counts []int64 // counts[v] is how often v was added; grows to the largest value below HistMax
	over   int64   // how many values were HistMax or more
	n, sum int64   // of all values, so N and Mean stay exact past HistMax
	max    int64
}

// Add counts v once. A negative v panics.
func (h *Hist) Add(v int64) { h.AddN(v, 1) }

// AddN counts v so many times. A negative v or count panics.
func (h *Hist) AddN(v, times int64) {
	if v < 0 || times < 0 {
		panic(fmt.Sprintf("metrics: negative value or count, %d times %d, in a histogram", times, v))
	}
	if times == 0 {
		return
	}
	h.n += times
	h.sum += v * times
	h.max = max(h.max, v)
	if v >= HistMax {
		h.over += times
		return
	}
	h.grow(int(v) + 1)
	h.counts[v] += times
}

// Reset empties h and keeps its memory.
func (h *Hist) Reset() { *h = Hist{counts: h.counts[:0]} }

// DigestMax is the most pairs that a digest has.
const DigestMax = digestExact + 8*6 + 2

// A digest keeps the values below digestExact exactly.
const digestExact = 16

// Digest calls pair for at most DigestMax values with their counts, which approximate the histogram. The largest value and the
// values below digestExact are exact. Others are off by at most a sixteenth.
func (h *Hist) Digest(pair func(v, times int64)) {
	times := int64(0) // count of the pending pair
	last := int64(-1) // rounded value of the pending pair
	flush := func() {
		if times > 0 {
			pair(last, times)
		}
		times = 0
	}
	for v, c := range h.counts {
		if int64(v) == h.max {
			c--
		}
		if c <= 0 {
			continue
		}
		if r := min(rounded(int64(v)), h.max); r != last {
			flush()
			last = r
		}
		times += c
	}
	flush()
	if over := h.over - int64(b2i(h.max >= HistMax)); over > 0 {
		pair(HistMax, over)
	}
	if h.n > 0 {
		pair(h.max, 1)
	}
}

// rounded is the middle of the values that have the same four leading bits as v.
func rounded(v int64) int64 {
	if v < digestExact {
		return v
	}
	step := int64(1)
	for v/step >= digestExact {
		step *= 2
	}
	return v/step*step + step/2
}

func (h *Hist) grow(n int) {
	for len(h.counts) < n {
		h.counts = append(h.counts, 0)
	}
}

// Merge adds all values of o.
func (h *Hist) Merge(o *Hist) {
	h.grow(len(o.counts))
	for v, c := range o.counts {
		h.counts[v] += c
	}
	h.over += o.over
	h.n += o.n
	h.sum += o.sum
	h.max = max(h.max, o.max)
}

// N is the number of values added.
func (h *Hist) N() int64 { return h.n }

// Max is the largest value added, exact past HistMax too; 0 when empty.
func (h *Hist) Max() int64 { return h.max }

// Mean is the mean of all values; 0 when empty.
func (h *Hist) Mean() float64 {
	if h.n == 0 {
		return 0
	}
	return float64(h.sum) / float64(h.n)
}

// Quantile is the smallest value that at least q*N values do not exceed (nearest rank); 0 when empty. A quantile of HistMax or
// more is returned as Max. A q outside 0..1 panics.
func (h *Hist) Quantile(q float64) int64 {
	if !(q >= 0 && q <= 1) {
		panic(fmt.Sprintf("metrics: quantile %v is not in 0..1", q))
	}
	rank := max(1, int64(math.Ceil(q*float64(h.n))))
	var seen int64
	for v, c := range h.counts {
		if seen += c; seen >= rank {
			return int64(v)
		}
	}
	return h.max
}

// histJSON is sparse: Counts has [value, count] pairs of the values that occurred, in increasing order.
type histJSON struct {
	N      int64      `json:"n"`
	Sum    int64      `json:"sum"`
	Max    int64      `json:"max"`
	Counts [][2]int64 `json:"counts"`
	Over   int64      `json:"over"` // values of HistMax or more
}

// MarshalJSON writes everything that Merge needs. Ranks send their histograms to rank 0 in this form.
func (h *Hist) MarshalJSON() ([]byte, error) {
	j := histJSON{N: h.n, Sum: h.sum, Max: h.max, Counts: [][2]int64{}, Over: h.over}
	for v, c := range h.counts {
		if c > 0 {
			j.Counts = append(j.Counts, [2]int64{int64(v), c})
		}
	}
	return json.Marshal(j)
}

// UnmarshalJSON replaces h. Counts that do not add up to n, and values out of range, are errors.
func (h *Hist) UnmarshalJSON(data []byte) error {
	var j histJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return fmt.Errorf("metrics: histogram: %w", err)
	}
	out := Hist{over: j.Over, n: j.N, sum: j.Sum, max: j.Max}
	total := j.Over
	for _, p := range j.Counts {
		if p[0] < 0 || p[0] >= HistMax || p[1] < 0 {
			return fmt.Errorf("metrics: histogram: count %d of value %d is out of range; values are 0 to %d", p[1], p[0], HistMax-1)
		}
		out.grow(int(p[0]) + 1)
		out.counts[p[0]] += p[1]
		total += p[1]
	}
	if total != j.N {
		return fmt.Errorf("metrics: histogram: counts add up to %d, but n is %d", total, j.N)
	}
	*h = out
	return nil
}

// StalenessOf summarizes a histogram of staleness.
func StalenessOf(h *Hist) records.Staleness {
	return records.Staleness{Pushes: h.N(), P50: h.Quantile(0.5), P99: h.Quantile(0.99), Max: h.Max()}
}

// HistogramsCSV is the text of histograms.csv: how often each staleness (in versions, of folded pushes) and each lead (c - v in
// iterations, of answered pulls) occurred in each shard. Each value that occurred has a row. Values of HistMax or more share the
// row of HistMax.
func (s *Summary) HistogramsCSV() []byte {
	var b strings.Builder
	b.WriteString("shard,what,value,count\n")
	for _, sh := range s.PerShard {
		for _, h := range []struct {
			what string
			*Hist
		}{{"staleness", sh.Staleness}, {"lead", sh.Lead}} {
			if h.Hist == nil {
				continue
			}
			for v, n := range h.counts {
				if n > 0 {
					fmt.Fprintf(&b, "%d,%s,%d,%d\n", sh.Shard, h.what, v, n)
				}
			}
			if h.over > 0 {
				fmt.Fprintf(&b, "%d,%s,%d,%d\n", sh.Shard, h.what, HistMax, h.over)
			}
		}
	}
	return []byte(b.String())
}
