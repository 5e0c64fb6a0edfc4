package metrics

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"fluentps/internal/disk/foreign"
	"fluentps/internal/disk/lock"
)

// OpenRunFolder opens the folder of a run that resumes.
func OpenRunFolder(dir string) (*RunFolder, error) {
	f := At(dir)
	err := f.Err()
	if err == nil {
		err = f.checkOwner()
	} else {
		err = folderError(dir, err)
	}
	if err == nil {
		logs := f.MakeIn("logs", 0o777)
		if err = errors.Join(logs.Err(), logs.Close()); err != nil {
			err = folderError(dir, err)
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// IsRunFolder says whether a run has begun in the folder. A run makes logs first, then the lock, then all other files.
func IsRunFolder(dir string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, e := range entries {
		if name := e.Name(); name == RunInfoName || name == lock.Name || name == "logs" && len(entries) == 1 {
			return true
		}
	}
	return false
}

// FindRun returns the run folder that a folder stands for: itself, or the newest run of an experiment. That is the one to which its link
// latest points, or the one of a job script, which makes no link, if it began later; or the only one. The points of a sweep are no
// experiment: one of them must be named.
func FindRun(dir string) (string, error) {
	if IsRunFolder(dir) {
		return dir, nil
	}
	entries, _ := os.ReadDir(dir) // what cannot be read has no runs
	newest, others := "", []string{}
	for _, e := range entries { // sorted by name, and those that run has named begin with the time
		switch name := e.Name(); {
		case !e.IsDir() || !IsRunFolder(filepath.Join(dir, name)):
		case isStamped(name):
			newest = name
		default:
			others = append(others, name)
		}
	}
	if link, err := os.Readlink(filepath.Join(dir, latestLink)); err == nil && IsRunFolder(filepath.Join(dir, link)) {
		newest = link
	}
	switch {
	case len(others) > 1:
		return "", fmt.Errorf("%s is not the folder of one run: it has %d, such as %s; name one of them", dir, len(others),
			foreign.Word(filepath.Join(dir, others[0])))
	case len(others) == 1 && (newest == "" || beganAt(filepath.Join(dir, others[0])).After(beganAt(filepath.Join(dir, newest)))):
		newest = others[0]
	case newest == "":
		return "", fmt.Errorf("%s is not the folder of a run: it has neither run.json nor run.lock; name the folder that "+
			"run printed as \"Run folder\", or the one of an experiment, with a run in it", dir)
	}
	return filepath.Join(dir, newest), nil
}

// isStamped says whether run gave a folder its name.
func isStamped(name string) bool {
	stamp, _, _ := strings.Cut(name, "-")
	_, err := time.Parse(stampLayout, stamp)
	return err == nil
}

// beganAt is when a run began for the last time: it then writes run.json.
func beganAt(run string) time.Time {
	info, err := os.Stat(filepath.Join(run, RunInfoName))
	if err != nil {
		info, err = os.Stat(run)
	}
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

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
