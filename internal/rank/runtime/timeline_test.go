package runtime

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fluentps/internal/comm"
	"fluentps/internal/show/metrics"
	"fluentps/internal/show/timeline"
	"fluentps/internal/show/timeline/timelinetest"
)

// timelineOf trains with a timeline, and returns it, checked. start is the iteration at which the run, or its part, begins.
func timelineOf(t *testing.T, dir string, start int64, resume string, set ...string) timelinetest.Figures {
	t.Helper()
	_, errs := world(t, load(t, append(set, "metrics.trace=true")...), 5, func(o *Options) {
		if o.Resume = resume; o.Transport.Rank() == 0 {
			o.Lead.Folder = &metrics.FolderSpec{}
			if resume == "" {
				o.Lead.Folder.Out = dir
			}
		}
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	trace, err := timelinetest.Read(filepath.Join(dir, timeline.NameFrom(start)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, timeline.Folder)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("parts are left: %v", err)
	}
	return trace.Figures()
}

// Timelines of runs in all kinds of ways are right by the format. The ways of pushes begin at a push, end at its pull, and lead through a
// fold and a reply, except where a push has no answer of its own.
func TestTimelines(t *testing.T) {
	for name, c := range map[string]struct {
		set          []string
		whole        bool // at least half of the pushes have a whole way
		overlap      bool // some pushes begin during backward
		withoutArrow bool // no push is answered by itself
	}{
		"bsp":        {set: []string{"cluster.placement=spread"}, whole: true, overlap: true},
		"colocate":   {set: []string{"cluster.placement=colocate"}, whole: true},
		"no overlap": {set: []string{"send.overlap=false"}, whole: true},
		"asp":        {set: []string{"sync=[{match: '*', scheme: asp}]"}, whole: true, overlap: true},
		"essp":       {set: []string{"sync=[{match: '*', scheme: essp, staleness: 2}]"}, overlap: true},
		"r2sp":       {set: []string{"sync=[{match: '*', scheme: r2sp}]"}, whole: true, overlap: true},
		"node":       {set: []string{"cluster.hierarchy=node"}, whole: true},
		"local":      {set: []string{"local={policy: averaging, steps: 3}"}, whole: true},
		"hpsgd":      {set: []string{"local={policy: hpsgd}"}, whole: true},
		"flexrr":     {set: []string{"work={policy: flexrr}", "sync=[{match: '*', scheme: ssp, staleness: 1}]"}, overlap: true},
		"pslite":     {set: []string{"baseline=pslite"}, whole: true},
		"allreduce":  {set: []string{"baseline=allreduce"}, overlap: true, withoutArrow: true},
	} {
		if !runsInRaceMode(name, "bsp", "node", "hpsgd", "flexrr", "allreduce") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			f := timelineOf(t, filepath.Join(t.TempDir(), "out"), 0, "", c.set...)
			t.Logf("%+v", f)
			if f.Ranks != 5 || f.Pushes == 0 || f.Loose > 0 || c.whole && 2*f.Whole < f.Pushes || c.overlap &&
				f.Overlapped == 0 || c.withoutArrow && f.Whole > 0 {
				t.Errorf("%+v", f)
			}
			if name == "no overlap" && f.Overlapped > 0 {
				t.Errorf("%d pushes during backward", f.Overlapped)
			}
		})
	}
}

// A run that resumes has a timeline of its own, and joins what a killed part has left.
func TestTimelineOfAResumedRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	timelineOf(t, dir, 0, "", "train.stop={updates: 20}")
	killed, first := timeline.PartName(7, 1), []byte("[{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"args\":{\"name\":\"a\"}}\n")
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(first); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(z.Close(), os.Mkdir(filepath.Join(dir, timeline.Folder), 0o777),
		os.WriteFile(filepath.Join(dir, timeline.Folder, killed), b.Bytes(), 0o666)); err != nil {
		t.Fatal(err)
	}
	if f := timelineOf(t, dir, 20, dir, "train.stop={updates: 40}"); f.Whole == 0 || f.Loose > 0 {
		t.Errorf("%+v", f)
	}
	for start, rank := range map[int64]int{0: 4, 7: 1, 20: 4} {
		trace, err := timelinetest.Read(filepath.Join(dir, timeline.NameFrom(start)))
		if err != nil || trace.Processes[rank] == "" {
			t.Errorf("from %d: %v", start, err)
		}
	}
	// A run that begins once more at that checkpoint overwrites no timeline.
	kept, err := os.ReadFile(filepath.Join(dir, timeline.NameFrom(20)))
	if err != nil {
		t.Fatal(err)
	}
	timelineOf(t, dir, 20, filepath.Join(dir, "checkpoints", "000000000001"), "train.stop={updates: 40}")
	now, err := os.ReadFile(filepath.Join(dir, timeline.NameFrom(20)))
	if err != nil || !bytes.Equal(kept, now) {
		t.Errorf("the timeline of the earlier part was overwritten: %v", err)
	}
	if trace, err := timelinetest.Read(filepath.Join(dir, "trace-from-20-2.json.gz")); err != nil || trace.Processes[4] == "" {
		t.Error(err)
	}
}

// wrongClock is a transport whose clock may be wrong by a second.
type wrongClock struct{ comm.Transport }

func (wrongClock) ClockError() time.Duration { return time.Second }

// Where a rank's clock is known too badly, the log says so, and no arrow leads to the rank: not from the pushes of a worker, and not
// through the folds of a server.
func TestTimelineWithoutAlignment(t *testing.T) {
	for _, wrong := range []int{0, 1, 4} {
		dir := filepath.Join(t.TempDir(), "out")
		warned := &lines{}
		_, errs := world(t, load(t, "metrics.trace=true", "cluster={servers: 2, placement: spread}"), 5, func(o *Options) {
			if o.Warn = warned; o.Transport.Rank() == 0 {
				o.Lead.Folder = &metrics.FolderSpec{Out: dir}
			}
			if o.Transport.Rank() == wrong {
				o.Transport = wrongClock{o.Transport}
			}
		})
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		trace, err := timelinetest.Read(filepath.Join(dir, timeline.Name))
		if err != nil {
			t.Fatal(err)
		}
		if text := warned.String(); strings.Count(text, "is not aligned with rank 0's") != 1 ||
			!strings.Contains(text, fmt.Sprintf("rank %d, ", wrong)) {
			t.Errorf("rank %d: warned of %q", wrong, text)
		}
		if f := trace.Figures(); f.Spans == 0 || f.Loose > 0 || f.Pushes == 0 {
			t.Errorf("rank %d: %+v", wrong, f)
		}
		others := 0
		for id, a := range trace.Arrows {
			for _, s := range a.Spans {
				if s.Pid == wrong {
					t.Errorf("arrow %s touches rank %d", id, wrong)
				}
			}
			others++
		}
		if c := trace.Clocks[wrong]; c.Aligned || c.ErrorUs != 1e6 || c.Why == "" || others == 0 {
			t.Errorf("rank %d: clock %+v, %d arrows", wrong, c, others)
		}
	}
}
