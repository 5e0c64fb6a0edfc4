package work

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A record is read as it was written, to the nanosecond. What stands before an iteration is kept when a run resumes,
// without a line that is not whole.
func TestARecordIsReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		workers := rapid.IntRange(1, 4).Draw(t, "workers")
		text, want := RecordHeader(), Record{}
		var until []int64
		for range rapid.IntRange(1, 5).Draw(t, "plans") {
			a := Assignment{Until: rapid.Int64Range(1, 50).Draw(t, "length")}
			if n := len(until); n > 0 {
				a.Until += until[n-1]
			}
			until = append(until, a.Until)
			var m []Measured
			for range workers {
				a.Batches = append(a.Batches, rapid.IntRange(0, 1000).Draw(t, "batch"))
				m = append(m, Measured{Iterations: rapid.Int64Range(0, 99).Draw(t, "iterations"),
					Samples: rapid.Int64Range(0, 1<<40).Draw(t, "samples"),
					Took:    time.Duration(rapid.Int64Range(0, 1<<52).Draw(t, "took")),
					Median:  time.Duration(rapid.Int64Range(0, 1e12).Draw(t, "median"))})
			}
			want[a.Until] = Recorded{a.Batches, m}
			text = AppendRecord(text, &a, m)
		}
		got, err := ParseRecord(text, workers)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("read %v, %v; wrote %v", got, err, want)
		}
		cut := rapid.SampledFrom(until).Draw(t, "cut")
		kept := RecordBefore(append(bytes.Clone(text), "7,0,1"...), cut)
		for u := range want {
			if u >= cut {
				delete(want, u)
			}
		}
		if len(want) == 0 {
			if !bytes.Equal(kept, RecordHeader()) {
				t.Fatalf("kept %q", kept)
			}
			return
		}
		if got, err = ParseRecord(kept, workers); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("before %d: %v, %v; want %v", cut, got, err, want)
		}
	})
}

func TestRecordsThatAreNoneAreRefused(t *testing.T) {
	head := string(RecordHeader())
	for text, want := range map[string]string{
		"":                           "line 1 is not the header",
		"a,b\n":                      "line 1 is not the header",
		head:                         "no plan that has ended",
		head + "2,0,5,1,5,1.0\n":     "line 2: 6 cells, want 7",
		head + "2,1,5,1,5,1.0,1.0\n": "line 2: worker 1, but the next one of iteration 2 is 0",
		head + "2,0,5,1,5,1.0,1.0\n": "it has 1 workers at iteration 2, but 2 compute",
		head + "2,0,5,-1,5,1.0,1.0\n2,1,5,1,5,1.0,1.0\n":                      `line 2: cell 4 is "-1", want a count`,
		head + "2,0,5,1,5,NaN,1.0\n2,1,5,1,5,1.0,1.0\n":                       `line 2: cell 6 is "NaN", want seconds`,
		head + "2,0,5,1,5,1.0,1e30\n2,1,5,1,5,1.0,1.0\n":                      `line 2: cell 7 is "1e30", want seconds`,
		head + "2,0,5,1,5,1,1\n2,1,5,1,5,1,1\n2,2,5,1,5,1,1\n":                "line 4: worker 2, but",
		head + "99999999999999999999,0,5,1,5,1,1\n2,1,5,1,5,1,1\n2,2,5,1,5,1": "line 2: cell 1",
	} {
		if _, err := ParseRecord([]byte(text), 2); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
