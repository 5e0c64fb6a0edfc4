package runtime

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"fluentps/internal/comm"
	"fluentps/internal/configs"
	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/rank/resume"
	"fluentps/internal/show/metrics"
)

// memories are the memory file systems of hosts, by letter.
type memories struct {
	t    *testing.T
	root string
}

func (m memories) of(host string) string {
	dir := filepath.Join(m.root, host)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		m.t.Fatal(err)
	}
	return dir
}

// files lists the files in the memory of a host, without the names of starts.
func (m memories) files(host string) (names []string) {
	all, err := filepath.Glob(filepath.Join(m.of(host), "*", "*", "*"))
	if err != nil {
		m.t.Fatal(err)
	}
	for _, path := range all {
		names = append(names, filepath.Join(filepath.Base(filepath.Dir(path)), filepath.Base(path)))
	}
	return names
}

// hostsWithManifest lists the hosts that have the manifest of a version from that number on.
func (m memories) hostsWithManifest(number int) (hosts []string) {
	all, err := filepath.Glob(filepath.Join(m.root, "*", "*", "*", "manifest.json"))
	if err != nil {
		m.t.Error(err)
	}
	for _, path := range all {
		dir := filepath.Dir(path)
		host := filepath.Base(filepath.Dir(filepath.Dir(dir)))
		if v, err := strconv.Atoi(filepath.Base(dir)); err == nil && v >= number && !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// newestOnAllHosts is the newest checkpoint in dirs, newest first, of which all hosts have the manifest.
func (m memories) newestOnAllHosts(t *testing.T, dirs []string, hosts string) *checkpoint.Manifest {
	t.Helper()
	want := len(slices.Compact(slices.Sorted(slices.Values(strings.Split(hosts, "")))))
	for _, dir := range dirs {
		c, err := checkpoint.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(m.hostsWithManifest(int(c.Number))) == want {
			return c
		}
	}
	t.Fatal("no checkpoint is on all hosts")
	return nil
}

// runUntilAborted runs the first part of a run, and aborts it, as the death of a rank does, when so many checkpoints are
// written.
func runUntilAborted(t *testing.T, hosts string, c *configs.Config, dir string, number int, m memories, warn io.Writer) {
	t.Helper()
	ts := hosted(hosts)
	over := make(chan struct{})
	want := len(slices.Compact(slices.Sorted(slices.Values(strings.Split(hosts, "")))))
	go func() {
		defer ts[len(ts)-1].Abort(CodeFailed)
		for {
			dirs, err := checkpoint.List(filepath.Join(dir, checkpoint.Folder))
			if err != nil || len(dirs) >= number && len(m.hostsWithManifest(number)) == want {
				return
			}
			select {
			case <-over:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	_, errs := runPartOnHosts(t, ts, hosts, c, dir, "", m, warn)
	close(over)
	waitForWriters(t)
	var aborted *comm.AbortError
	if err := errors.Join(errs...); !errors.As(err, &aborted) {
		t.Fatalf("not aborted: %v", err)
	}
}

// waitForWriters waits for the goroutines that write files; in a real abort the process ends them.
func waitForWriters(t *testing.T) {
	t.Helper()
	stacks := make([]byte, 1<<20)
	for {
		text := string(stacks[:goruntime.Stack(stacks, true)])
		if !strings.Contains(text, "fluentps/internal/rank/coordinate.") { // only the writers can be left: the ranks have returned
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func runPartOnHosts(t *testing.T, ts []comm.Transport, hosts string, c *configs.Config, dir, resume string,
	m memories, warn io.Writer) ([]Result, []error) {
	return runOver(t, ts, c, func(o *Options) {
		o.Host = hosts[o.Transport.Rank():][:1]
		o.Memory, o.Resume = m.of(o.Host), resume
		if warn != nil {
			o.Warn = warn
		}
		if o.Transport.Rank() == 0 {
			o.Lead.Folder = &metrics.FolderSpec{Out: dir}
		}
	})
}

// A run whose checkpoints on disk are gone resumes from the memory of its hosts to the same bits, also without one of the
// hosts, and on other ranks. At the end nothing is left in memory.
func TestReplicasAreGoneOnFrom(t *testing.T) {
	for name, q := range map[string]struct {
		hosts, again, lost string
		set                []string
	}{
		"lost host": {hosts: "aabbcc", again: "aabbdd", lost: "c"},
		"residual": {hosts: "aabbcc", again: "aaddcc", lost: "b",
			set: []string{"payload={push: topk, ratio: 0.1}", "model={name: mlp, layers: [16]}"}},
		"colocate": {hosts: "abcd",
			set: []string{"cluster.placement=colocate", "train.optimizer={name: adam, lr: 0.01}", "shards.max_bytes=64B"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := memories{t, t.TempDir()}
			to := func(stop string) *configs.Config {
				return load(t, append([]string{"train.stop=" + stop, "evaluate.every_epochs=0",
					"checkpoint={every_updates: 20, keep: 1000, replica: 1}"}, q.set...)...)
			}
			dir := filepath.Join(t.TempDir(), "out")
			runUntilAborted(t, q.hosts, to("{time: 1h}"), dir, 2, m, nil)
			dirs, err := checkpoint.List(filepath.Join(dir, checkpoint.Folder))
			if err != nil {
				t.Fatal(err)
			}
			newest, err := checkpoint.Open(dirs[0])
			if err != nil {
				t.Fatal(err)
			}
			last := m.newestOnAllHosts(t, dirs, q.hosts) // the newest one may have come to the disk in the moment of the abort, and not to the hosts
			if err := os.RemoveAll(filepath.Join(dir, checkpoint.Folder)); err != nil {
				t.Fatal(err)
			}
			if q.lost != "" {
				if err := os.RemoveAll(m.of(q.lost)); err != nil {
					t.Fatal(err)
				}
			}
			again := q.again
			if again == "" {
				again = q.hosts
			}
			stop := fmt.Sprintf("{updates: %d}", newest.Iteration+50)
			ts := hosted(again)
			res, errs := runOver(t, ts, to(stop), func(o *Options) {
				o.Host = again[o.Transport.Rank():][:1]
				o.Memory, o.Resume = m.of(o.Host), resume.Auto
				if o.Transport.Rank() == 0 {
					o.Lead.Folder = &metrics.FolderSpec{Out: dir}
				}
			})
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			got := res[0].Summary
			if got.Resumed == nil || got.Resumed.Iteration < last.Iteration || !strings.HasPrefix(got.Resumed.Checkpoint, m.root) {
				t.Fatalf("resumed %+v, the last checkpoint on all hosts is of iteration %d", got.Resumed, last.Iteration)
			}
			if want := mustTrain(t, to(stop), len(q.hosts)).Summary; got.ParametersSHA256 != want.ParametersSHA256 ||
				got.Samples != want.Samples {
				t.Errorf("sha256 %s after %d samples, want %s after %d", got.ParametersSHA256, got.Samples, want.ParametersSHA256, want.Samples)
			}
			for _, host := range "abcd" {
				if list := m.files(string(host)); len(list) > 0 {
					t.Errorf("host %c still has %v", host, list)
				}
			}
		})
	}
}

// Whenever a job dies, it resumes from memory or from the run folder or begins again, and ends with the same bits.
func TestReplicasOfARunThatDiesAtRandomMoments(t *testing.T) {
	const hosts = "aabbc"
	m := memories{t, t.TempDir()}
	to := func(stop string) *configs.Config {
		return load(t, "train.stop="+stop, "evaluate.every_epochs=0", "checkpoint={every_updates: 10, keep: 2, replica: 1}")
	}
	dir := filepath.Join(t.TempDir(), "out")
	random := rand.New(rand.NewPCG(1, 2))
	fromMemory := 0
	for n := range 8 {
		ts, begun := hosted(hosts), time.Now()
		wait := time.Duration(random.IntN(60)) * time.Millisecond
		ended := make(chan struct{})
		go func() {
			defer ts[n%len(ts)].Abort(CodeFailed)
			for n%2 == 1 { // after the next manifest
				all, _ := filepath.Glob(filepath.Join(m.root, "*", "*", "*", "manifest.json"))
				if slices.ContainsFunc(all, func(path string) bool { info, err := os.Stat(path); return err == nil && info.ModTime().After(begun) }) {
					break
				}
				time.Sleep(time.Millisecond)
			}
			time.Sleep(wait)
			close(ended)
		}()
		var said lines
		_, errs := runOver(t, ts, to("{time: 1h}"), func(o *Options) {
			o.Host = hosts[o.Transport.Rank():][:1]
			o.Memory, o.Resume, o.Warn = m.of(o.Host), resume.Auto, &said
			if o.Transport.Rank() == 0 {
				o.Lead.Folder, o.Lead.Out = &metrics.FolderSpec{Out: dir}, &said
			}
		})
		<-ended
		waitForWriters(t)
		var aborted *comm.AbortError
		if err := errors.Join(errs...); !errors.As(err, &aborted) {
			t.Fatalf("start %d: not aborted: %v", n, err)
		}
		if strings.Contains(said.String(), "resume: ") {
			t.Errorf("start %d:\n%s", n, said.String())
		}
		if strings.Contains(said.String(), "Resumed: "+m.root) {
			fromMemory++
		}
		if err := os.RemoveAll(filepath.Join(dir, checkpoint.Folder)); err != nil {
			t.Fatal(err)
		}
	}
	if fromMemory < 3 {
		t.Errorf("%d starts resumed from memory, and 3 could", fromMemory)
	}
	var last int64
	for _, host := range "abc" {
		all, err := filepath.Glob(filepath.Join(m.of(string(host)), "*", "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range all {
			if q, err := checkpoint.Open(path); err == nil {
				last = max(last, q.Iteration)
			}
		}
	}
	stop := fmt.Sprintf("{updates: %d}", last+30)
	res, errs := runPartOnHosts(t, hosted(hosts), hosts, to(stop), dir, resume.Auto, m, nil)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if want := mustTrain(t, to(stop), len(hosts)).Summary; res[0].Summary.ParametersSHA256 != want.ParametersSHA256 {
		t.Errorf("sha256 %s, want %s", res[0].Summary.ParametersSHA256, want.ParametersSHA256)
	}
	for _, host := range "abc" {
		if list := m.files(string(host)); len(list) > 0 {
			t.Errorf("host %c still has %v", host, list)
		}
	}
}

// replicasOf runs until there are replicas, and aborts. It returns the settings to resume with, and the folder.
func replicasOf(t *testing.T, hosts string, m memories) (to func(string) *configs.Config, dir string) {
	to = func(stop string) *configs.Config {
		return load(t, "train.stop="+stop, "evaluate.every_epochs=0", "checkpoint={every_updates: 20, keep: 1000, replica: 1}")
	}
	dir = filepath.Join(t.TempDir(), "out")
	runUntilAborted(t, hosts, to("{time: 1h}"), dir, 2, m, nil)
	return to, dir
}

// resumedAt resumes, and returns the checkpoint that it resumed from, and the log.
func resumedAt(t *testing.T, hosts string, c *configs.Config, dir string, m memories) (from, said string) {
	t.Helper()
	var warn lines
	res, errs := runPartOnHosts(t, hosted(hosts), hosts, c, dir, resume.Auto, m, &warn)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if r := res[0].Summary.Resumed; r != nil {
		from = r.Checkpoint
	}
	return from, warn.String()
}

// A run that resumes from memory and trains no further writes that checkpoint to its folder.
func TestAResumedReplicaIsWrittenAtTheEnd(t *testing.T) {
	const hosts = "aabb"
	m := memories{t, t.TempDir()}
	to, dir := replicasOf(t, hosts, m)
	if err := os.RemoveAll(filepath.Join(dir, checkpoint.Folder)); err != nil {
		t.Fatal(err)
	}
	from, _ := resumedAt(t, hosts, to("{updates: 1}"), dir, m)
	dirs, err := checkpoint.List(filepath.Join(dir, checkpoint.Folder))
	if err != nil || len(dirs) != 1 || !strings.HasPrefix(from, m.root) {
		t.Fatalf("from %s: checkpoints %v, %v", from, dirs, err)
	}
	if q, err := checkpoint.Open(dirs[0]); err != nil || q.Iteration < 40 {
		t.Errorf("%+v, %v", q, err)
	}
	if a, b := m.files("a"), m.files("b"); len(a)+len(b) > 0 {
		t.Errorf("memory still has %v and %v", a, b)
	}
}

// A version that a host has no memory for is given up on all hosts; the run continues, and the next version is complete.
func TestAHostWithoutRoomCostsAReplicaAndNoMore(t *testing.T) {
	const hosts = "aabb"
	m := memories{t, t.TempDir()}
	c := load(t, "train.stop={time: 1h}", "evaluate.every_epochs=0", "checkpoint={every_updates: 20, keep: 1000, replica: 1}")
	dir := filepath.Join(t.TempDir(), "out")
	go func() {
		for { // a file takes the place of the folder
			if all, _ := filepath.Glob(filepath.Join(m.of("b"), "fluentps-*")); len(all) > 0 {
				if err := os.WriteFile(filepath.Join(all[0], "2"), nil, 0o600); err != nil {
					t.Error(err)
				}
				return
			}
			time.Sleep(100 * time.Microsecond)
		}
	}()
	var said lines
	runUntilAborted(t, hosts, c, dir, 3, m, &said)
	if n := strings.Count(said.String(), "no replica of this checkpoint"); n == 0 {
		t.Errorf("nobody said that there is no replica of the second one:\n%s", said.String())
	}
	for _, host := range []string{"a", "b"} {
		if list := m.files(host); slices.ContainsFunc(list, func(name string) bool { return strings.HasPrefix(name, "2/") }) {
			t.Errorf("host %s still has %v", host, list)
		}
	}
}

// A run without memory for replicas warns, and trains without them.
func TestARunWithoutMemoryForReplicasTrains(t *testing.T) {
	m := memories{t, t.TempDir()}
	if err := os.WriteFile(filepath.Join(m.root, "none"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := load(t, "train.stop={time: 1h}", "checkpoint={every_updates: 10, replica: 1}")
	var said lines
	dir := filepath.Join(t.TempDir(), "out")
	ends := whenSaved(dir, "SIGTERM")
	res, errs := world(t, c, 4, func(o *Options) {
		o.Memory, o.Warn = filepath.Join(m.root, "none"), &said
		if o.Transport.Rank() == 0 {
			o.Interrupt = ends
			o.Lead.Folder = &metrics.FolderSpec{Out: dir}
		}
	})
	if err := errors.Join(errs...); err != nil || res[0].Code != CodeAgain ||
		!strings.Contains(said.String(), "no replicas of checkpoints: ") {
		t.Errorf("code %d, %v:\n%s", res[0].Code, err, said.String())
	}
	if dirs, err := checkpoint.List(filepath.Join(dir, checkpoint.Folder)); err != nil || len(dirs) < 2 {
		t.Errorf("checkpoints %v, %v; want one on the way and that of the end", dirs, err)
	}
}
