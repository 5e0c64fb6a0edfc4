package coordinate

import (
	"reflect"
	"runtime"
	"strings"
	"testing"

	"fluentps/internal/configs/configstest"
	"fluentps/internal/core/shard"
	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/rank/resume"
	"fluentps/internal/rank/station"
	"fluentps/internal/show/metrics"
)

// The checkpoint that a run resumed from is still there if the run was stopped before it made progress.
func TestReasonForNoCheckpoint(t *testing.T) {
	c := configstest.Load(t)
	from := &resume.Origin{State: resume.LeadState{Version: 10}}
	for _, l := range []struct {
		Lead
		want string
	}{
		{Lead{r: &Run{}, checkpoints: checkpoints{final: "checkpoints/000000000001"}, counts: counts{version: 11}}, ""},
		{Lead{r: &Run{station: &station.Station{Config: c}, Folder: &metrics.RunFolder{}, Search: &resume.Search{},
			From: from}, station: &station.Station{Config: c}, counts: counts{version: 10}}, ""},
		{Lead{r: &Run{station: &station.Station{Config: c}, Folder: &metrics.RunFolder{}, Search: &resume.Search{},
			From: from}, station: &station.Station{Config: c}, counts: counts{version: 11}}, "it could not be written"},
		{Lead{r: &Run{station: &station.Station{Config: c}, Folder: &metrics.RunFolder{}, Search: &resume.Search{}},
			station: &station.Station{Config: c}, counts: counts{version: 10}, end: end{diverged: true}}, "the parameters have diverged"},
	} {
		if got := l.noCheckpointReason(); got != l.want {
			t.Errorf("version %d: %q, want %q", l.counts.version, got, l.want)
		}
	}
}

// A message that names the newest checkpoint must name one that stays.
func TestTheNewestCheckpointIsNoReplica(t *testing.T) {
	for _, dirs := range [][]string{nil, {"out/checkpoints/000000000007"}} {
		l := &Lead{r: &Run{Search: &resume.Search{Adopted: "start", Candidates: dirs}}}
		l.resume(&resume.Origin{Dir: "/dev/shm/fluentps-0-start/3", Manifest: &checkpoint.Manifest{}})
		if want := strings.Join(dirs, ""); l.checkpoints.newest != want {
			t.Errorf("the newest is %q, want %q", l.checkpoints.newest, want)
		}
	}
}

// Goroutines of one process report the same time, which counts once; processes add up, also those with equal numbers on two
// hosts.
func TestCPUTimeOfProcesses(t *testing.T) {
	r := &Run{station: &station.Station{Hosts: []string{"a", "a", "b", "a"}}, PIDs: []int{7, 7, 7, 8}}
	reports := []report{{CPU: 4}, {CPU: 5}, {CPU: 20}, {CPU: 100}}
	if got := r.cpuTime(reports); got != 125 {
		t.Errorf("%d, want 5 + 20 + 100", got)
	}
}

// The peak is that of one process; a rank that does not know its own leaves all unknown. This process knows its own:
// at least what it has touched.
func TestMemoryOfProcesses(t *testing.T) {
	r := &Run{station: &station.Station{Hosts: []string{"a", "a", "b", "a"},
		Roles: shard.Roles{Servers: []int{0}, Workers: []int{1, 2, 3}}}, PIDs: []int{7, 7, 7, 8}}
	reports := []report{{Peak: 4}, {Peak: 4}, {Peak: 9}, {Peak: 9}}
	want := &metrics.Memory{PeakBytesMax: 9, Rank: 2, Role: "w1", Host: "b", Processes: 3, PeakBytes: []int64{4, 4, 9, 9}}
	if got := r.memory(reports); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	reports[3].Peak = 0
	if got := r.memory(reports); got != nil {
		t.Errorf("%+v without the peak of a rank", got)
	}
	touched := make([]byte, 64<<20)
	for i := 0; i < len(touched); i += 4096 {
		touched[i] = 1
	}
	if peak := processPeak(); peak < int64(len(touched)) {
		t.Errorf("a peak of %d bytes, after %d were touched", peak, len(touched))
	}
	runtime.KeepAlive(touched)
}

func TestWarningAboutDifferentKernels(t *testing.T) {
	const a, b = "oneDNN 3.1.0 avx512, own avx512", "oneDNN 3.1.0 avx2, own avx2"
	on := func(sets ...string) (units []UnitReport) {
		for _, s := range sets {
			u := UnitReport{KernelSet: s}
			if strings.HasPrefix(s, "cuda") {
				u.ID = "GPU-1"
			}
			units = append(units, u)
		}
		return units
	}
	weak := on(a, a, a, a)
	for _, i := range []int{0, 1, 3} {
		weak[i].Weak = "too slow"
	}
	for _, c := range []struct {
		what  string
		units []UnitReport
		want  string
	}{
		{"all the same", on(a, a, a), ""},
		{"GPUs beside processors, which have another warning", on(a, "cuda, X, gemm own"), ""},
		{"two kinds of hosts", on(a, a, b, a, b), "ranks compute with different kernels: " + a + " (ranks 0-1, 3), " + b +
			" (ranks 2, 4); the last bits of results depend on the rank that computes them; " +
			"for the same bits everywhere have the same library on all hosts, and export FLUENTPS_KERNELS_ISA=avx2, say, to all ranks"},
		{"below the hardware", weak, "ranks 0-1, 3: too slow"},
		{"one of them", weak[2:], "rank 1: too slow"},
	} {
		if got := strings.Join(kernelWarnings(c.units), "\n"); got != c.want {
			t.Errorf("%s:\n%q\nwant\n%q", c.what, got, c.want)
		}
	}
}

// It matters which rank has which set. A checkpoint without sets never counts as equal.
func TestSetsOfACheckpoint(t *testing.T) {
	a, b := UnitReport{KernelSet: "a"}, UnitReport{KernelSet: "b"}
	for _, c := range []struct {
		units []UnitReport
		want  string
	}{{[]UnitReport{a, a}, "a"}, {[]UnitReport{a, a, b}, "a (ranks 0-1), b (rank 2)"}, {[]UnitReport{a, b, a}, "a (ranks 0, 2), b (rank 1)"}} {
		if got := strings.Join(kernelSets(c.units), ", "); got != c.want {
			t.Errorf("%v: %s, want %s", c.units, got, c.want)
		}
	}
	if got := otherKernels(setsOf(&checkpoint.Manifest{}), []string{"a"}); !strings.HasPrefix(got,
		"the checkpoint was computed with kernels that an earlier version did not tell, this run computes with a:") {
		t.Errorf("a checkpoint without sets: %q", got)
	}
}

func TestUnitWarnings(t *testing.T) {
	hosts := []string{"a", "a", "a", "b"}
	for _, c := range []struct {
		units []UnitReport
		want  string
	}{
		{[]UnitReport{{}, {Name: "cpu", ID: ""}, {Name: "cpu", ID: ""}, {Name: "cpu", ID: ""}}, ""},
		{[]UnitReport{{}, {Name: "gpu", ID: "1"}, {Name: "gpu", ID: "2"}, {Name: "gpu", ID: "1"}}, ""},
		{[]UnitReport{{}, {Name: "gpu", ID: "1"}, {Name: "cpu", ID: ""}, {Name: "gpu", ID: "1"}},
			"2 ranks compute on GPUs and 1 rank computes on CPUs: results differ in the last bits, and speeds by far"},
		{[]UnitReport{{Name: "gpu", ID: "1"}, {Name: "gpu", ID: "2"}, {Name: "gpu", ID: "1"}, {Name: "gpu", ID: "1"}},
			"host a: 3 ranks compute on 2 GPUs: they take turns, so their computing times depend on each other; start as " +
				"many workers as GPUs, or MPS"},
	} {
		if got := strings.Join(unitWarnings(c.units, hosts), "\n"); got != c.want {
			t.Errorf("%v: %q, want %q", c.units, got, c.want)
		}
	}
}

func TestWarningAboutOtherKernelsOfACheckpoint(t *testing.T) {
	for _, c := range []struct{ before, now, want string }{
		{"a", "a", ""},
		{"a", "b", "computed with a, this run computes with b: it resumes from the same parameters, but its results will " +
			"differ in the last bits"},
		{"a+b", "a", "computed with a and b, this run computes with a"},
	} {
		split := func(s string) []string { return strings.FieldsFunc(s, func(r rune) bool { return r == '+' }) }
		if got := otherKernels(split(c.before), split(c.now)); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%q, then %q: %q, want %q", c.before, c.now, got, c.want)
		}
	}
}
