package supervise

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/disk/durable"
	"fluentps/internal/show/metrics"
)

// row is a combination of the table in FAULTS.md, with what each way to start a run makes of it.
type row struct {
	summary, whole, launcher      string
	supervised, jobScript, barely string
}

// table reads the table of combinations in FAULTS.md.
func table(t *testing.T) (rows []row) {
	t.Helper()
	text, err := os.ReadFile("../../../ps/FAULTS.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text),
		"| summary of this start | its checkpoint | launcher's code | `--restarts` | job script | bare launcher |\n")
	if !found {
		t.Fatal("FAULTS.md has no table of combinations")
	}
	for line := range strings.Lines(rest) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 6 {
			break
		}
		for i := range cells {
			cells[i] = strings.TrimPrefix(strings.TrimSpace(cells[i]), "code ")
		}
		if !strings.HasPrefix(cells[0], "---") {
			rows = append(rows, row{cells[0], cells[1], cells[2], cells[3], cells[4], cells[5]})
		}
	}
	if len(rows) < 15 {
		t.Fatalf("the table has %d rows only", len(rows))
	}
	return rows
}

// finishedBy is Summary.Finished for a word of the table.
var finishedBy = map[string]string{
	"stopped in evaluation": metrics.FinishedStopped + "SIGUSR1" + metrics.Unevaluated,
	"failed":                "diverged: x", "target missed": "target 0.9 not reached", "stopped": "stopped by a signal to rank 1",
	"closed output": "stopped by a closed output, which nobody reads any more", "ok": "ok", "another start's": "ok",
}

// leave makes a run folder with the evidence of a row, of the start with that token.
func (r row) leave(t *testing.T, token string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	d, err := checkpoint.Begin(durable.Below(dir), token)
	if err != nil {
		t.Fatal(err)
	}
	file, err := checkpoint.WriteFile(d.In, checkpoint.ServerFile(0), 1)
	if err != nil {
		t.Fatal(err)
	}
	made, err := d.Finish(&checkpoint.Manifest{Start: token, Iteration: 7, Servers: 1, Workers: 1, Starts: []int64{7},
		Files: []checkpoint.Entry{file}})
	if err != nil {
		t.Fatal(err)
	}
	if r.whole == "not whole" {
		if err := os.Remove(filepath.Join(made, "manifest.json")); err != nil {
			t.Fatal(err)
		}
	}
	if r.summary == "none" {
		return dir
	}
	if r.summary == "another start's" {
		token = "other.1"
	}
	text := "{\n  \"start\": \"" + token + "\",\n  \"finished\": \"" + finishedBy[r.summary] +
		"\",\n  \"checkpoint\": \"checkpoints/" + filepath.Base(made) + "\",\n  \"mode\": \"mpi\"\n}\n"
	if finishedBy[r.summary] == "" || os.WriteFile(filepath.Join(dir, "summary.json"), []byte(text), 0o666) != nil {
		t.Fatalf("%q is no word of the table", r.summary)
	}
	return dir
}

// The supervisor makes of each combination what FAULTS.md says.
func TestEachCombinationIsJudgedAsThePageSays(t *testing.T) {
	for _, r := range table(t) {
		launcher, err := strconv.Atoi(r.launcher)
		if err != nil {
			t.Fatal(err)
		}
		var said []string
		s := supervisor{Options: Options{Dir: r.leave(t, "7.1"), Say: func(text string) { said = append(said, text) }}}
		end, over := s.conclude(launcher, "7.1", false)
		got := "restart"
		if over {
			got = strconv.Itoa(end.Code)
		}
		if over && len(said) > 0 && end.Code == 0 {
			got += ", warning"
		}
		if got != r.supervised {
			t.Errorf("%+v: the supervisor gives %q", r, got)
		}
	}
}

// What the supervisor's own wish to stop has left processes say is no reason to end the run; a user's wish is.
func TestAStopOfLeftProcessesIsNoEnd(t *testing.T) {
	stopped := row{summary: "stopped", whole: "whole"}
	for _, asked := range []bool{false, true} {
		s := supervisor{Options: Options{Dir: stopped.leave(t, "7.1"), Say: func(string) {}}, stopped: asked}
		if end, over := s.conclude(137, "7.1", true); over != asked || asked && end.Code != codeStopped {
			t.Errorf("asked %v: over %v, code %d", asked, over, end.Code)
		}
	}
}
