package station

import (
	"fmt"

	"fluentps/internal/rank/link"
)

// data identifies the data set that a rank has read.
type data struct {
	SHA256              string
	Rows, Test, Columns int
}

// SameData returns a usage error if ranks have read different data: otherwise a host with an old copy would silently
// train something else.
func (s *Station) SameData() error {
	mine := data{SHA256: s.Set.SHA256(), Rows: s.Set.Train.Rows(), Test: s.Set.Test.Rows(), Columns: s.Set.Train.Cols()}
	all, err := link.Gather(s.Net, mine)
	if err != nil {
		return err
	}
	verdict := ""
	for i, d := range all {
		if d != all[0] {
			verdict = fmt.Sprintf("%s reads other data than rank 0: %d training rows, %d test rows, %d columns, sha256 "+
				"%.12s against %d, %d, %d, %.12s; put the same files on all hosts",
				s.Net.Place(i), d.Rows, d.Test, d.Columns, d.SHA256, all[0].Rows, all[0].Test, all[0].Columns, all[0].SHA256)
			break
		}
	}
	if err := link.Spread(s.Net, &verdict); err != nil {
		return err
	}
	if verdict != "" {
		return Usage("%s", verdict)
	}
	return nil
}
