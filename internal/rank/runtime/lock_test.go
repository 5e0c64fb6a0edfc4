package runtime

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/disk/lock"
	"fluentps/internal/rank/resume"
	"fluentps/internal/show/metrics"
	"fluentps/internal/show/metrics/timings"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
)

// callbackData is data that calls a function when its first rows are read.
type callbackData struct {
	dataset.Table
	once *sync.Once
	do   func()
}

func (c callbackData) Fill(x []float32, y []int32, rows []int32) {
	c.once.Do(c.do)
	c.Table.Fill(x, y, rows)
}

// meanwhile calls do once training has begun.
func meanwhile(do func()) func(*Options) {
	once := new(sync.Once)
	return func(o *Options) {
		o.Load = func(spec workload.DataSpec) (*dataset.Set, error) {
			set, err := cached(spec)
			if err != nil {
				return nil, err
			}
			mine := *set
			mine.Train = callbackData{set.Train, once, do}
			return &mine, nil
		}
	}
}

// While a run writes its folder, no other run is resumed in it. Afterwards one is, and finds the checkpoints of the first.
func TestOneRunAtATimeGoesOnInAFolder(t *testing.T) {
	t.Parallel() // it mostly waits
	dir := filepath.Join(t.TempDir(), "out")
	mustRunPart(t, load(t, "train.stop={updates: 3}"), 6, dir, "")
	var second []error
	res, errs := runPart(t, load(t, "train.stop={updates: 9}"), 6, dir, dir, meanwhile(func() {
		_, second = runPart(t, load(t, "train.stop={updates: 9}"), 6, dir, resume.Auto, nil)
	}))
	if s := mustAgree(t, CodeOK, res, errs).Summary; s.Iterations != 9 {
		t.Errorf("the first came to iteration %d, want 9", s.Iterations)
	}
	for rank, err := range second {
		var agreed *ExitError
		if !errors.As(err, &agreed) || agreed.Code != CodeUsage ||
			!strings.Contains(err.Error(), dir+" is in use by a run that is alive: process ") {
			t.Fatalf("rank %d of the second: %v", rank, err)
		}
	}
	if s := mustRunPart(t, load(t, "train.stop={updates: 12}"), 6, dir, dir).Summary; s.Resumed.Iteration != 9 {
		t.Errorf("resumed at iteration %d, want 9", s.Resumed.Iteration)
	}
	if _, err := os.Stat(filepath.Join(dir, lock.Name)); err == nil {
		t.Error("a run that has ended left its lock")
	}
}

// A run whose folder another run has taken over ends, and writes no checkpoint, summary or metrics there.
func TestARunThatHasLostItsFolderWritesNoCheckpoint(t *testing.T) {
	for name, set := range map[string][]string{
		"without checkpoints": {"train.stop={updates: 24}", "checkpoint.keep=0"},
		"at the end":          {"train.stop={updates: 24}"},
		"on the way":          {"train.stop={time: 10h}", "checkpoint.every_updates=1"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "out")
			path := filepath.Join(dir, lock.Name)
			const other = `{"host": "far", "pid": 7, "token": "other"}` + "\n0\n"
			_, errs := runPart(t, load(t, set...), 6, dir, "", meanwhile(func() {
				if err := errors.Join(os.Remove(path), os.WriteFile(path, []byte(other), 0o666)); err != nil {
					t.Error(err)
				}
			}))
			var lost *lock.LostError
			if !errors.As(errs[0], &lost) || !strings.Contains(lost.Error(), "is now that of process 7 on far") {
				t.Errorf("rank 0 ended with %v", errs[0])
			}
			if dirs, err := checkpoint.List(filepath.Join(dir, checkpoint.Folder)); err != nil || len(dirs) > 0 {
				t.Errorf("checkpoints %v, %v", dirs, err)
			}
			for _, name := range []string{metrics.SummaryName, "summary.txt", "metrics.jsonl", "histograms.csv", timings.FileName} {
				if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Size() > 0 {
					t.Errorf("it wrote %s", name)
				}
			}
			if text, _ := os.ReadFile(path); string(text) != other {
				t.Errorf("the other's lock is %q", text)
			}
		})
	}
}

// A run whose folder is renamed, replaced or removed ends, with one code on all ranks. It says what has become of the folder and changes
// nothing of what has the name; the checkpoints that it had written are whole, and training continues from them where they are.
func TestARunWhoseFolderIsExchangedEndsAndSaysSo(t *testing.T) {
	for name, c := range map[string]struct {
		exchange func(dir, away string) error
		said     string // with %s for the two paths
	}{
		"renamed": {os.Rename, "%s was renamed to %s while the run wrote it, and nothing has its name now"},
		"replaced": {func(dir, away string) error {
			foreign := dir + "-foreign"
			return errors.Join(os.MkdirAll(filepath.Join(foreign, checkpoint.Folder), 0o777),
				os.WriteFile(filepath.Join(foreign, metrics.SummaryName), []byte("mine"), 0o666),
				os.Rename(dir, away), os.Rename(foreign, dir))
		}, "%s was renamed to %s while the run wrote it, and another folder has its name now"},
		// a file is there again sooner than the folder is empty, so the lock may be all that is seen to be gone
		"removed": {func(dir, _ string) error { return os.RemoveAll(dir) }, "was removed"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			dir, away := filepath.Join(root, "out"), filepath.Join(root, "away")
			exchanged := make(chan error, 1)
			_, errs := runPart(t, load(t, "train.stop={time: 10h}", "checkpoint={every_updates: 5, keep: 3}"), 6, dir, "", meanwhile(func() {
				go func() {
					for end := time.Now().Add(waitMax); time.Now().Before(end); time.Sleep(time.Millisecond) {
						if all, _ := checkpoint.List(filepath.Join(dir, checkpoint.Folder)); len(all) > 0 {
							exchanged <- c.exchange(dir, away)
							return
						}
					}
					exchanged <- errors.New("no checkpoint was written")
				}()
			}))
			if err := <-exchanged; err != nil && name != "removed" {
				t.Fatal(err)
			}
			said := strings.Replace(strings.Replace(c.said, "%s", dir, 1), "%s", away, 1)
			known := 0
			for rank, err := range errs {
				var lost *lock.LostError
				var agreed *ExitError
				if err == nil || errors.As(err, &agreed) { // the caller aborts the world with one code
					t.Errorf("rank %d ended with %v", rank, err)
				} else if errors.As(err, &lost) && strings.Contains(err.Error(), said) {
					known++
				}
			}
			if known == 0 {
				t.Errorf("nobody said %q: %v", said, errs)
			}
			if name == "removed" {
				return
			}
			var left []string
			_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
				if err == nil && !d.IsDir() {
					text, _ := os.ReadFile(path)
					left = append(left, filepath.Base(path)+"="+string(text))
				}
				return nil
			})
			if want := metrics.SummaryName + "=mine"; name == "replaced" && strings.Join(left, " ") != want || name == "renamed" && len(left) > 0 {
				t.Errorf("under the name there is %q", left)
			}
			all, err := checkpoint.List(filepath.Join(away, checkpoint.Folder))
			if err != nil || len(all) == 0 {
				t.Fatalf("%v, %v", all, err)
			}
			for _, one := range all {
				if err := checkpoint.Whole(one); err != nil {
					t.Error(err)
				}
			}
			if s := mustRunPart(t, load(t, "train.stop={updates: 100000, time: 100ms}"), 6, away, away).Summary; s.Resumed == nil {
				t.Error("training did not go on where the folder is")
			}
		})
	}
}

// A run that is refused changes nothing of the run that it was to resume but logs.
func TestARefusedResumeChangesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	mustRunPart(t, load(t, "train.stop={updates: 3}", "metrics.digests=1"), 6, dir, "")
	read := func() map[string]string {
		files := map[string]string{}
		err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) == ".log" {
				return err
			}
			text, err := os.ReadFile(path)
			files[path] = string(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	before := read()
	_, errs := runPart(t, load(t, "train.stop={updates: 9}", "metrics.digests=1", "seed=4711"), 6, dir, dir, nil)
	var agreed *ExitError
	if !errors.As(errs[0], &agreed) || agreed.Code != CodeUsage {
		t.Fatalf("rank 0 ended with %v", errs[0])
	}
	after := read()
	for path, text := range before {
		if after[path] != text {
			t.Errorf("%s was changed", path)
		}
	}
	if len(after) != len(before) {
		t.Errorf("%d files, before %d", len(after), len(before))
	}
}
