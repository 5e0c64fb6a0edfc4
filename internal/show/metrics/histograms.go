package metrics

import (
	"fmt"
	"strings"
)

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
