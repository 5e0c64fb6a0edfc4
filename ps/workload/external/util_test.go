package external

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"fluentps/ps/workload/dataset"
	"fluentps/ps/workload/external/externaltest"
)

func TestMain(m *testing.M) {
	if code, isChild := externaltest.Main(); isChild {
		os.Exit(code)
	}
	_ = os.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0") // of children: they end without a second's rest
	os.Exit(m.Run())
}

// patience is how long a test waits for what must happen.
const patience = 20 * time.Second

const (
	batchMax = 8
	evalMax  = 16
)

// heard collects what a child writes.
type heard struct {
	mu    sync.Mutex
	lines []string
}

func (h *heard) add(line string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, line)
}

func (h *heard) all() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.lines)
}

// withPrefix returns the rest of the first line that begins so.
func (h *heard) withPrefix(begin string) (rest string, found bool) {
	for _, line := range h.all() {
		if rest, found = strings.CutPrefix(line, begin); found {
			return rest, true
		}
	}
	return "", false
}

func optionsOf(mode string) Options {
	return Options{Command: externaltest.Command(mode), Silence: patience,
		Welcome: Welcome{Workers: 1, BatchMax: batchMax, EvalMax: evalMax, Rows: 100, TestRows: 50, Accuracy: true}}
}

// started is a child of a mode, which the test ends.
func started(t testing.TB, mode string, change func(*Options)) *Child {
	t.Helper()
	o := optionsOf(mode)
	if change != nil {
		change(&o)
	}
	c, err := Start(o, externaltest.Shapes())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Kill()
		_ = c.Close()
	})
	return c
}

func rowsOf(rows ...int32) dataset.Batch { return dataset.Batch{Rows: rows, N: len(rows)} }

// apart allocates a vector for each tensor, in memory that no child has.
func apart() [][]float32 {
	var v [][]float32
	for _, p := range externaltest.Shapes().Params() {
		v = append(v, make([]float32, p.N()))
	}
	return v
}

// inRoom allocates them in memory of the child.
func inRoom(t testing.TB, c *Child) [][]float32 {
	t.Helper()
	elements := c.Shapes().Elements()
	mem, err := c.Room(4 * elements)
	if err != nil {
		t.Fatal(err)
	}
	return viewsOf(c, mem)
}

func viewsOf(c *Child, mem []byte) (v [][]float32) {
	r, at := c.placeOf((&region{mem: mem}).floats(0, 1))
	for _, p := range c.Shapes().Params() {
		v = append(v, r.floats(at, p.N()))
		at += 4 * p.N()
	}
	return v
}

// fill copies values, by tensor.
func fill(into, from [][]float32) {
	for i := range into {
		copy(into[i], from[i])
	}
}

// same compares values, bit by bit.
func same(t testing.TB, what string, got, want [][]float32) {
	t.Helper()
	for i := range want {
		if !slices.Equal(got[i], want[i]) {
			t.Errorf("%s %d: %v, want %v", what, i, got[i], want[i])
		}
	}
}

// step computes a step, and checks loss, hits and gradients.
func step(t testing.TB, m *Model, params, grads [][]float32, rows ...int32) {
	t.Helper()
	for _, g := range grads {
		for i := range g {
			g[i] = -99
		}
	}
	wantLoss, wantCorrect, want := externaltest.Compute(params, rows, false, nil)
	loss, correct, err := m.Forward(rowsOf(rows...), func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	if loss != wantLoss || correct != wantCorrect {
		t.Errorf("loss %v, %d hits; want %v, %d", loss, correct, wantLoss, wantCorrect)
	}
	if err := m.Backward(func(int) {}); err != nil {
		t.Fatal(err)
	}
	same(t, "gradient", grads, want)
}

// left is what a test may not leave: open descriptors, names and mapped files in the memory file system, and child processes.
type left struct {
	open, names, mapped, children int
}

// leftNow counts. Descriptors that the Go runtime opens by itself do not count.
func leftNow(t testing.TB) (l left) {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("no /proc: ", err)
	}
	for _, e := range open {
		to, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err == nil && !strings.HasPrefix(to, "anon_inode:") && !strings.HasPrefix(to, "/proc/") {
			l.open++
		}
	}
	names, _ := filepath.Glob("/dev/shm/fluentps-window-*")
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	l.names, l.mapped = len(names), strings.Count(string(maps), " /dev/shm/")
	l.children = len(childrenOf(os.Getpid()))
	return l
}

// childrenOf are the processes of a parent, zombies included.
func childrenOf(parent int) (pids []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		f := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		if len(f) > 1 && f[1] == strconv.Itoa(parent) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// leavesNothing checks at the end of a test that what was started and opened is gone.
func leavesNothing(t testing.TB) {
	t.Helper()
	before := leftNow(t)
	t.Cleanup(func() {
		var now left
		if !within(patience, func() bool {
			now = leftNow(t)
			return now.open <= before.open && now.children <= before.children && now.names <= before.names && now.mapped <= before.mapped
		}) {
			t.Errorf("left are %+v, before the test were %+v", now, before)
		}
	})
}

// within waits until something is so.
func within(most time.Duration, isSo func() bool) bool {
	for end := time.Now().Add(most); ; time.Sleep(5 * time.Millisecond) {
		if isSo() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

// isAlive says whether a process runs, and is no zombie.
func isAlive(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	s, ok := parseStat(string(text))
	return ok && s.state != 'Z' && s.state != 'X'
}

// mustSay checks that there is an error that has each text.
func mustSay(t testing.TB, what string, err error, texts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: there is no error, want %q", what, texts)
		return
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%s: the error is %q, want it to say %q", what, err, text)
		}
	}
}
