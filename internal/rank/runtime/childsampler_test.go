package runtime

import (
	"path/filepath"
	"strings"
	"testing"

	"fluentps/ps/workload/external/externaltest"
)

// A run whose program picks its samples trains, also in steps that end by a clock. A resume of it warns once that it cannot have the bits
// of a run that was not interrupted; other resumes do not.
func TestAProgramThatPicksItsSamples(t *testing.T) {
	shapes := shapesFile(t)
	script := "data={set: external, rows: 480, test_rows: 200, sampler: script}"
	mustTrain(t, withChild(t, shapes, externaltest.Well, script, "work={policy: anytime, time: 1ms, micro: 8}", updates(5)), 3)
	mustTrain(t, withChild(t, shapes, externaltest.Well, script, "work={shares: [1, 2]}", updates(5)), 3)
	for sampler, want := range map[string]int{"script": 1, "run": 0} {
		set := []string{strings.Replace(script, "script", sampler, 1)}
		dir := filepath.Join(t.TempDir(), "out")
		mustRunPart(t, withChild(t, shapes, externaltest.Well, append(set, updates(5))...), 3, dir, "")
		var said lines
		res, errs := runPart(t, withChild(t, shapes, externaltest.Well, append(set, updates(9))...), 3, dir, dir,
			func(o *Options) { o.Warn = &said })
		for _, err := range errs {
			if err != nil {
				t.Fatal(err)
			}
		}
		if n := strings.Count(said.String(), "data.sampler is script"); n != want || res[0].Summary.Resumed == nil {
			t.Errorf("sampler %s: the warning came %d times, want %d:\n%s", sampler, n, want, said.String())
		}
	}
}
