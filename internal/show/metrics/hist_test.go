package metrics

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func drawHist(t *rapid.T, what string) ([]int64, *Hist) {
	values := rapid.SliceOf(rapid.OneOf(rapid.Int64Range(0, 12), rapid.Int64Range(HistMax-3, HistMax+500))).Draw(t, what)
	h := &Hist{}
	for _, v := range values {
		h.Add(v)
	}
	return values, h
}

// The twin keeps every value and sorts.
func TestHistFollowsSortedValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, h := drawHist(t, "a")
		b, o := drawHist(t, "b")
		h.Merge(o)
		all := append(a, b...)
		slices.Sort(all)
		if h.N() != int64(len(all)) {
			t.Fatalf("N = %d, want %d", h.N(), len(all))
		}
		if len(all) == 0 {
			if h.Mean() != 0 || h.Max() != 0 || h.Quantile(0.5) != 0 {
				t.Fatal("an empty histogram is not all zeros")
			}
			return
		}
		var sum int64
		for _, v := range all {
			sum += v
		}
		if want := float64(sum) / float64(len(all)); h.Mean() != want {
			t.Fatalf("Mean = %v, want %v", h.Mean(), want)
		}
		top := all[len(all)-1]
		if h.Max() != top {
			t.Fatalf("Max = %d, want %d", h.Max(), top)
		}
		q := rapid.Float64Range(0, 1).Draw(t, "q")
		want := all[max(1, int(math.Ceil(q*float64(len(all)))))-1]
		if want >= HistMax {
			want = top
		}
		if got := h.Quantile(q); got != want {
			t.Fatalf("Quantile(%v) = %d, want %d", q, got, want)
		}
		if len(h.counts) > HistMax {
			t.Fatalf("%d counters, limit %d", len(h.counts), HistMax)
		}
	})
}

// A digest has at most DigestMax pairs, the number of values and the maximum of its histogram, and quantiles off by a sixteenth
// at most.
func TestDigestApproximatesTheHistogram(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := &Hist{}
		for range rapid.IntRange(0, 300).Draw(t, "n") {
			h.Add(rapid.Int64Range(0, rapid.SampledFrom([]int64{3, 40, HistMax + 200}).Draw(t, "most")).Draw(t, "v"))
		}
		var d Hist
		pairs, last := 0, int64(-1)
		h.Digest(func(v, times int64) {
			if times < 1 || v < last {
				t.Fatalf("%d times %d after %d", times, v, last)
			}
			d.AddN(v, times)
			pairs, last = pairs+1, v
		})
		if pairs > DigestMax || d.N() != h.N() || d.Max() != h.Max() {
			t.Fatalf("%d pairs of %d values, at most %d; of %d values, at most %d", pairs, d.N(), d.Max(), h.N(), h.Max())
		}
		for _, q := range []float64{0, 0.25, 0.5, 0.9, 0.99} {
			got, want := float64(d.Quantile(q)), float64(h.Quantile(q))
			if math.Abs(got-want) > want/16 {
				t.Fatalf("Quantile(%v) = %v, want about %v", q, got, want)
			}
		}
		h.Reset()
		if h.N() != 0 || h.Max() != 0 || h.Quantile(0.5) != 0 {
			t.Fatalf("%d values after Reset", h.N())
		}
	})
}

func TestHistJSONRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		_, h := drawHist(t, "values")
		data, err := json.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		var back Hist
		if err := json.Unmarshal(data, &back); err != nil {
			t.Fatal(err)
		}
		again, _ := json.Marshal(&back)
		if string(again) != string(data) || back.Mean() != h.Mean() || back.Quantile(0.9) != h.Quantile(0.9) {
			t.Fatalf("%s was read back as %s", data, again)
		}
	})
}

func TestHistJSONIsSparse(t *testing.T) {
	var h Hist
	for _, v := range []int64{0, 0, 3, 1023, 5000} {
		h.Add(v)
	}
	got, err := json.Marshal(&h)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"n":5,"sum":6026,"max":5000,"counts":[[0,2],[3,1],[1023,1]],"over":1}`
	if string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestHistRefusesBadInput(t *testing.T) {
	for _, c := range []struct{ data, want string }{
		{`{"n":2,"counts":[[0,1]]}`, "add up to 1, but n is 2"},
		{`{"n":1,"counts":[[1024,1]]}`, "value 1024 is out of range"},
		{`{"n":1,"counts":[[-1,1]]}`, "value -1 is out of range"},
		{`[]`, "histogram"},
	} {
		h := Hist{}
		h.Add(7)
		if err := json.Unmarshal([]byte(c.data), &h); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want it to contain %q", c.data, err, c.want)
		}
		if h.N() != 1 || h.Max() != 7 {
			t.Errorf("%s: a refused histogram changed the old one", c.data)
		}
	}
	for name, call := range map[string]func(){
		"negative": func() { new(Hist).Add(-1) },
		"quantile": func() { new(Hist).Quantile(math.NaN()) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			call()
		}()
	}
}

func TestHistogramsCSV(t *testing.T) {
	var stale, lead Hist
	for _, v := range []int64{3, 0, 3, HistMax, HistMax + 7} {
		stale.Add(v)
	}
	lead.Add(1)
	s := Summary{PerShard: []ShardSummary{{Shard: 0}, {Shard: 1}}}
	s.PerShard[1].SetHists(&stale, &lead)
	want := "shard,what,value,count\n1,staleness,0,1\n1,staleness,3,2\n1,staleness,1024,2\n1,lead,1,1\n"
	if got := string(s.HistogramsCSV()); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
