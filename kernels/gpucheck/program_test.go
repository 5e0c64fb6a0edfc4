package gpucheck

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if os.Getenv(CheckVar) != "" {
		os.Exit(act(NewReport(os.Stdout)))
	}
	os.Exit(m.Run())
}

// act is the process of a check of these tests.
func act(r *Report) (code int) {
	fmt.Println("a line that is no row")
	switch r.Name {
	case "right":
		r.OK(r.Name, fmt.Sprint("batch ", r.Sizes.Batch), "%v", r.Budget)
	case "wrong":
		r.Fail(r.Name, "-", "3, not 4")
		fmt.Fprintln(os.Stderr, strings.Repeat("many\n", 100)+"the end")
		return 1
	case "hang":
		r.OK("before it hung", "-", "")
		time.Sleep(time.Hour)
	case "children": // it ends, and leaves a process behind that holds its pipes
		r.Skip(r.Name, "-", "")
		child := exec.Command("sleep", "3600")
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		if err := child.Start(); err != nil {
			return 3
		}
	case "hanging children":
		child := exec.Command("sh", "-c", "sleep 3600 & sleep 3600")
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		_ = child.Run()
	}
	return 0
}

// A check whose budget is spent is ended with all that it has started: otherwise this test would not end.
func TestProcessesOfChecks(t *testing.T) {
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		sizes  Sizes
		budget time.Duration
		rows   []string
		over   bool
		err    string
		stderr string
	}{
		{"right", Card, time.Hour, []string{"right batch 128 ok 1h0m0s"}, false, "", "a line that is no row"},
		{"right", Emulated, time.Hour, []string{"right batch 1 ok 1h0m0s"}, false, "", "a line that is no row"},
		{"wrong", Card, time.Hour, []string{"wrong - FAIL 3, not 4"}, false, "exit status 1", "the end"},
		{"hang", Card, time.Second, []string{"before it hung - ok "}, true, "", "a line that is no row"},
		{"children", Card, time.Hour, []string{"children - skipped "}, false, "", "a line that is no row"},
		{"hanging children", Card, time.Second, nil, true, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var rows []string
			var ending Ending
			for budget := c.budget; ; budget *= 2 { // on a busy machine, a process may have begun too late for its row
				ending = Program{Path: path}.Start(Check{Name: c.name}, c.sizes, budget, func(r Row) {
					rows = append(rows, fmt.Sprintf("%s %s %s %s", r.Name, r.Size, r.Outcome, r.Text))
				})
				if !c.over || len(rows) >= len(c.rows) {
					break
				}
			}
			text := ""
			if ending.Err != nil {
				text = ending.Err.Error()
			}
			if !slices.Equal(rows, c.rows) || ending.Over != c.over || text != c.err || !strings.Contains(ending.Stderr, c.stderr) {
				t.Errorf("rows %q, %+v; want %q, over %t, error %q, stderr %q", rows, ending, c.rows, c.over, c.err, c.stderr)
			}
			if lines := strings.Count(ending.Stderr, "\n") + 1; lines > tailLines {
				t.Errorf("%d lines of what it wrote, at most %d", lines, tailLines)
			}
		})
	}
	if ending := (Program{Path: "/nonexistent"}).Start(Check{Name: "x"}, Card, time.Second, nil); ending.Err == nil {
		t.Error("a program that is not there was started")
	}
}

// A signal that ends gpu-check ends the process of the check, too, and all that it has started.
func TestASignalEndsTheCheck(t *testing.T) {
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	ending := Program{Path: path}.Start(Check{Name: "hang"}, Card, time.Hour, func(Row) {
		rows++
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			t.Error(err)
		}
	})
	if rows != 1 || ending.Stopped != syscall.SIGTERM || ending.Over || ending.Err != nil {
		t.Errorf("%d rows, %+v", rows, ending)
	}
}
