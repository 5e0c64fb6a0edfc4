package runtime

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"fluentps/internal/configs"
	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/plan/layout"
	"fluentps/internal/show/metrics"
	"fluentps/internal/show/metrics/timings"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
)

// recorded trains with a run folder and returns the content of its iterations.csv.
func recorded(t *testing.T, ranks int, warn *lines, set ...string) (*metrics.Summary, [][]timings.Iteration) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "out")
	res, errs := world(t, load(t, set...), ranks, func(o *Options) {
		o.Warn = warn
		if o.Transport.Rank() == 0 {
			o.Lead.Folder = &metrics.FolderSpec{Out: dir}
		}
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	all, err := timings.Read(filepath.Join(dir, timings.FileName))
	if err != nil {
		t.Fatal(err)
	}
	return res[0].Summary, all
}

// Without a run folder rank 0 has the times, too, if it asks for them, and always the CPU time.
func TestIterationsWithoutAFolder(t *testing.T) {
	for _, wanted := range []bool{false, true} {
		res, errs := world(t, load(t, "cluster.servers=1"), 3, func(o *Options) { o.Iterations = wanted })
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		s := res[0].Summary
		if s.CPUS == nil || *s.CPUS <= 0 || float64(*s.CPUS) > 1000*float64(s.WallS) {
			t.Errorf("CPU time %v in %v s", s.CPUS, s.WallS)
		}
		if !wanted {
			if res[0].Iterations != nil {
				t.Error("iterations that nobody asked for")
			}
			continue
		}
		if len(res[0].Iterations) != s.Workers || res[1].Iterations != nil {
			t.Fatalf("times of %d workers of %d; rank 1 has %d", len(res[0].Iterations), s.Workers, len(res[1].Iterations))
		}
		for w, of := range res[0].Iterations {
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

// blockingIterations makes a folder in the place of the file, as soon as a rank trains.
type blockingIterations struct {
	dataset.Table
	once *sync.Once
	dir  string
}

func (s blockingIterations) Fill(x []float32, y []int32, rows []int32) {
	s.once.Do(func() { _ = os.MkdirAll(filepath.Join(s.dir, "."+timings.FileName+".new", "x"), 0o777) })
	s.Table.Fill(x, y, rows)
}

// A file that cannot be written keeps no rank from leaving, and the summary is written; but the run has failed.
func TestIterationsThatCannotBeWritten(t *testing.T) {
	dir, once := filepath.Join(t.TempDir(), "out"), &sync.Once{}
	var warn lines
	res, errs := world(t, load(t), 6, func(o *Options) {
		o.Warn = &warn
		o.Load = func(spec workload.DataSpec) (*dataset.Set, error) {
			set, err := cached(spec)
			if err != nil {
				return nil, err
			}
			spoilt := *set
			spoilt.Train = blockingIterations{set.Train, once, dir}
			return &spoilt, nil
		}
		if o.Transport.Rank() == 0 {
			o.Lead.Folder = &metrics.FolderSpec{Out: dir}
		}
	})
	for i := range res {
		if errs[i] != nil || res[i].Code != CodeFailed {
			t.Errorf("rank %d: code %d, %v", i, res[i].Code, errs[i])
		}
	}
	if got := finishedIn(t, dir); !strings.HasPrefix(got, "failed: iterations.csv: remove ") {
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
			mustRunPart(t, load(t, "train.stop={updates: 5}"), 6, dir, "")
			path := filepath.Join(dir, timings.FileName)
			if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
			res, errs := runPart(t, load(t, "train.stop={updates: 9}"), 6, dir, dir, nil)
			if s := mustAgree(t, CodeFailed, res, errs).Summary; s == nil || s.Iterations != 9 || s.Resumed.Unrecorded != 4*5 {
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
