package lock

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"fluentps/internal/disk/durable"
)

// far is a process of job 7 on another host.
var far = Owner{Host: "far", PID: 42, Job: "7", Restarts: 1, Machine: "another boot", Token: "of far", Since: time.Unix(0, 0)}

// writeLock writes a lock with a counter into dir.
func writeLock(t *testing.T, dir string, o Owner, count string) {
	t.Helper()
	line, err := json.Marshal(o)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, Name), append(append(line, '\n'), count...), 0o666)
	}
	if err != nil {
		t.Error(err)
	}
}

// takeLock takes the lock of dir. It returns how long that took, the messages so far and later ones, and the errors
// passed to lost.
func takeLock(t *testing.T, dir string, me Owner) (l *Lock, took time.Duration, reports, lost *[]string) {
	t.Helper()
	reports, lost = new([]string), new([]string)
	from := time.Now()
	l, err := Take(durable.Below(dir), me, func(text string) { *reports = append(*reports, text) },
		func(err error) { *lost = append(*lost, err.Error()) })
	if err != nil {
		t.Fatal(err)
	}
	return l, time.Since(from), reports, lost
}

func release(t *testing.T, l *Lock) {
	t.Helper()
	if err := l.Release(); err != nil {
		t.Error(err)
	}
}

func TestALockIsHeldAndGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		l, took, reports, lost := takeLock(t, dir, Owner{Host: "here", Job: "9"})
		if took != 0 || len(*reports) > 0 {
			t.Errorf("took %s, said %q; want at once", took, *reports)
		}
		from := time.Now()
		_, err := Take(durable.Below(dir), Owner{Host: "here"}, func(string) {}, nil)
		var held *HeldError
		if !errors.As(err, &held) {
			t.Fatalf("a second one: %v, want a *HeldError", err)
		}
		for _, want := range []string{dir, "job 9, process " + fmt.Sprint(os.Getpid()) + " on here, since ", "scancel 9", "--out"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q is missing in %v", want, err)
			}
		}
		if waited := time.Since(from); waited > Beat+pollEvery {
			t.Errorf("that took %s, want at most the time to the next beat", waited)
		}
		time.Sleep(20 * Silence)
		synctest.Wait()
		if err := l.Check(); err != nil || len(*lost) > 0 {
			t.Errorf("lost: %v, %q", err, *lost)
		}
		release(t, l)
		if entries, _ := os.ReadDir(dir); len(entries) > 0 {
			t.Errorf("left %v", entries)
		}
		next, took, _, _ := takeLock(t, dir, Owner{Host: "here"})
		if took != 0 {
			t.Errorf("the next one took %s", took)
		}
		release(t, next)
	})
}

func TestALockOfWhomNobodyHearsIsTakenOver(t *testing.T) {
	here, self := machine(), processStart(os.Getpid())
	if here == "" || self == "" {
		t.Skip("this system does not tell processes apart")
	}
	isDead := exec.Command("true")
	if err := isDead.Run(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		held Owner
		me   Owner
		took time.Duration
	}{
		"silent":               {far, Owner{}, Silence},
		"silent, of this job":  {far, Owner{Job: "7", Restarts: 1}, Silence},
		"requeued":             {far, Owner{Job: "7", Restarts: 2}, 0},
		"another job":          {far, Owner{Job: "8", Restarts: 2}, Silence},
		"no jobs":              {Owner{Host: "far", PID: 42, Token: "x", Machine: "another boot"}, Owner{Restarts: 1}, Silence},
		"dead here":            {Owner{PID: isDead.Process.Pid, Machine: here, Token: "x"}, Owner{}, 0},
		"a number used again":  {Owner{PID: os.Getpid(), Started: "1" + self, Machine: here, Token: "x"}, Owner{}, 0},
		"stopped here":         {Owner{PID: os.Getpid(), Started: self, Machine: here, Token: "x"}, Owner{}, Silence},
		"a system without ids": {Owner{PID: isDead.Process.Pid, Token: "x"}, Owner{}, Silence},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				writeLock(t, dir, c.held, "0000000000000005\n")
				l, took, reports, _ := takeLock(t, dir, c.me)
				if took != c.took {
					t.Errorf("took %s, want %s", took, c.took)
				}
				if waits := c.took > 0; waits != (len(*reports) == 1) || waits && !strings.Contains((*reports)[0], c.held.String()) {
					t.Errorf("said %q", *reports)
				}
				release(t, l)
				if entries, _ := os.ReadDir(dir); len(entries) > 0 {
					t.Errorf("left %v", entries)
				}
			})
		})
	}
}

// A process killed while it wrote the lock leaves half of one.
func TestAHalfWrittenLockIsTakenOver(t *testing.T) {
	for _, text := range []string{"", `{"host": "far`, "\x00\x00\n", "garbage\n0000000000000007\n", "\n0\n"} {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, Name), []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
			l, took, reports, _ := takeLock(t, dir, Owner{})
			if took != Silence || len(*reports) != 1 || !strings.Contains((*reports)[0], "an unknown process") {
				t.Errorf("%q: took %s, said %q", text, took, *reports)
			}
			release(t, l)
		})
	}
}

// A process that increments the counter lives, even if the lock does not name it.
func TestANamelessLockThatCountsIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, Name)
		beat := func(n int64) {
			if err := os.WriteFile(path, append([]byte("garbage\n"), counterLine(n)...), 0o666); err != nil {
				t.Error(err)
			}
		}
		beat(7)
		next := time.AfterFunc(Beat, func() { beat(8) })
		defer next.Stop()
		from := time.Now()
		_, err := Take(durable.Below(dir), Owner{}, func(string) {}, nil)
		var held *HeldError
		if !errors.As(err, &held) || !strings.Contains(err.Error(), "if no run writes the folder, remove "+path) {
			t.Errorf("%v, want a *HeldError that names %s", err, path)
		}
		if waited := time.Since(from); waited < Beat || waited > Beat+2*pollEvery {
			t.Errorf("that took %s, want the time to the next beat", waited)
		}
	})
}

func TestAnOwnerLearnsThatItHasLostTheLock(t *testing.T) {
	for name, c := range map[string]struct {
		change func(path string) error
		want   string
	}{
		"taken over": {nil, "is now that of job 7, process 42 on far"},
		"removed":    {os.Remove, "was removed"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				l, _, _, lost := takeLock(t, dir, Owner{})
				if c.change == nil {
					if err := os.Remove(filepath.Join(dir, Name)); err != nil {
						t.Fatal(err)
					}
					writeLock(t, dir, far, "0\n")
				} else if err := c.change(filepath.Join(dir, Name)); err != nil {
					t.Fatal(err)
				}
				var now *LostError
				if err := l.Check(); !errors.As(err, &now) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v, want %q", err, c.want)
				}
				time.Sleep(3 * Beat)
				synctest.Wait()
				if len(*lost) != 1 || !strings.Contains((*lost)[0], c.want) {
					t.Errorf("lost was called with %q, want once %q", *lost, c.want)
				}
				release(t, l)
				if got, err := l.read(Name); c.change == nil && (err != nil || got.Token != far.Token || got.count != "0\n") {
					t.Errorf("the other's lock is %+v, %v", got, err)
				}
			})
		})
	}
}

// A process that mistakes the lock for stale moves it aside for a moment.
func TestALockThatIsPutBackIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		l, _, _, lost := takeLock(t, dir, Owner{})
		other := &Lock{in: l.in, mine: Owner{Token: "other"}}
		if err := other.discard("one that was stale"); err != nil {
			t.Fatal(err)
		}
		if err := l.Check(); err != nil {
			t.Error(err)
		}
		path := filepath.Join(dir, Name)
		if err := os.Rename(path, path+".aside"); err != nil {
			t.Fatal(err)
		}
		back := time.AfterFunc(2*pollEvery+pollEvery/2, func() { _ = os.Rename(path+".aside", path) })
		defer back.Stop()
		if err := l.Check(); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * Beat)
		synctest.Wait()
		if len(*lost) > 0 {
			t.Errorf("lost was called with %q", *lost)
		}
		release(t, l)
	})
}

// Of many processes that find the same stale lock one holds it in the end, and each of the others knows that it does
// not.
func TestOneOfManyGetsAStaleLock(t *testing.T) {
	for range 30 {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			writeLock(t, dir, far, "0\n")
			const many = 6
			locks, errs := make([]*Lock, many), make([]error, many)
			var all sync.WaitGroup
			for i := range many {
				all.Go(func() {
					locks[i], errs[i] = Take(durable.Below(dir), Owner{Job: "7", Restarts: 2}, func(string) {}, func(error) {})
				})
			}
			all.Wait()
			time.Sleep(2 * Beat)
			hold := 0
			for i, l := range locks {
				var held *HeldError
				switch {
				case l == nil && errors.As(errs[i], &held):
				case l == nil:
					t.Errorf("taker %d: %v", i, errs[i])
				case l.Check() == nil:
					hold++
				}
			}
			if hold != 1 {
				t.Errorf("%d hold the lock, want 1", hold)
			}
			for _, l := range locks {
				if l != nil {
					release(t, l)
				}
			}
		})
	}
}

func TestAFolderThatCannotBeLocked(t *testing.T) {
	_, err := Take(durable.Below(filepath.Join(t.TempDir(), "none")), Owner{}, func(string) {}, func(error) {})
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "cannot lock it; choose one that can be written with --out") {
		t.Error(err)
	}
}

// Any user who can write the folder may have written the lock: its text sends no commands to a terminal, and proposes
// none to a user.
func TestTextOfAForeignLockIsEscaped(t *testing.T) {
	since := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		owner Owner
		want  string
	}{
		{Owner{Host: "\x1b[2J\u202e", Job: "7; rm -rf ~", PID: 3}, `job "7; rm -rf ~"`},
		{Owner{Host: "n1\x1b]0;x\a", PID: -1}, "wait for its end, or stop it, or begin"},
		{Owner{Host: "n1", Job: "$(reboot)", PID: 3}, "wait for its end, or stop it, or begin"},
		{Owner{Host: "n1", Job: "-u root", PID: 3}, "wait for its end, or stop it, or begin"},
		{Owner{Host: "n1", Job: "12_3", PID: 3}, "(scancel 12_3)"},
		{Owner{Host: "n1", Job: "12+1", PID: 3}, "(scancel 12+1)"},
		{Owner{Host: "n1", PID: 3}, "(kill 3 there)"},
		{Owner{Host: strings.Repeat("n", 10000), PID: 3}, `nnn"...`},
	} {
		c.owner.Since, c.owner.Token = since, "x"
		for _, err := range []error{&HeldError{Dir: "runs/a", Owner: c.owner}, &LostError{Dir: "runs/a", Owner: c.owner}} {
			text := err.Error()
			if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == '\u202e' }) || len(text) > 1000 {
				t.Errorf("%+v: raw in %q", c.owner, text)
			}
			if strings.Contains(text, "scancel 7") || strings.Contains(text, "scancel $") || strings.Contains(text, "scancel -") {
				t.Errorf("%+v: proposes a command from the lock: %q", c.owner, text)
			}
			if _, held := err.(*HeldError); held && !strings.Contains(text, c.want) {
				t.Errorf("%+v: %q lacks %q", c.owner, text, c.want)
			}
		}
	}
}

// A lock is not read through a link, nor from a file that may never end.
func TestALockIsARegularFile(t *testing.T) {
	for name, writeLock := range map[string]func(path string) error{
		"a symbolic link":    func(path string) error { return os.Symlink("/etc/hostname", path) },
		"a FIFO":             func(path string) error { return syscall.Mkfifo(path, 0o666) },
		"a folder":           func(path string) error { return os.Mkdir(path, 0o777) },
		"more than 65536 by": func(path string) error { return os.WriteFile(path, make([]byte, 1<<20), 0o666) },
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, Name)
		if err := writeLock(path); err != nil {
			t.Fatal(err)
		}
		_, err := Take(durable.Below(dir), Owner{}, func(string) {}, nil)
		if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "if no run writes the folder, remove "+path) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A killed process is dead even if its parent has not waited for it: in a container possibly no parent does.
func TestIsAlive(t *testing.T) {
	if machine() == "" {
		t.Skip("this system does not tell processes apart")
	}
	sleeper := exec.Command("sleep", "1000")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	pid := sleeper.Process.Pid
	at := processStart(pid)
	if !isAlive(pid, at) || !isAlive(pid, "") || isAlive(pid, at+"0") ||
		isAlive(0, "") || !isAlive(os.Getpid(), processStart(os.Getpid())) {
		t.Errorf("process %d of %s lives: %t; this one: %t", pid, at, isAlive(pid, at), isAlive(os.Getpid(), processStart(os.Getpid())))
	}
	if err := sleeper.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for state := ""; state != "Z"; state, _, _ = stat(pid) {
		time.Sleep(time.Millisecond)
	}
	if isAlive(pid, at) {
		t.Error("a killed process counts as alive")
	}
	_ = sleeper.Wait() // its error reports the kill
	if isAlive(pid, at) {
		t.Error("a process that has ended counts as alive")
	}
}
