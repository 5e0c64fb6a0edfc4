package checkpoint

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"fluentps/internal/disk/durable"
)

func hold(t *testing.T, memory, start string) *Replicas {
	t.Helper()
	r, err := HoldReplicas(memory, start)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func has(t *testing.T, memory string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(memory)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// ListReplicas returns the versions of a start with their files. A damaged manifest counts as missing. Keep leaves no earlier version.
func TestReplicasOfAStart(t *testing.T) {
	memory := t.TempDir()
	r := hold(t, memory, "one")
	if _, err := HoldReplicas(memory, "one"); err == nil {
		t.Error("two starts hold one folder")
	}
	for v := int64(1); v <= 3; v++ {
		e, err := WriteFile(MakeReplicaVersion(r.in, v), ServerFile(0), 1, []float32{1, 2})
		if err != nil {
			t.Fatal(err)
		}
		m := &Manifest{Number: 10 + v, Servers: 1, Workers: 1, Starts: []int64{0}, Files: []Entry{e}}
		text, err := m.Text()
		if err != nil {
			t.Fatal(err)
		}
		if v == 2 {
			text = text[:len(text)-1]
		}
		if err := os.WriteFile(filepath.Join(ReplicaVersion(r.Dir(), v), manifestName), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all := ListReplicas(memory, "one")
	if len(all) != 3 || all[0].Version != 3 || all[0].Manifest.Number != 13 || all[1].Manifest != nil || all[2].Manifest.Number != 11 {
		t.Fatalf("%+v", all)
	}
	if n := all[0].Files[ServerFile(0)]; n != all[0].Manifest.Files[0].Bytes {
		t.Errorf("%d bytes, the manifest says %d", n, all[0].Manifest.Files[0].Bytes)
	}
	if err := r.Keep(3); err != nil || len(ListReplicas(memory, "one")) != 1 {
		t.Errorf("%+v, %v", ListReplicas(memory, "one"), err)
	}
	if err := r.Drop(3); err != nil || len(ListReplicas(memory, "one")) != 0 {
		t.Errorf("%+v, %v", ListReplicas(memory, "one"), err)
	}
	if err := r.Release(true); err != nil || len(has(t, memory)) != 0 {
		t.Errorf("%v, %v", has(t, memory), err)
	}
}

// SweepReplicas removes the replicas of a killed start after a day. It keeps those of a running start, new ones, those of other users,
// and those that the next start resumes from.
func TestLeftoversOfReplicasGo(t *testing.T) {
	memory := t.TempDir()
	now := time.Now()
	living := hold(t, memory, "living")
	for _, start := range []string{"killed", "fresh", "needed"} {
		if err := hold(t, memory, start).Release(false); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(memory, "other"), 0o700); err != nil {
		t.Fatal(err)
	}
	old := now.Add(-leftoverAge - time.Hour)
	for _, path := range []string{ReplicaDir(memory, "living"), ReplicaDir(memory, "killed"),
		ReplicaDir(memory, "needed"), filepath.Join(memory, "other")} {
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	// A run that resumes from replicas needs them until it has its own.
	if err := SweepReplicas(memory, "needed", now); err != nil {
		t.Fatal(err)
	}
	if err := RemoveReplicas(memory, "needed"); err != nil || len(has(t, memory)) != 3 {
		t.Fatalf("%v, %v", has(t, memory), err)
	}
	want := []string{filepath.Base(ReplicaDir(memory, "fresh")), filepath.Base(ReplicaDir(memory, "living")), "other"}
	if got := has(t, memory); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if err := RemoveReplicas(memory, "living"); err != nil || !slices.Equal(has(t, memory), want) {
		t.Errorf("the replicas of a running start were removed: %v, %v", has(t, memory), err)
	}
	if err := living.Release(false); err != nil {
		t.Fatal(err)
	}
	if err := RemoveReplicas(memory, "living"); err != nil || len(has(t, memory)) != 2 {
		t.Errorf("%v, %v", has(t, memory), err)
	}
	if err := RemoveReplicas(memory, "never was"); err != nil {
		t.Error(err)
	}
}

// A replica that would leave too little free memory is not written, and takes no memory.
func TestAReplicaLeavesRoom(t *testing.T) {
	dir := t.TempDir()
	if _, err := WriteReplica(durable.Below(dir), ServerFile(0), 1<<60, 1, make([]float32, 1<<18)); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%v, want ENOSPC", err)
	}
	var stat syscall.Stat_t
	if err := syscall.Stat(filepath.Join(dir, ServerFile(0)), &stat); err != nil || stat.Blocks > 0 {
		t.Errorf("%d blocks are taken, %v", stat.Blocks, err)
	}
	e, err := WriteReplica(durable.Below(dir), ServerFile(1), 0, 1, make([]float32, 1<<18))
	if err != nil {
		t.Fatal(err)
	}
	var state int
	if vectors, err := ReadFile(dir, e, &state); err != nil || state != 1 || len(vectors) != 1 {
		t.Errorf("state %d, %d vectors, %v", state, len(vectors), err)
	}
}

// A symbolic link in the place of a folder is not a replica.
func TestALinkIsNoReplica(t *testing.T) {
	memory := t.TempDir()
	r := hold(t, memory, "one")
	if err := MakeReplicaVersion(r.in, 1).Err(); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(r.Dir(), ReplicaDir(memory, "two")); err != nil {
		t.Fatal(err)
	}
	if all := ListReplicas(memory, "two"); all != nil {
		t.Errorf("%+v", all)
	}
	if err := RemoveReplicas(memory, "two"); err != nil || len(ListReplicas(memory, "one")) != 1 {
		t.Errorf("%+v, %v", ListReplicas(memory, "one"), err)
	}
}
