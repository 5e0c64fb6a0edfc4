package coordinate_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fluentps/internal/configs"
	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/plan/layout"
	"fluentps/internal/rank/station"
	"fluentps/internal/show/metrics"
	"fluentps/internal/show/metrics/timings"
)

// recorded trains with a run folder and returns the content of its iterations.csv.
func recorded(t *testing.T, ranks int, warn *lines, set ...string) (*metrics.Summary, [][]timings.Iteration) {
	t.Helper()
	p := &part{config: load(t, set...), ranks: ranks, dir: filepath.Join(t.TempDir(), "out"), warn: warn}
	s := p.must(t).Summary
	all, err := timings.Read(filepath.Join(p.dir, timings.FileName))
	if err != nil {
		t.Fatal(err)
	}
	return s, all
}

// Without a run folder rank 0 has the times, too, if it asks for them, and always the CPU time.
func TestIterationsWithoutAFolder(t *testing.T) {
	for _, wanted := range []bool{false, true} {
		p := &part{config: load(t, "cluster.servers=1"), ranks: 3, iterations: wanted}
		got := p.must(t)
		s := got.Summary
		if s.CPUS == nil || *s.CPUS <= 0 || float64(*s.CPUS) > 1000*float64(s.WallS) {
			t.Errorf("CPU time %v in %v s", s.CPUS, s.WallS)
		}
		if !wanted {
			if got.Iterations != nil {
				t.Error("iterations that nobody asked for")
			}
			continue
		}
		if len(got.Iterations) != s.Workers || p.results[1].Iterations != nil {
			t.Fatalf("times of %d workers of %d; rank 1 has %d", len(got.Iterations), s.Workers, len(p.results[1].Iterations))
		}
		for w, of := range got.Iterations {
			if int64(len(of)) != s.PerWorker[w].Iterations {
				t.Errorf("worker %d: %d times of %d iterations", w, len(of), s.PerWorker[w].Iterations)
			}
		}
	}
}

// The rows of a worker add up to its numbers in the summary.
func TestIterationsAddUpToTheSummary(t *testing.T) {
	const slept = 3 * time.Millisecond
	for name, set := range map[string][]string{
		"spread":               {"cluster.placement=spread"},
		"colocate":             {"cluster.placement=colocate"},
		"layers":               {"cluster.placement=spread", "model={name: mlp, layers: [40, 24]}", "shards.slice=layer"},
		"layers and colocated": {"cluster.placement=colocate", "model={name: mlp, layers: [40, 24]}", "shards.slice=layer"},
	} {
		t.Run(name, func(t *testing.T) {
			s, all := recorded(t, 4, &lines{}, append(set, "cluster.servers=2", "faults=[{worker: 1, slow: {sleep: 3ms}}]")...)
			if len(all) != s.Workers {
				t.Fatalf("%d workers in the file, %d in the run", len(all), s.Workers)
			}
			for w, of := range all {
				sum := s.PerWorker[w]
				var compute, blocked, injected float64
				var samples int64
				next := time.Duration(0)
				for i, it := range of {
					compute += it.Compute.Seconds()
					blocked += it.Blocked.Seconds()
					samples += int64(it.Samples)
					if it.Iter != int64(i) || it.Start < next {
						t.Errorf("worker %d, row %d: iteration %d from %v, before the last one's wait was over (%v)", w, i, it.Iter, it.Start, next)
					}
					next = it.End() + it.Blocked + it.Pull
					injected += it.Injected.Seconds()
					if (it.Injected > 0) != (w == 1) || it.Compute <= it.Injected {
						t.Errorf("worker %d, row %d: %v injected into %v", w, i, it.Injected, it.Compute)
					}
				}
				// A sleep that took too long is recorded as it was, and the next one is shorter.
				if asked := slept.Seconds() * float64(len(of)); w == 1 && (injected < asked || injected == asked) {
					t.Errorf("%g s injected, want the %g that were asked for, and what the clock says beyond", injected, asked)
				}
				if int64(len(of)) != sum.Iterations || math.Abs(compute-float64(sum.ComputeS)) > 1e-6 {
					t.Errorf("worker %d: %d rows with %g s of computing, want %d with %g", w, len(of), compute, sum.Iterations, float64(sum.ComputeS))
				}
				if samples != sum.Samples || samples == 0 {
					t.Errorf("worker %d: rows with %d samples, want %d", w, samples, sum.Samples)
				}
				if blocked > float64(sum.BlockedS)+1e-6 || blocked == 0 {
					t.Errorf("worker %d: rows with %g s blocked; with the wait before the first there were %g", w, blocked, float64(sum.BlockedS))
				}
			}
		})
	}
}

// Records beyond the limit are left out, with a warning.
func TestIterationsStayWithinTheirRoom(t *testing.T) {
	var warn lines
	s, all := recorded(t, 6, &warn, "cluster.memory_max=68MiB", "train.stop={epochs: 40}", "evaluate.every_epochs=0")
	const room = (68<<20 - layout.ProgramBytes) / 256 / timings.IterationBytes
	for w, of := range all {
		if len(of) != room || s.PerWorker[w].Iterations <= room || of[room-1].Iter != room-1 {
			t.Errorf("worker %d: %d rows of %d iterations, want the first %d", w, len(of), s.PerWorker[w].Iterations, room)
		}
	}
	if !strings.Contains(warn.String(), "iterations.csv holds the first iterations of each worker only") ||
		!strings.Contains(warn.String(), "of_each=256") {
		t.Errorf("no warning in %q", warn.String())
	}
}

// finishedIn is how a run has finished, as its folder tells.
func finishedIn(t *testing.T, dir string) string {
	t.Helper()
	var s struct{ Finished string }
	data, err := os.ReadFile(filepath.Join(dir, metrics.SummaryName))
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s.Finished
}

// A file that cannot be written keeps no rank from leaving, and the summary is written; but the run has failed.
func TestIterationsThatCannotBeWritten(t *testing.T) {
	var warn lines
	p := &part{config: load(t), ranks: 6, dir: filepath.Join(t.TempDir(), "out"), warn: &warn}
	p.load = at(1, func() { _ = os.MkdirAll(filepath.Join(p.dir, "."+timings.FileName+".new", "x"), 0o777) })
	p.mustEnd(t, station.CodeFailed)
	if got := finishedIn(t, p.dir); !strings.HasPrefix(got, "failed: iterations.csv: remove ") {
		t.Errorf("finished %q", got)
	}
	if !strings.Contains(warn.String(), "iterations.csv: remove ") {
		t.Errorf("%q does not say what is wrong", warn.String())
	}
}

// Unreadable rows of an earlier part cost a resumed run neither its final checkpoint nor its summary, and are not
// overwritten.
func TestUnreadableRowsOfAnEarlierPart(t *testing.T) {
	for name, text := range map[string]string{"empty": "", "garbage": "\x00\x01garbage\n1,2\n", "another header": "worker,iteration\n0,0\n"} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "out")
			mustRunPart(t, load(t, updates(5)), 6, dir, "")
			path := filepath.Join(dir, timings.FileName)
			if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
			p := &part{config: load(t, updates(9)), ranks: 6, dir: dir, resume: dir}
			if s := p.mustEnd(t, station.CodeFailed).Summary; s == nil || s.Iterations != 9 || s.Resumed.Unrecorded != 4*5 {
				t.Errorf("summary %+v", s)
			}
			if got := finishedIn(t, dir); !strings.HasPrefix(got, "failed: iterations.csv: line 1 is not the header") ||
				!strings.Contains(got, "remove the file") {
				t.Errorf("finished %q", got)
			}
			if m, err := checkpoint.Open(filepath.Join(dir, checkpoint.Folder, "000000000002")); err != nil || m.Iteration != 9 {
				t.Errorf("the checkpoint of the end: %+v, %v", m, err)
			}
			if got, err := os.ReadFile(path); err != nil || string(got) != text {
				t.Errorf("the file is now %q, %v", got, err)
			}
		})
	}
}

// A resumed run has no more rows of a worker than one that was never interrupted: the readers refuse more.
func TestRowsAreBoundedOverAllParts(t *testing.T) {
	const most = 200
	dir := filepath.Join(t.TempDir(), "out")
	to := func(updates int) *configs.Config {
		c := load(t, fmt.Sprintf("train.stop={updates: %d}", updates), "evaluate.every_epochs=0")
		c.Cluster.MemoryMax = layout.ProgramBytes + most*256*timings.IterationBytes
		return c
	}
	mustRunPart(t, to(150), 6, dir, "")
	mustRunPart(t, to(300), 6, dir, dir)
	all, err := timings.Read(filepath.Join(dir, timings.FileName))
	if err != nil {
		t.Fatal(err)
	}
	for w, of := range all {
		if len(of) != most || of[most-1].Iter != most-1 {
			t.Errorf("worker %d has %d rows, the last of iteration %d, want %d", w, len(of), of[len(of)-1].Iter, most)
		}
	}
}
