package metrics

import (
	"encoding/json"
	"fmt"

	"fluentps/internal/disk/lock"
)

// RunInfoName is the file of a run folder that its newest start writes before it trains.
const RunInfoName = "run.json"

// StartIn is the token of the newest start that has begun to train in a run folder, from run.json; "": there is none, or it is of
// a version that had no tokens.
func (f *RunFolder) StartIn() string {
	var info struct{ Start string }
	data, err := f.ReadFile(RunInfoName, SummaryMax)
	if err != nil || json.Unmarshal(data, &info) != nil {
		return ""
	}
	return info.Start
}

// CheckStart returns an error if a newer start than this one has taken the folder. A run whose start has ended, and that has
// released its lock, asks this.
func (f *RunFolder) CheckStart(start string) error {
	owner := lock.StartIn(f.Folder)
	if owner == "" {
		owner = f.StartIn()
	}
	if owner != "" && owner != start {
		return fmt.Errorf("the run was started again, and start %s writes %s now", owner, f.Dir)
	}
	return nil
}

// IsOfEarlier says whether a file that names the start that wrote it was left by an earlier one than run.json names.
func IsOfEarlier(file, newest string) bool { return newest != "" && file != newest }
