package lock

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fluentps/internal/disk/durable"
)

func TestStartsAreOrderedWithinTheirSeries(t *testing.T) {
	for _, c := range []struct {
		a, b    string
		earlier bool
	}{
		{"s.1", "s.2", true}, {"s.2", "s.1", false}, {"s.2", "s.2", false}, {"s.9", "s.10", true},
		{"s.1", "r.2", false}, {"s", "s.1", false}, {"s.1", "s", false},
		{"4711.0.3", "4711.1.1", true}, {"4711.1.1", "4711.0.3", false}, {"4711.0", "4711.0.1", false}, {"4711.0.7", "4711.1", true},
		{"", "", false}, {"../x.1", "../x.2", false}, {"s.x", "s.y", false},
	} {
		if got := IsEarlier(c.a, c.b); got != c.earlier {
			t.Errorf("%q is earlier than %q: %v", c.a, c.b, got)
		}
	}
	for _, bad := range []string{"", "a b", "a.", "a/b.1", "a.x", ".1"} {
		if CheckStart(bad) == nil {
			t.Errorf("%q is taken for a token", bad)
		}
	}
}

// The next start of a series takes the folder over at once, however alive the one before is. Rank 0 of that one and its other
// ranks learn it before they change the folder; a start of another series waits to see whether the owner lives.
func TestTheNextStartOfASeriesTakesTheFolder(t *testing.T) {
	dir := t.TempDir()
	lost := make(chan error, 4)
	first, err := Take(durable.Below(dir), Owner{Start: "s.1"}, func(string) {}, func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	in := durable.Below(dir)
	rank := Follow(in, "s.1", time.Hour, func(err error) { lost <- err })
	defer rank.Close()
	guarded := in.Guarded(rank.Check)
	if err := guarded.Write("summary.json", []byte("1")); err != nil {
		t.Fatalf("the owner's rank cannot write: %v", err)
	}
	begun := time.Now()
	second, err := Take(durable.Below(dir), Owner{Start: "s.2"}, func(string) {}, func(error) {})
	if err != nil || time.Since(begun) > Silence/4 {
		t.Fatalf("after %v: %v", time.Since(begun), err)
	}
	var known *LostError
	if err := first.Check(); !errors.As(err, &known) || known.Owner.Start != "s.2" {
		t.Errorf("the first finds %v", err)
	}
	for what, err := range map[string]error{
		"a file": guarded.Write("summary.json", []byte("2")), "a folder": guarded.Make("checkpoints", 0o777),
		"a removal": guarded.Remove("summary.json"),
		"a rename":  guarded.Move("summary.json", "x"), "below": guarded.MakeIn("logs", 0o777).Err(),
	} {
		if !errors.As(err, &known) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := guarded.Append("metrics.jsonl"); !errors.As(err, &known) {
		t.Errorf("appending: %v", err)
	}
	if text, _ := in.ReadFile("summary.json", 9); string(text) != "1" {
		t.Errorf("the summary is %q", text)
	}
	if len(lost) != 1 {
		t.Errorf("the rank was told %d times", len(lost))
	}
	if err := errors.Join(first.Release(), second.Release()); err != nil {
		t.Error(err)
	}
}

// What a start of the series has left is removed: of a process of this host that has ended, or of any once the run has finished. The lock
// of anybody else stays, and so does one that says nothing.
func TestTheLockOfADeadStartIsCleared(t *testing.T) {
	dead := Owner{PID: 1 << 30, Machine: machine(), Started: "1", Token: "t"}
	alive := Owner{PID: os.Getpid(), Machine: machine(), Started: processStart(os.Getpid()), Token: "t"}
	for _, k := range []struct {
		owner    Owner
		start    string
		finished bool
		stays    bool
	}{
		{dead, "s.3", false, false},
		{dead, "s.2", false, false},
		{dead, "s.4", false, true}, // nobody knows of such a start
		{dead, "x.3", false, true},
		{dead, "x.3", true, true},
		{dead, "", true, true},
		{alive, "s.3", false, true},
		{alive, "s.3", true, false},
		{far, "s.3", false, true},
		{far, "s.3", true, false},
		{Owner{}, "", true, true}, // half written
	} {
		dir := t.TempDir()
		k.owner.Start = k.start
		writeLock(t, dir, k.owner, "0000000000000007\n")
		if err := Clear(dir, "s.3", k.finished); err != nil {
			t.Errorf("%+v: %v", k, err)
		}
		if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || k.stays != (len(left) == 1) {
			t.Errorf("%+v: %v stays, %v", k, left, err)
		}
	}
	if err := Clear(filepath.Join(t.TempDir(), "none"), "s.3", true); err != nil {
		t.Error(err)
	}
}

// Whoever has a run folder open learns that another folder has its name: rank 0, each other rank, and a supervisor.
func TestEveryOwnerOfAFolderLearnsThatItWasExchanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "run")
		away := dir + "-away"
		if err := os.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		lost := make(chan error, 4)
		tell := func(err error) { lost <- err }
		first, err := Take(durable.Below(dir), Owner{Start: "s.1"}, func(string) {}, tell)
		if err != nil {
			t.Fatal(err)
		}
		rank := Follow(durable.Below(dir), "s.1", Beat, tell)
		super := Watch(dir)
		defer super.Close()
		checks := map[string]func() error{"rank 0": first.Check, "another rank": rank.Check, "a supervisor": super.Check}
		for who, check := range checks {
			if err := check(); err != nil {
				t.Errorf("%s: %v", who, err)
			}
		}
		// One that is put back at once is not lost.
		if err := os.Rename(dir, away); err != nil {
			t.Fatal(err)
		}
		back := time.AfterFunc(pollEvery+pollEvery/2, func() { _ = os.Rename(away, dir) })
		defer back.Stop()
		if err := first.Check(); err != nil {
			t.Error(err)
		}
		time.Sleep(pollEvery)
		if err := errors.Join(os.Rename(dir, away), os.Mkdir(dir, 0o777)); err != nil {
			t.Fatal(err)
		}
		for who, check := range checks {
			err := check()
			var known *LostError
			if !errors.As(err, &known) || !strings.Contains(err.Error(), dir+" was renamed to "+away+" ") ||
				!strings.Contains(err.Error(), "another folder has its name now") || !strings.HasSuffix(err.Error(), "--resume "+away) {
				t.Errorf("%s: %v", who, err)
			}
		}
		time.Sleep(3 * Beat)
		synctest.Wait()
		if len(lost) != 2 { // rank 0's heartbeat, and once the other rank
			t.Errorf("told %d times, want 2", len(lost))
		}
		rank.Close()
		release(t, first)
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("the other folder has %v, %v", left, err)
		}
		if left, err := os.ReadDir(away); err != nil || len(left) > 0 {
			t.Errorf("the lock stays: %v, %v", left, err)
		}
	})
}
