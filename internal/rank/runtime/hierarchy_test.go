package runtime

import (
	"errors"
	"fmt"
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
	"fluentps/internal/plan/layout"
	"fluentps/internal/rank/link"
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

// relativeDistance is the distance between two vectors, relative to the second.
func relativeDistance(a, b []float32) float64 {
	var diff, norm float64
	for i := range b {
		d := float64(a[i]) - float64(b[i])
		diff += d * d
		norm += float64(b[i]) * float64(b[i])
	}
	return math.Sqrt(diff / norm)
}

// The law of hierarchy: the result is that of the flat run, within float tolerance, for any number of ranks on each host,
// and to the bit if each host has one rank.
func TestHierarchyEqualsFlat(t *testing.T) {
	for _, c := range []struct {
		hosts string
		teams string
		set   []string
	}{
		{"aaabbb", "[[1 2] [4 5]]", nil},
		{"aaaabb", "[[1 2 3] [5]]", nil},
		{"aaaaaa", "[[2 3 4 5]]", nil},
		{"abcdef", "[[2] [3] [4] [5]]", nil},
		{"ababab", "[[2 4] [3 5]]", nil},
		{"aabb", "[[0 1] [2 3]]", []string{"cluster.placement=colocate"}}, // members serve: host b's second rank does not, host a's leader does
		{"aabb", "[[0 1] [2 3]]", []string{"cluster={placement: colocate, servers: 4}"}},
		{"aaabbb", "[[1 2] [4 5]]",
			[]string{"model={name: mlp, layers: [12, 9]}", "shards={slice: layer, max_bytes: 128B}", "send={order: priority, window: 256B}"}},
		{"aaabbb", "[[1 2] [4 5]]", []string{"train.batch_per_worker=null", "train.batch_global=30"}},
		{"aaabbb", "[[1 2] [4 5]]",
			[]string{"data.partition=disjoint_contiguous", `faults=[{worker: 3, slow: {sleep: 1ms}}, {worker: 0, slow: {sleep: 1ms, from: 9}}]`}},
	} {
		t.Run(c.hosts+" "+strings.Join(c.set, " "), func(t *testing.T) {
			flat := trainOn(t, c.hosts, load(t, c.set...))
			cfg := load(t, append(slices.Clone(c.set), "cluster.hierarchy=node")...)
			node := trainOn(t, c.hosts, cfg)
			roles, err := layout.Roles(cfg, strings.Split(c.hosts, ""))
			if err != nil || fmt.Sprint(roles.Teams) != c.teams {
				t.Fatalf("teams %v, %v, want %s", roles.Teams, err, c.teams)
			}
			a, b := node.Summary, flat.Summary
			if a.Workers != len(roles.Workers) || a.Computing != 4 || a.Hierarchy != "node" || a.Finished != "ok" ||
				a.Iterations != 30 || a.Samples != b.Samples || a.MaxLead != 0 {
				t.Errorf("summary %+v", a)
			}
			if x := relativeDistance(node.Parameters, flat.Parameters); !(x <= 1e-5) {
				t.Errorf("relative difference %.3g, the limit is 1e-5", x)
			}
			if x := math.Abs(float64(*a.TrainLoss - *b.TrainLoss)); !(x <= 1e-5) {
				t.Errorf("train loss %v, flat %v", *a.TrainLoss, *b.TrainLoss)
			}
			if one := len(roles.Workers) == 4; one && a.ParametersSHA256 != b.ParametersSHA256 {
				t.Errorf("one rank a host: sha256 %s, flat %s", a.ParametersSHA256, b.ParametersSHA256)
			}
			if again := trainOn(t, c.hosts, cfg).Summary; again.ParametersSHA256 != a.ParametersSHA256 {
				t.Errorf("sha256 %s, and another time %s", a.ParametersSHA256, again.ParametersSHA256)
			}
		})
	}
}

// If sums are exact, as for the gradients of model synthetic, the bits are those of the flat run.
func TestHierarchyEqualsFlatExactlyForIntegers(t *testing.T) {
	set := []string{"model={name: synthetic, layers: [100, 3000, 7]}", "train.optimizer={name: sgd, lr: 0.0625}",
		"train.stop={updates: 12}", "evaluate.every_epochs=0"}
	flat := trainOn(t, "aaaabb", load(t, set...)).Summary
	node := trainOn(t, "aaaabb", load(t, append(set, "cluster.hierarchy=node")...)).Summary
	if flat.Workers != 4 || node.Workers != 2 || node.ParametersSHA256 != flat.ParametersSHA256 {
		t.Errorf("%d workers, sha256 %s; flat %d, %s", node.Workers, node.ParametersSHA256, flat.Workers, flat.ParametersSHA256)
	}
}

// With two ranks on each of two hosts, half as much crosses the network: parameters, gradients and their headers.
func TestHierarchyHalvesWhatCrossesTheNetwork(t *testing.T) {
	set := []string{"model={name: mlp, layers: [64]}"}
	flat := trainOn(t, "aaabbb", load(t, set...)).Summary
	node := trainOn(t, "aaabbb", load(t, append(set, "cluster.hierarchy=node")...)).Summary
	if *flat.BytesBetween == 0 || 2**node.BytesBetween != *flat.BytesBetween {
		t.Errorf("%d bytes between hosts, flat %d", *node.BytesBetween, *flat.BytesBetween)
	}
	if f := float64(node.BytesSent) / float64(flat.BytesSent); f > 0.65 { // including the messages inside a host
		t.Errorf("%d bytes sent, flat %d", node.BytesSent, flat.BytesSent)
	}
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
}

// Teams are workers like any other under every scheme, also if they push deltas, keep copies, have their link scheduled, or
// if members serve.
func TestHierarchyUnderOtherSchemes(t *testing.T) {
	for _, set := range [][]string{
		{"sync=[{match: '*', scheme: asp}]"},
		{"sync=[{match: '*', scheme: ssp, staleness: 2}]", `faults=[{worker: 1, slow: {factor: 3}}]`},
		{"sync=[{match: '*', scheme: ssp, staleness: 2, cache: true, push: delta}]"},
		{"sync=[{match: '*', scheme: essp, staleness: 2}]"},
		{"sync=[{match: '*', scheme: consgd}]"},
		{"sync=[{match: '*', scheme: consgd}]", "cluster.placement=colocate"},
		{"sync=[{match: '*', scheme: r2sp}]"},
		{"sync=[{match: 'fc1.*', scheme: bsp}, {match: '*', scheme: ssp, staleness: 1}]", "model={name: mlp, layers: [12]}"},
		{"sync=[{match: '*', scheme: drop, contributors: step, required: 1}]"},
	} {
		t.Run(strings.Join(set, " "), func(t *testing.T) {
			hosts := "aaaabbb"
			if slices.Contains(set, "cluster.placement=colocate") {
				hosts = "aaabb"
			}
			s := trainOn(t, hosts,
				load(t, append(slices.Clone(set), "cluster.hierarchy=node", "train.stop={epochs: 6}", "evaluate.every_epochs=3")...)).Summary
			if s.Finished != "ok" || s.Workers != 2 || s.Computing != 5 || s.Samples < 6*480 {
				t.Errorf("summary %+v", s)
			}
			if acc := float64(*s.TestAccuracy); acc < 0.7 {
				t.Errorf("test accuracy %.3f", acc)
			}
		})
	}
}

// A delta is the step of the team: under BSP with plain SGD, the sum of all samples weighs as much as in the flat run.
func TestHierarchyPushesTheDeltaOfTheTeam(t *testing.T) {
	set := []string{"sync=[{match: '*', scheme: bsp, push: delta}]", "train.optimizer={name: sgd, lr: 0.1}"}
	flat := trainOn(t, "aaaabb", load(t, set...))
	node := trainOn(t, "aaaabb", load(t, append(set, "cluster.hierarchy=node")...))
	if x := relativeDistance(node.Parameters, flat.Parameters); !(x <= 1e-5) {
		t.Errorf("relative difference %.3g, the limit is 1e-5", x)
	}
}

// A member starts forward on layer 0 while its leader waits for the parameters of layer 1, which leave the server only
// after the member has launched the first kernel of the iteration.
func TestAMemberStartsForwardBeforeAllParametersAreThere(t *testing.T) {
	cfg := load(t, "cluster={servers: 1, hierarchy: node}", "model={name: mlp, layers: [6]}", "shards.slice=layer",
		"train.stop={updates: 3}", "evaluate.every_epochs=0")
	started := make(chan struct{})
	ts := hosted("abb")
	replies := 0
	ts[0] = delayingSend{ts[0], func(ch comm.Chan, tag uint32) <-chan struct{} {
		if ch != comm.Data || tag != link.TagReply|1 {
			return nil
		}
		if replies++; replies != 2 {
			return nil
		}
		return started
	}}
	res, errs := runOver(t, ts, cfg, func(o *Options) {
		o.Host = "abb"[o.Transport.Rank():][:1]
		o.thresholds.Inline = -1
		if o.Transport.Rank() != 2 {
			return
		}
		products := 0
		o.NewDevice = func() (kernels.Device, error) {
			return watched{cpu.New(1), func(k *kernels.Kernel) {
				if k != kernels.GemmNT {
					return
				}
				if products++; products == 3 {
					close(started)
				}
			}}, nil
		}
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if s := res[0].Summary; replies != 4 || s.Iterations != 3 || float64(s.TrainS) >= waitMax.Seconds() {
		t.Errorf("%d replies, %+v", replies, s)
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

// Ranks with the same host name must share memory.
func TestHierarchyRefusesNamesThatAreNotHosts(t *testing.T) {
	for _, c := range []struct{ memory, names, want string }{
		{"aabb", "aaaa", "rank 2, host a has the name of rank 0's host, but shares memory with rank 2, host a"},
		{"aaaa", "aabb", "rank 2, host b has the name of rank 2's host, but shares memory with rank 0, host a"},
	} {
		res, errs := runOver(t, hosted(c.memory), load(t, "cluster={servers: 1, hierarchy: node}"), func(o *Options) {
			o.Host = c.names[o.Transport.Rank():][:1]
		})
		for i, err := range errs {
			if err == nil || res[i].Code != CodeUsage || !strings.Contains(err.Error(), c.want) {
				t.Errorf("rank %d: code %d, %v; want %q", i, res[i].Code, err, c.want)
			}
		}
	}
	if s := trainOn(t, "aaaa", load(t)).Summary; s.Hierarchy != "" || s.Computing != 0 {
		t.Errorf("without a hierarchy: summary %+v", s)
	}
}
