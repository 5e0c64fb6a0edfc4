package external

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fluentps/ps/workload/external/externaltest"
)

// A child knows nothing of the launcher, reads nothing from stdin, and has no descriptor but its own.
func TestWhatAChildIsStartedWith(t *testing.T) {
	leavesNothing(t)
	for _, v := range []string{"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "PRTE_X", "SLURM_PMI_X", "SLURM_PMIX_X"} {
		t.Setenv(v, "1")
	}
	t.Setenv("SLURM_JOB_ID", "7")
	t.Setenv("OMP_NUM_THREADS", "")
	if err := os.Unsetenv("OMP_NUM_THREADS"); err != nil {
		t.Fatal(err)
	}
	var h heard
	c := started(t, "tells", func(o *Options) { o.Threads, o.Log = 3, h.add })
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	has := func(line string) bool { return slices.Contains(h.all(), line) }
	for _, line := range []string{"env OMP_NUM_THREADS=3", "env SLURM_JOB_ID=7", "env PYTHONUNBUFFERED=1", "env FLUENTPS_CHILD=fd=3 version=1",
		"stdin 0 EOF"} {
		if !has(line) {
			t.Errorf("the child does not say %q", line)
		}
	}
	for _, line := range h.all() {
		for _, begin := range []string{"OMPI_", "PMIX_", "PMI_", "PRTE_", "SLURM_PMI"} {
			if strings.HasPrefix(line, "env "+begin) {
				t.Errorf("the child has %s", line)
			}
		}
		if f := strings.Fields(line); f[0] == "open" && len(f) > 2 {
			n, _ := strconv.Atoi(f[1])
			if kind := strings.HasPrefix(f[2], "socket:"); kind != (n == 3) || n > 3 && strings.HasPrefix(f[2], "/dev/shm") {
				t.Errorf("the child has %s", line)
			}
		}
	}
}

// A number of threads that the user has chosen stays, and 0 chooses none.
func TestThreadsOfAChild(t *testing.T) {
	for _, c := range []struct {
		env     []string
		threads int
		want    []string
	}{
		{nil, 0, nil},
		{nil, 4, []string{"OMP_NUM_THREADS=4"}},
		{[]string{"OMP_NUM_THREADS=2"}, 4, []string{"OMP_NUM_THREADS=2"}},
		{[]string{"FLUENTPS_CHILD=fd=9 version=0", "PMI_FD=3", "FLUENTPS_X=1"}, 0, []string{"FLUENTPS_X=1"}},
	} {
		want := append(slices.Clone(c.want), "FLUENTPS_CHILD=fd=3 version=1", "PYTHONUNBUFFERED=1")
		if got := environment(c.env, &Options{Threads: c.threads}); !slices.Equal(got, want) {
			t.Errorf("%q with %d threads: %q, want %q", c.env, c.threads, got, want)
		}
	}
}

// All that a child writes is heard, also what it writes last of all, and more than a pipe holds.
func TestAllThatAChildWritesIsHeard(t *testing.T) {
	leavesNothing(t)
	var h heard
	var once sync.Once
	c := started(t, "lastlines", func(o *Options) {
		o.Log = func(line string) {
			once.Do(func() { time.Sleep(100 * time.Millisecond) }) // the child ends before the rest is read
			h.add(line)
		}
	})
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if got := h.all(); len(got) != 1000 || got[999] != "saved 999" {
		t.Errorf("heard %d lines, want 1000, which the child wrote after BYE", len(got))
	}
	var long heard
	c = started(t, "chatty", func(o *Options) { o.Log = long.add })
	m := c.Model(Training)
	params, grads := externaltest.Values(0), apart()
	m.Bind(params, grads)
	step(t, m, params, grads, 1)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if got := long.all(); len(got) != 20_000 || got[19_999] != "line 19999" {
		t.Errorf("heard %d lines, want 20000", len(got))
	}
}

// A child that ends badly after training makes an error, as the only one.
func TestHowAChildEnds(t *testing.T) {
	leavesNothing(t)
	for mode, want := range map[string]string{
		"byeexits":  "has ended with exit code 4 after training",
		"byekilled": "was killed by SIGKILL after training",
	} {
		c := started(t, mode, nil)
		err := c.Close()
		mustSay(t, mode, err, c.Name(), want)
		if !errors.Is(c.err, err) && c.err.Error() != err.Error() {
			t.Errorf("%s: Err is %v, Close said %v", mode, c.err, err)
		}
		if again := c.Close(); again == nil || again.Error() != err.Error() {
			t.Errorf("%s: Close again: %v", mode, again)
		}
	}
	c := started(t, externaltest.Well, nil)
	for range 2 {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Kill ends whoever waits for the child, whenever it comes.
func TestKillEndsAPass(t *testing.T) {
	leavesNothing(t)
	for _, mode := range []string{"waits", "neverdone"} {
		for _, after := range []time.Duration{0, time.Millisecond, 100 * time.Millisecond} {
			c := started(t, mode, func(o *Options) { o.Silence = 0 })
			m := c.Model(Training)
			m.Bind(externaltest.Values(0), apart())
			killed := make(chan struct{})
			time.AfterFunc(after, func() {
				c.Kill()
				close(killed)
			})
			_, _, err := m.Forward(rowsOf(1), nil)
			if err == nil {
				err = m.Backward(nil)
			}
			<-killed
			mustSay(t, mode, err, c.Name(), "was killed by SIGKILL")
			if _, _, again := m.Forward(rowsOf(1), nil); again == nil || again.Error() != err.Error() {
				t.Errorf("%s: after that: %v", mode, again)
			}
			c.Kill()
		}
	}
	var none *Child
	none.Kill()
}

// Errors have the last lines that the child wrote, and no more.
func TestAnErrorHasTheLastLines(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "child.sh")
	text := "#!/bin/sh\ni=0\nwhile [ $i -lt 40 ]; do i=$((i+1)); echo line $i; done\necho 'broken \\0377 text' >&2\nprintf end\nexit 6\n"
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	leavesNothing(t)
	o := optionsOf("")
	o.Command = []string{path}
	_, err := Start(o, externaltest.Shapes())
	mustSay(t, "a script", err, "has ended with exit code 6; it has written last:\n", "\n    line 40\n", "\n    end")
	if n := strings.Count(err.Error(), "\n"); n != tailLinesMax || strings.Contains(err.Error(), "line 29\n") {
		t.Errorf("%d lines: %v", n, err)
	}
}

// roles of the test binary as a parent of a child.
const parentRole = "FLUENTPS_TEST_PARENT"

// A parent that is killed leaves no child. This test starts itself again as that parent.
func TestNoChildOutlivesItsParent(t *testing.T) {
	if os.Getenv(parentRole) != "" {
		o := optionsOf("waits") // its child does not see the end of the connection
		o.Log = func(line string) { fmt.Println("says", line) }
		c, err := Start(o, externaltest.Shapes())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("child", c.process.cmd.Process.Pid)
		m := c.Model(Training)
		m.Bind(apart(), apart())
		_, _, err = m.Forward(rowsOf(1), nil)
		t.Fatal(err)
	}
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(path, "-test.run=^TestNoChildOutlivesItsParent$")
	parent.Env = append(os.Environ(), parentRole+"=1")
	parent.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := parent.StdoutPipe()
	if err := errors.Join(err, parent.Start()); err != nil {
		t.Fatal(err)
	}
	pid := 0
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "says waits"; {
		_, _ = fmt.Sscanf(lines.Text(), "child %d", &pid)
	}
	alive := pid > 0 && isAlive(pid)
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	if !alive {
		t.Fatalf("the parent has no child: %d", pid)
	}
	if !within(patience, func() bool { return !isAlive(pid) }) {
		_ = unix.Kill(pid, unix.SIGKILL)
		t.Errorf("process %d lives on", pid)
	}
}

// The activity of a child is that of its group, and is read from lines whose program has any name.
func TestActivityIsRead(t *testing.T) {
	for text, want := range map[string]stat{
		"12 (sh) S 1 12 12 0 -1 4194560 1 0 0 0 7 5 0 0 20":     {'S', 12, 12},
		"12 (a b) R) T 1 99 12 0 -1 4194560 1 0 0 0 1 0 0 0 20": {'T', 99, 1},
	} {
		if got, ok := parseStat(text); !ok || got != want {
			t.Errorf("%q: %+v, %v; want %+v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "12", "12 (sh", "12 (sh) S 1", "12 (sh) S 1 x 12 0 -1 4194560 1 0 0 0 7 5 0",
		"12 (sh) S 1 1 1 0 -1 0 1 0 0 0 -7 5 0"} {
		if got, ok := parseStat(text); ok {
			t.Errorf("%q: %+v", text, got)
		}
	}
}
