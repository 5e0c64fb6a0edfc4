package metrics

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

func spans(wall time.Duration, ms ...int) Spans {
	s := Spans{Wall: wall}
	for i, v := range ms {
		s.Add(Span(i), time.Duration(v)*time.Millisecond)
	}
	return s
}

// sample is a run of mixed schemes in which worker 3 is slow.
func sample() *Summary {
	const wall = 80 * time.Second
	s := &Summary{
		Job:    Job{Name: "fashion-mlp-mixed", Finished: FinishedOK, Mode: "mpi", Servers: 2, Workers: 4},
		Extent: Extent{Iterations: 3850, Samples: 987200},
		Costs: Costs{
			WallS: 85.25, SetupS: 1.5, TrainS: 80, EvalS: 2.5, SamplesPerS: 12340,
			Memory: &Memory{PeakBytesMax: 231 << 20, Rank: 3, Role: "w1", Host: "n2", Processes: 6,
				PeakBytes: []int64{1 << 20, 2, 3, 231 << 20, 5, 6}},
		},
		Quality: Quality{
			TrainLoss: Some(0.30125), TestLoss: Some(0.36), Evaluated: Evaluated{TestAccuracy: Some(0.9012)}, Target: Some(0.9),
			TargetReachedS: Some(81.2),
		},
		Seed:             7,
		ParametersSHA256: strings.Repeat("ab", 32),
		MaxLead:          3,
		Traffic:          Traffic{BytesSent: 5 << 30, BytesReceived: 4 << 20},
		PerShard: []ShardSummary{
			{
				Shard:        0,
				Name:         "fc1.weight",
				Scheme:       "ssp",
				BoundKey:     "staleness",
				Server:       0,
				Bytes:        401408,
				Pushes:       15400,
				Pulls:        15404,
				DelayedPulls: 1540,
				Lags:         Lags{StalenessP50: 3, StalenessP99: 11, StalenessMax: 12},
				WaitedLast:   1000,
			},
			{
				Shard:      1,
				Name:       "fc1.weight",
				Scheme:     "ssp",
				BoundKey:   "staleness",
				Server:     1,
				Bytes:      401408,
				Pushes:     15400,
				Pulls:      15404,
				Lags:       Lags{StalenessP50: 3, StalenessP99: 10, StalenessMax: 12},
				WaitedLast: 950,
				Dropped:    2,
				Duplicates: 1,
			},
			{Shard: 2, Name: "fc3.weight", Scheme: "bsp", BoundKey: "scheme: ssp, staleness", Server: 0, Bytes: 5160,
				Pushes: 15400, Pulls: 15404, DelayedPulls: 15400, WaitedLast: 13450},
		},
		PerRole: map[string]RoleTimes{
			RoleWorker: OverRanks([]Spans{spans(wall, 14000, 2000, 60000, 1000), spans(wall, 76000, 1500, 500, 1000)}),
			RoleServer: OverRanks([]Spans{spans(wall, 0, 500, 0, 700, 9000, 69000), spans(wall, 0, 400, 0, 700, 8000, 70000)}),
		},
		Evaluations: []Evaluation{
			{Samples: 480000, Epoch: 8, AtS: 40.5, Evaluated: Evaluated{TestAccuracy: Some(0.88)}, TestLoss: Some(0.4)},
			{Samples: 960000, Epoch: 16, AtS: 81.2, Evaluated: Evaluated{TestAccuracy: Some(0.9012)}, TestLoss: Some(0.36)},
		},
	}
	s.Conclude()
	for w := range 4 {
		row := WorkerSummary{Worker: w, Rank: w + 2, Host: "node-b", Iterations: 3850, Samples: 246800, ComputeS: 15, BlockedS: 62, MaxLead: 3}
		if w == 3 {
			row.ComputeS, row.BlockedS, row.MaxLead = 75, 0.5, 0
		}
		row.Pace = paced(3850, func(int) float64 { return float64(row.ComputeS) / 3850 })
		s.PerWorker = append(s.PerWorker, row)
	}
	return s
}

func mustJSON(t *testing.T, s *Summary) string {
	t.Helper()
	data, err := s.JSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestSummaryJSON(t *testing.T) {
	golden(t, "summary.json", mustJSON(t, sample()))
	golden(t, "summary_empty.json", mustJSON(t, &Summary{}))
}

// The keys that the contract names must be there even in a run that failed at once.
func TestSummaryKeepsTheContract(t *testing.T) {
	var top map[string]any
	if err := json.Unmarshal([]byte(mustJSON(t, &Summary{})), &top); err != nil {
		t.Fatal(err)
	}
	for _, key := range strings.Fields("finished mode servers workers iterations samples wall_s train_s samples_per_s train_loss" +
		" test_accuracy target_reached_s seed parameters_sha256 per_shard per_role bytes_sent bytes_received max_lead" +
		" eval_s setup_s test_loss name evaluations per_worker") {
		if _, ok := top[key]; !ok {
			t.Errorf("key %s is missing", key)
		}
	}
	for _, key := range []string{"per_shard", "per_worker", "evaluations"} {
		if _, ok := top[key].([]any); !ok {
			t.Errorf("%s is %v, want a list", key, top[key])
		}
	}
	for _, key := range []string{"train_loss", "test_loss", "test_accuracy", "target_reached_s"} {
		if top[key] != nil {
			t.Errorf("%s is %v, want null", key, top[key])
		}
	}
	var full map[string]any
	if err := json.Unmarshal([]byte(mustJSON(t, sample())), &full); err != nil {
		t.Fatal(err)
	}
	shard := full["per_shard"].([]any)[0].(map[string]any)
	for _, key := range strings.Fields("shard scheme server bytes pushes pulls delayed_pulls staleness_p50 staleness_p99" +
		" staleness_max dropped name delayed_s dropped_for lead_p50 lead_p99 lead_max skipped duplicates waited_last " +
		"cached_reads saved_bytes published") {
		if _, ok := shard[key]; !ok {
			t.Errorf("per_shard has no %s", key)
		}
	}
	for _, role := range []string{"worker", "server"} {
		for _, span := range strings.Fields("compute push blocked pull fold idle") {
			times := full["per_role"].(map[string]any)[role].(map[string]any)[span].(map[string]any)
			if len(times) != 3 || times["min"] == nil || times["avg"] == nil || times["max"] == nil {
				t.Errorf("per_role %s %s is %v, want min, avg and max", role, span, times)
			}
		}
	}
}

func TestSummaryOfADivergedRun(t *testing.T) {
	s := sample()
	s.TrainLoss, s.TestLoss = Some(math.NaN()), Some(math.Inf(1))
	s.SamplesPerS = Float(math.Inf(1))
	var back Summary
	if err := json.Unmarshal([]byte(mustJSON(t, s)), &back); err != nil {
		t.Fatal(err)
	}
	if back.TrainLoss != nil || back.TestLoss != nil || !math.IsNaN(float64(back.SamplesPerS)) {
		t.Errorf("train_loss %v, test_loss %v, samples_per_s %v; want null, null, null",
			back.TrainLoss, back.TestLoss, back.SamplesPerS)
	}
	want := s.PerShard[2]
	want.BoundKey = "" // BoundKey is for advice alone, and not in the file
	if back.Seed != 7 || *back.TestAccuracy != 0.9012 || !reflect.DeepEqual(back.PerShard[2], want) {
		t.Errorf("other fields were not read back: %+v", back)
	}
}

func TestSetHists(t *testing.T) {
	var h Hist
	for v := range int64(200) {
		h.Add(v)
	}
	var s ShardSummary
	var lead Hist
	lead.Add(3)
	s.SetHists(&h, &lead)
	if s.LeadMax != 3 || s.LeadP50 != 3 || s.Lead.N() != 1 || s.Staleness.N() != 200 {
		t.Errorf("lead %+v", s)
	}
	if s.StalenessP50 != 99 || s.StalenessP99 != 197 || s.StalenessMax != 199 {
		t.Errorf("p50 %d, p99 %d, max %d; want 99, 197, 199", s.StalenessP50, s.StalenessP99, s.StalenessMax)
	}
}
