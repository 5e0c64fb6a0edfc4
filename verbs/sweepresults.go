package verbs

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"fluentps/ps/durable"
	reports "fluentps/ps/report"
	"fluentps/ps/report/folder"
)

// results writes the results of a sweep as CSV: a row for each run, and means and deviations over the seeds. A run that has not begun
// has a row without numbers.
func (s *sweep) results(w io.Writer) error {
	var points []reports.Point
	for i, p := range s.points {
		run, err := folder.Read(s.folder(i))
		if err != nil {
			run = &reports.Run{Folder: s.folder(i)}
		}
		points = append(points, reports.Point{Set: p.Set, Run: run})
	}
	each, means := reports.SweepTables(points)
	f := durable.Below(s.dir)
	defer f.Close()
	if err := errors.Join(f.Write(each.ID+".csv", each.CSV()), f.Write(means.ID+".csv", means.CSV())); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "Results: %s; mean and deviation over seeds: %s\n", filepath.Join(s.dir, each.ID+".csv"), filepath.Join(s.dir, means.ID+".csv"))
	return err
}
