package runtime

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fluentps/internal/comm"
	"fluentps/internal/comm/inproc"
	"fluentps/internal/configs"
	"fluentps/internal/show/metrics"
	"fluentps/internal/show/metrics/timings"
	"fluentps/kernels"
	"fluentps/kernels/cpu"
)

// hosted makes the ranks of a world on hosts, one letter each: ranks of different hosts share no memory.
func hosted(hosts string) []comm.Transport {
	numbers := make([]int, len(hosts))
	for i := range hosts {
		numbers[i] = int(hosts[i])
	}
	return inproc.New(len(hosts), inproc.Options{Hosts: numbers})
}

// runOnHosts runs a configuration with a rank for each letter of hosts.
func runOnHosts(t testing.TB, hosts string, c *configs.Config, change func(*Options)) ([]Result, []error) {
	t.Helper()
	return runOver(t, hosted(hosts), c, func(o *Options) {
		o.Host = hosts[o.Transport.Rank():][:1]
		if change != nil {
			change(o)
		}
	})
}

func trainOn(t testing.TB, hosts string, c *configs.Config) Result {
	t.Helper()
	res, errs := runOnHosts(t, hosts, c, nil)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return res[0]
}

// The summary lists each member under its worker, and iterations.csv has the times of all ranks that compute.
func TestHierarchyInTheRunFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	res, errs := runOnHosts(t, "aaaabb", load(t, "cluster.hierarchy=node", `faults=[{worker: 1, slow: {sleep: 2ms}}]`), func(o *Options) {
		o.Lead.Folder = &metrics.FolderSpec{Out: dir}
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	s := res[0].Summary
	if len(s.PerWorker) != 2 || len(s.PerWorker[0].Members) != 2 || s.PerWorker[1].Members != nil {
		t.Fatalf("per_worker %+v", s.PerWorker)
	}
	w := s.PerWorker[0]
	if w.Rank != 1 || w.Iterations != 30 || w.Samples != 3*240 || s.PerWorker[1].Samples != 240 {
		t.Errorf("worker %+v", w)
	}
	if m := w.Members[0]; m.Rank != 2 || m.Samples != 240 || m.ComputeS < 0.06 {
		t.Errorf("member %+v, which 2 ms were injected into 30 times", m)
	}
	all, err := timings.Read(filepath.Join(dir, timings.FileName))
	if err != nil || len(all) != 4 {
		t.Fatalf("times of %d ranks, %v", len(all), err)
	}
	for k, of := range all {
		if len(of) != 30 || of[29].Iter != 29 || of[9].Compute <= 0 || (of[9].Injected > 0) != (k == 1) {
			t.Errorf("rank %d of those that compute: %d iterations, the tenth %+v", k, len(of), of[9])
		}
	}
	for k, computed := range []metrics.Float{w.ComputeS, w.Members[0].ComputeS, w.Members[1].ComputeS} {
		sum := 0.0
		for _, it := range all[k] {
			sum += it.Compute.Seconds()
		}
		if math.Abs(sum-float64(computed)) > 1e-6 {
			t.Errorf("rank %d of those that compute: %g s of computing in its rows, %g in the summary", k, sum, float64(computed))
		}
	}
	// At times the leader has no core for longer than its member sleeps.
	if waited := func(it timings.Iteration) bool { return it.Blocked+it.Pull >= time.Millisecond }; !slices.ContainsFunc(all[0], waited) {
		t.Errorf("the leader has never waited for its slow member: %+v", all[0])
	}
	plan, err := os.ReadFile(filepath.Join(dir, "plan.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Roles: 6 ranks, 2 servers, 2 workers", "a  0:s0 1:w0 2:w0.1 3:w0.2", "b  4:s1 5:w1",
		"Hierarchy node: 4 ranks compute for 2 workers", "w0 on a: ranks 1 2 3",
		"between hosts per iteration: 672 B; without hierarchy 1.3 KiB", "each member: 336 B (gradients",
	} {
		if !strings.Contains(string(plan), want) {
			t.Errorf("plan.txt has no %q:\n%s", want, plan)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "summary.txt"))
	if err != nil || !strings.Contains(string(text), "2 workers (hierarchy node: 4 ranks compute)") {
		t.Errorf("summary.txt: %v\n%s", err, text)
	}
	if s := trainOn(t, "aaaa", load(t)).Summary; s.Hierarchy != "" || s.Computing != 0 {
		t.Errorf("without a hierarchy: summary %+v", s)
	}
}

func TestASignalToAMemberEndsTheRun(t *testing.T) {
	stop := make(chan string, 1)
	stop <- "SIGTERM"
	res, errs := runOnHosts(t, "aaabb",
		load(t, "cluster={servers: 1, hierarchy: node}", "train.stop={epochs: 1000000}", "evaluate={every_epochs: 1000}"), func(o *Options) {
			if o.Transport.Rank() == 4 {
				o.Interrupt = stop
			}
		})
	for i := range res {
		if errs[i] != nil || res[i].Code != CodeFailed {
			t.Errorf("rank %d: code %d, %v", i, res[i].Code, errs[i])
		}
	}
	if s := res[0].Summary; s.Finished != "stopped by a signal to rank 4, host b" {
		t.Errorf("finished %q", s.Finished)
	}
}

// watched calls a function before each kernel is launched.
type watched struct {
	kernels.Device
	launch func(k *kernels.Kernel)
}

func (d watched) Launch(k *kernels.Kernel, a kernels.Args) error {
	d.launch(k)
	return d.Device.Launch(k, a)
}

// A member that fails ends the run and gives the reason.
func TestAMemberThatFailsEndsTheRun(t *testing.T) {
	var said lines
	_, errs := runOnHosts(t, "aaabb", load(t, "cluster={servers: 1, hierarchy: node}"), func(o *Options) {
		o.Warn = &said
		if o.Transport.Rank() != 4 {
			return
		}
		launches := 0
		o.NewDevice = func() (kernels.Device, error) {
			return watched{cpu.New(1), func(*kernels.Kernel) {
				if launches++; launches == 20 {
					panic("the device is gone")
				}
			}}, nil
		}
	})
	for i, err := range errs {
		if err == nil {
			t.Errorf("rank %d knows of no failure", i)
		}
	}
	if text := said.String(); !strings.Contains(text, "the device is gone") || !strings.Contains(text, "w1.1") {
		t.Errorf("said %q", text)
	}
}

// Both sides of a wait within a team explain it.
func TestAStallOfATeamIsExplained(t *testing.T) {
	c := load(t, "cluster={servers: 1, hierarchy: node}", "stall={warn: 300ms, abort: 1h}", `faults=[{worker: 3, slow: {sleep: 30s}}]`)
	mustStall(t, "aaabb", c, `worker 1 has waited \d+s to start iteration 1; its member w1\.1, rank 4, host b`,
		`member w0\.1 has waited \d+s after iteration 0 for its leader, rank 1, host a`)
}
