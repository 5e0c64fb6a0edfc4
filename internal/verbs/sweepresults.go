package verbs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/urfave/cli/v2"

	"fluentps/internal/disk/durable"
	"fluentps/internal/disk/foreign"
	reports "fluentps/internal/show/report"
	"fluentps/internal/show/report/folder"
)

// results writes the results of a sweep.
func (s *sweep) results(w io.Writer) error {
	var sets [][]string
	var folders []string
	for i, p := range s.points {
		sets, folders = append(sets, p.Set), append(folders, s.folder(i))
	}
	return sweepResults(w, s.dir, sets, folders)
}

// sweepResults writes the results of a sweep as CSV: a row for each run, and means and deviations over the seeds. A run that has not begun
// has a row without numbers.
func sweepResults(w io.Writer, dir string, sets [][]string, folders []string) error {
	var points []reports.Point
	for i, set := range sets {
		run, err := folder.Read(folders[i])
		if err != nil {
			run = &reports.Run{Folder: folders[i]}
		}
		points = append(points, reports.Point{Set: set, Run: run})
	}
	each, means := reports.SweepTables(points)
	f := durable.Below(dir)
	defer f.Close()
	if err := errors.Join(f.Write(each.ID+".csv", each.CSV()), f.Write(means.ID+".csv", means.CSV())); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "Results: %s; mean and deviation over seeds: %s\n",
		foreign.Text(filepath.Join(dir, each.ID+".csv")), foreign.Text(filepath.Join(dir, means.ID+".csv")))
	return err
}

// reportSweeps writes the results of the sweeps among folders that a report is of. The report is whole without them.
func reportSweeps(c *cli.Context, dirs []string) {
	for _, dir := range dirs {
		sets, folders := folder.Sweep(dir)
		if len(sets) == 0 {
			continue
		}
		if err := sweepResults(c.App.Writer, dir, sets, folders); err != nil {
			printError(c.App.ErrWriter, fmt.Sprintf("WARNING: the results of the sweep %s were not written, and the report "+
				"is there: %v", foreign.Word(dir), err))
		}
	}
}

// sweepRun is the name of the folder of a run of a sweep.
var sweepRun = regexp.MustCompile(`^[0-9]{4}$`)

// sweepEnds writes the results of the sweep that a run is of, if that was its last one: of the tasks of an array none is there later. What
// goes wrong here is a warning, because the result of the run stands.
func (j *job) sweepEnds(dir string) {
	dir, err := filepath.Abs(dir)
	if err != nil || !sweepRun.MatchString(filepath.Base(dir)) {
		return
	}
	if _, err := os.Stat(dir + ".yaml"); err != nil {
		return
	}
	all, err := os.ReadDir(filepath.Dir(dir))
	for i := len(all) - 1; i >= 0 && err == nil; i-- { // one that has not finished is found soonest from the end
		name, isConfig := strings.CutSuffix(all[i].Name(), ".yaml")
		if isConfig && sweepRun.MatchString(name) && !finished(filepath.Join(filepath.Dir(dir), name)) {
			return
		}
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("bug in fluentps: %v", p)
		}
		if err != nil {
			printError(j.warn, fmt.Sprintf("WARNING: the results of the sweep were not written, and nothing else is "+
				"missing: %v; fluentps report %s writes them", err, foreign.Word(filepath.Dir(dir))))
		}
	}()
	if sets, folders := folder.Sweep(filepath.Dir(dir)); err == nil && len(sets) > 0 {
		err = sweepResults(j.out, filepath.Dir(dir), sets, folders)
	}
}
