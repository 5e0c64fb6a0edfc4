package resume

import (
	"testing"

	"fluentps/internal/configs/configstest"
	"fluentps/internal/core/shard"
	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/disk/durable"
	"fluentps/internal/rank/station"
	"fluentps/internal/rank/train"
)

// The residuals of all workers of the checkpoint are in those of the workers that resume, whatever their number.
func TestNoResidualIsLostAmongOtherWorkers(t *testing.T) {
	dir := t.TempDir()
	m := &checkpoint.Manifest{Workers: 5, Starts: []int64{0, 1, 2, 3, 4}, Config: map[string]string{"payload.push": "topk"}}
	cfg, plan := configstest.Load(t), &shard.Plan{Arena: 2}
	for j := range m.Workers {
		e, err := checkpoint.WriteFile(durable.Below(dir), checkpoint.WorkerFile(j),
			train.State{Next: int64(j), Residual: true, Steps: int64(10 + j)},
			[]float32{float32(int(1) << j), 0}, []float32{float32(j), 9})
		if err != nil {
			t.Fatal(err)
		}
		m.Files = append(m.Files, e)
	}
	for now := 1; now <= 8; now++ {
		r := &Search{station: &station.Station{Config: cfg, Plan: plan, Roles: shard.Roles{Workers: make([]int, now)}}}
		var sum float32
		for w := range now {
			q := &Origin{Dir: dir, Manifest: m}
			if err := r.readWorker(q, w); err != nil {
				t.Fatal(err)
			}
			if len(q.WorkerVectors) != 2 || q.WorkerVectors[1][0] != float32(w%5) || q.Worker.Steps != int64(10+w%5) {
				t.Fatalf("worker %d of %d: %v, %+v", w, now, q.WorkerVectors, q.Worker)
			}
			sum += q.WorkerVectors[0][0]
		}
		if sum != 31 {
			t.Errorf("%d workers have residuals of %v, want 31", now, sum)
		}
	}
}
