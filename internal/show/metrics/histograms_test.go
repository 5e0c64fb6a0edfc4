package metrics

import "testing"

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
