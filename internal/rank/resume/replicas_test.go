package resume

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/disk/durable"
	"fluentps/internal/rank/replica"
)

// replicated is a setting whose checkpoints are in the memory of hosts, too.
const replicated = "checkpoint={every_updates: 20, keep: 1000, replica: 1}"

// start is the start that has made the replicas.
const start = "0123456789abcdef"

// remember copies the newest checkpoint of a run into the memory of hosts: each has the files that may says. version is that of
// the replica.
func remember(t testing.TB, dir, memory, hosts string, version int64, may func(host, file string) bool) {
	t.Helper()
	from, err := checkpoint.List(filepath.Join(dir, checkpoint.Folder))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, replica.StartsFile), []byte(start+"\n\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, host := range strings.Split(hosts, "") {
		if err := os.MkdirAll(filepath.Join(memory, host), 0o700); err != nil {
			t.Fatal(err)
		}
		in, err := checkpoint.TakeReplicas(filepath.Join(memory, host), start)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		files, err := os.ReadDir(from[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range files {
			if may != nil && e.Name() != "manifest.json" && !may(host, e.Name()) {
				continue
			}
			text, err := os.ReadFile(filepath.Join(from[0], e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			f, err := checkpoint.MakeReplica(in, version, e.Name())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Write(text); errors.Join(err, f.Close()) != nil {
				t.Fatal(err)
			}
		}
	}
}

// each changes the copies of a file in the memory of all hosts.
func each(t testing.TB, memory, name string, do func(path string) error) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(memory, "*", "*", "*", name))
	if err != nil || len(all) < 2 {
		t.Fatalf("%d copies of %s: %v", len(all), name, err)
	}
	for _, path := range all {
		err = errors.Join(err, do(path))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A run whose checkpoints on disk are older resumes from the memory of its hosts, wherever the files lie, also on other ranks.
// Hosts that lack a file get it from another.
func TestReplicasAreTaken(t *testing.T) {
	for name, c := range map[string]struct {
		hosts, again string // the hosts that have a replica, and of each rank that resumes
		may          func(host, file string) bool
		ranks        int
		allow        []string
	}{
		"all files on each host": {hosts: "ab", again: "aabbaa", ranks: 6},
		"no host has all": {hosts: "abc", again: "ccaabb", ranks: 6, may: func(host, file string) bool {
			return (host == "a") == strings.HasPrefix(file, "server")
		}},
		"a host without any": {hosts: "a", again: "ddaadd", ranks: 6},
		"fewer workers":      {hosts: "ab", again: "aabb", ranks: 4, allow: []string{"workers"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir, memory := filepath.Join(t.TempDir(), "out"), t.TempDir()
			leave(t, dir, load(t, replicated), 6, 40)
			remember(t, dir, memory, c.hosts, 7, c.may)
			if err := os.RemoveAll(filepath.Join(dir, checkpoint.Folder)); err != nil {
				t.Fatal(err)
			}
			for _, host := range strings.Split(c.again, "") {
				if err := os.MkdirAll(filepath.Join(memory, host), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			f := search{resume: Auto, out: dir, hosts: c.again, memory: memory, allow: c.allow}.restore(t, load(t, replicated), c.ranks)
			f.mustTake(t, "7")
			for rank, q := range f.origins {
				if want := filepath.Join(memory, c.again[rank:rank+1]); !strings.HasPrefix(q.Dir, want) || q.Manifest.Iteration != 40 {
					t.Errorf("rank %d has read iteration %d of %s, want 40 in %s", rank, q.Manifest.Iteration, q.Dir, want)
				}
			}
			if f.said != "" {
				t.Errorf("said %q", f.said)
			}
		})
	}
}

// Replicas that are damaged, incomplete, of another start, or older than the run folder's checkpoints are ignored.
func TestReplicasThatAreNotTaken(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, memory, dir string)
		says   string
	}{
		"damaged": {func(t *testing.T, memory, _ string) {
			each(t, memory, "server-0000.bin", func(path string) error {
				b, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				b[len(b)-1] ^= 1
				return os.WriteFile(path, b, 0o600)
			})
		}, "the replicas in memory cannot be used: "},
		"incomplete": {func(t *testing.T, memory, _ string) { each(t, memory, "worker-0001.bin", os.Remove) }, ""},
		"another start": {func(t *testing.T, _, dir string) {
			if err := os.WriteFile(filepath.Join(dir, replica.StartsFile), []byte("fedcba9876543210\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, ""},
		"older": {func(t *testing.T, _, dir string) {
			if err := os.Rename(at(dir, 2), at(dir, 999)); err != nil {
				t.Fatal(err)
			}
		}, ""},
		"older, of the same number": {func(t *testing.T, memory, dir string) {
			m, err := checkpoint.Open(at(dir, 2))
			if err != nil {
				t.Fatal(err)
			}
			m.Samples++
			in := durable.Below(at(dir, 2))
			if err := errors.Join(checkpoint.Amend(in, m), in.Close()); err != nil {
				t.Fatal(err)
			}
			rewriteFile(t, at(dir, 2), "server-0000.bin", replaceField(t, `"samples":(\d+)`, fmt.Sprint(m.Samples)))
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir, memory := filepath.Join(t.TempDir(), "out"), t.TempDir()
			leave(t, dir, load(t, replicated), 6, 20)
			leave(t, dir, load(t, replicated), 6, 40)
			remember(t, dir, memory, "ab", 7, nil)
			again := search{resume: Auto, out: dir, hosts: "aaabbb", memory: memory}
			again.restore(t, load(t, replicated), 6).mustTake(t, "7") // without the change
			c.change(t, memory, dir)
			f := again.restore(t, load(t, replicated), 6)
			if err := errors.Join(f.errs...); err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(f.origins[0].Dir, dir) || !strings.Contains(f.said, c.says) || c.says == "" && strings.Contains(f.said, "memory") {
				t.Errorf("resumed from %q, said %q", f.origins[0].Dir, f.said)
			}
		})
	}
}

// A run that names a checkpoint resumes from that one, even if memory has a newer one.
func TestReplicasAreNotTakenForACheckpointThatWasNamed(t *testing.T) {
	dir, memory := filepath.Join(t.TempDir(), "out"), t.TempDir()
	leave(t, dir, load(t, replicated), 6, 20)
	leave(t, dir, load(t, replicated), 6, 40)
	remember(t, dir, memory, "ab", 7, nil)
	f := search{resume: at(dir, 1), hosts: "aaabbb", memory: memory}.restore(t, load(t, replicated), 6)
	f.mustTake(t, "000000000001")
}
