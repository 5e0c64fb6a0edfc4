package replica

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"fluentps/internal/comm/wire"
	"fluentps/internal/configs/configstest"
	"fluentps/internal/plan/layout"
	"fluentps/internal/rank/station"
	"fluentps/internal/rank/station/stationtest"
	"fluentps/internal/show/metrics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// chief is rank 0, which decides for all ranks what becomes of a version.
type chief struct {
	t      testing.TB
	st     *station.Station
	q      *Replicas
	heard  []wire.FileSaved
	hosts  []int // the first rank of each
	write  func(version int64)
	memory string
}

// hear drives rank 0 until it has heard of n files of a version, and returns the reports.
func (c *chief) hear(n int, version int64) (of []wire.FileSaved) {
	c.t.Helper()
	count := func() int {
		of = of[:0]
		for _, f := range c.heard {
			if f.Version == version {
				of = append(of, f)
			}
		}
		return len(of)
	}
	if err := c.st.Net.Drive(func() bool { return count() >= n }); err != nil {
		c.t.Error(err)
	}
	return of
}

// files lists the files in the memory of a host: version and name.
func (c *chief) files(host string) (names []string) {
	all, err := filepath.Glob(filepath.Join(c.memory, host, "*", "*", "*"))
	if err != nil {
		c.t.Error(err)
	}
	for _, path := range all {
		names = append(names, filepath.Base(filepath.Dir(path))+"/"+filepath.Base(path))
	}
	return names
}

// keep has the ranks of these hosts keep replicas. lead is rank 0; write has every rank write its file of the next version. In
// the end the replicas are removed.
func keep(t *testing.T, hosts string, elements int, lead func(*chief)) (said string) {
	t.Helper()
	memory, out := t.TempDir(), filepath.Join(t.TempDir(), "out")
	for _, host := range strings.Split(hosts, "") {
		if err := os.MkdirAll(filepath.Join(memory, host), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	folder, err := metrics.CreateRunFolder(metrics.FolderSpec{Out: out})
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	var mu sync.Mutex
	var warned bytes.Buffer
	ts := stationtest.Transports(hosts)
	writes := make([]func(int64), len(hosts))
	ended := make([]atomic.Bool, len(hosts))
	w := stationtest.World{Config: configstest.Load(t, "checkpoint={every_updates: 20, replica: 1}"), Hosts: hosts, Transports: ts,
		Warn: lockedWriter{&mu, &warned}}
	w.Must(t, func(st *station.Station) error {
		c := &chief{t: t, st: st, memory: memory}
		if st.Me == 0 {
			st.Net.HandleHeader(wire.Saved, func(h *wire.Header) { c.heard = append(c.heard, wire.FileSavedOf(h)) })
		}
		var err error
		if c.q, err = Open(st, Options{Memory: filepath.Join(memory, st.Hosts[st.Me]), Host: st.Hosts[st.Me], Folder: folder}); err != nil {
			return err
		}
		if c.q == nil {
			return errors.New("no replicas are kept")
		}
		writes[st.Me] = func(int64) {
			kind, index := fileOf(st)
			version := c.q.NextVersion(kind)
			values := slices.Repeat([]float32{float32(1000*version) + float32(st.Me)}, elements)
			go c.q.Write(version, wire.FileSaved{Rank: int32(st.Me), Kind: kind, Index: index}, struct{ Of int }{st.Me}, [][]float32{values})
		}
		if err := st.Transport.Barrier(); err != nil {
			return err
		}
		if st.Me > 0 {
			if err := st.Net.Drive(func() bool { return ended[st.Me].Load() }); err != nil {
				return err
			}
			return c.q.Close(true)
		}
		for rank, node := range st.NodeOf {
			if rank == node {
				c.hosts = append(c.hosts, rank)
			}
		}
		c.write = func(version int64) {
			for rank, write := range writes {
				ts[rank].Post(func() { write(version) })
			}
		}
		lead(c)
		for rank := range ts {
			ts[rank].Post(func() { ended[rank].Store(true) })
		}
		return c.q.Close(true)
	})
	for _, host := range strings.Split(hosts, "") {
		if left, _ := filepath.Glob(filepath.Join(memory, host, "*")); len(left) > 0 {
			t.Errorf("host %s still has %v", host, left)
		}
	}
	return warned.String()
}

// lockedWriter is a buffer that many ranks may write to.
type lockedWriter struct {
	mu *sync.Mutex
	b  *bytes.Buffer
}

func (w lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

// fileOf is the file of a checkpoint that a rank writes.
func fileOf(st *station.Station) (wire.FileKind, int32) {
	if s := st.Roles.Server(st.Me); s >= 0 {
		return wire.ServerFile, int32(s)
	}
	return wire.WorkerFile, int32(st.Roles.Worker(st.Me))
}

// Each file of a version is on the host of its rank and, if there are two, on that of the next, to the byte and also if it takes several
// parcels. A complete version replaces the one before.
func TestEachFileIsOnTwoHosts(t *testing.T) {
	for _, c := range []struct {
		hosts    string
		elements int
	}{{"aabbc", 5}, {"aaa", 5}, {"abab", 5}, {"aabb", layout.ParcelMax/4*2 + 7}} {
		t.Run(fmt.Sprint(c.hosts, c.elements), func(t *testing.T) {
			said := keep(t, c.hosts, c.elements, func(q *chief) {
				copies := 1
				if q.q.Copies() {
					copies = 2
				}
				for version := int64(1); version <= 2; version++ {
					q.write(version)
					for _, f := range q.hear(copies*len(c.hosts), version) {
						if f.Failed || f.Place == wire.InFolder || f.Place == wire.OnHost {
							t.Errorf("heard of %+v", f)
						}
					}
					for _, host := range q.hosts {
						q.q.SendManifest(host, version, fmt.Appendf(nil, "manifest %d", version))
					}
					q.hear(copies*len(c.hosts)+len(q.hosts), version)
				}
				byName := map[string][][]byte{}
				for _, host := range q.hosts {
					name := q.st.Hosts[host]
					for _, file := range q.files(name) {
						text, err := os.ReadFile(filepath.Join(q.q.o.Memory, "..", name, filepath.Base(q.q.dir), file))
						if err != nil || !strings.HasPrefix(file, "2/") {
							t.Errorf("host %s has %s: %v", name, file, err)
						}
						byName[file] = append(byName[file], text)
					}
				}
				for file, texts := range byName {
					want := copies
					if file == "2/manifest.json" {
						want = len(q.hosts)
					}
					if len(texts) != want || !bytes.Equal(texts[0], texts[want-1]) {
						t.Errorf("%d copies of %s, want %d that are equal", len(texts), file, want)
					}
				}
				if len(byName) != len(c.hosts)+1 {
					t.Errorf("%d files, want one of each of %d ranks and the manifest", len(byName), len(c.hosts))
				}
			})
			if said != "" {
				t.Errorf("said %q", said)
			}
		})
	}
}

// A version that a host has no room for is said to have failed. It is given up on all hosts, and the next one is complete.
func TestAVersionThatIsGivenUpLeavesNothing(t *testing.T) {
	const hosts = "aabb"
	said := keep(t, hosts, 5, func(q *chief) {
		inTheWay := filepath.Join(q.memory, "b", filepath.Base(q.q.dir), "1") // of a folder
		if err := os.WriteFile(inTheWay, nil, 0o600); err != nil {
			t.Error(err)
		}
		q.write(1)
		if heard := q.hear(6, 1); !slices.ContainsFunc(heard, func(f wire.FileSaved) bool { return f.Failed }) {
			t.Errorf("nobody says that a file failed: %+v", heard)
		}
		for _, host := range q.hosts {
			q.q.SendManifest(host, 1, nil)
		}
		if err := q.st.Net.Drive(func() bool { return count(q.heard, wire.OnHost) == len(q.hosts) }); err != nil {
			t.Error(err)
		}
		for _, host := range []string{"a", "b"} {
			if left, _ := filepath.Glob(filepath.Join(q.memory, host, "*", "1")); len(left) > 0 {
				t.Errorf("host %s still has %v", host, left)
			}
		}
		q.write(2)
		if heard := q.hear(8, 2); slices.ContainsFunc(heard, func(f wire.FileSaved) bool { return f.Failed }) {
			t.Errorf("of the next version: %+v", heard)
		}
	})
	if !strings.Contains(said, "no replica of this checkpoint") {
		t.Errorf("said %q", said)
	}
}

// count is how many reports are of files in such a place.
func count(heard []wire.FileSaved, place wire.FilePlace) (n int) {
	for _, f := range heard {
		if f.Place == place {
			n++
		}
	}
	return n
}

// A host without memory for replicas leaves all without, with a warning and no error: the run continues.
func TestAHostWithoutMemoryLeavesAllWithout(t *testing.T) {
	memory := t.TempDir()
	if err := errors.Join(os.MkdirAll(filepath.Join(memory, "a"), 0o700), os.WriteFile(filepath.Join(memory, "b"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	folder, err := metrics.CreateRunFolder(metrics.FolderSpec{Out: filepath.Join(t.TempDir(), "out")})
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	var mu sync.Mutex
	var warned bytes.Buffer
	w := stationtest.World{Config: configstest.Load(t, "checkpoint={every_updates: 20, replica: 1}"), Hosts: "aaab",
		Warn: lockedWriter{&mu, &warned}}
	w.Must(t, func(st *station.Station) error {
		q, err := Open(st, Options{Memory: filepath.Join(memory, st.Hosts[st.Me]), Host: st.Hosts[st.Me], Folder: folder})
		if err == nil && q != nil {
			err = errors.New("replicas are kept")
		}
		return err
	})
	if n := strings.Count(warned.String(), "no replicas of checkpoints: "); n != 1 {
		t.Errorf("said %q", warned.String())
	}
	if left, _ := filepath.Glob(filepath.Join(memory, "a", "*")); len(left) > 0 {
		t.Errorf("host a still has %v", left)
	}
}
