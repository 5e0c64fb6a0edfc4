package status

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/disk/durable"
	"fluentps/internal/show/metrics"
)

// Run is the picture of a run, from the files in its folder.
type Run struct {
	Dir        string     `json:"dir"`
	Name       string     `json:"name"`
	Mode       string     `json:"mode"` // mpi or local
	Started    string     `json:"started"`
	Now        time.Time  `json:"now"`
	Ended      string     `json:"ended"`                // finished of summary.json; "": there is no summary
	Checkpoint string     `json:"checkpoint,omitempty"` // the newest one; "": none
	SavedAt    *time.Time `json:"saved_at,omitempty"`   // when that checkpoint was finished
	Size       int        `json:"size"`                 // number of ranks
	Ranks      []Rank     `json:"ranks"`                // those that can be read, ascending
	Damaged    []string   `json:"damaged,omitempty"`    // files that cannot be read, and why

	unread   int                        // ranks whose files are damaged
	isUnsure bool                       // the summary is damaged
	servers  map[int32]map[int32]served // by server and shard, made when it is first needed
}

// rereads is how often a file that is half written is read again.
const rereads = 5

// Read reads the folder of a run, or the newest one of an experiment.
func Read(dir string, now time.Time) (*Run, error) {
	dir, err := metrics.FindRun(dir)
	if err != nil {
		return nil, err
	}
	r := &Run{Dir: dir, Now: now}
	var info struct {
		Mode, Started, Start string
		Ranks                []struct{ Rank int }
	}
	if err := readJSON(filepath.Join(dir, metrics.RunInfoName), metrics.SummaryMax, &info); err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.Damaged = append(r.Damaged, err.Error())
	}
	r.Mode, r.Started, r.Size = info.Mode, info.Started, len(info.Ranks)
	var s struct{ Name, Finished, Start string }
	if err := readJSON(filepath.Join(dir, metrics.SummaryName), metrics.SummaryMax, &s); err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.Damaged, r.isUnsure = append(r.Damaged, err.Error()), true
	}
	r.Name = s.Name
	if !metrics.IsOfEarlier(s.Start, info.Start) {
		r.Ended = s.Finished
	}
	r.readRanks(info.Start)
	r.readCheckpoints()
	return r, nil
}

func (r *Run) readCheckpoints() {
	all, err := checkpoint.List(filepath.Join(r.Dir, checkpoint.Folder))
	if err != nil {
		r.Damaged = append(r.Damaged, err.Error())
	}
	if len(all) == 0 {
		return
	}
	r.Checkpoint = filepath.Base(all[0])
	if info, err := os.Stat(all[0]); err == nil {
		at := info.ModTime()
		r.SavedAt = &at
	}
}

func (r *Run) readRanks(start string) {
	entries, err := os.ReadDir(filepath.Join(r.Dir, "logs"))
	if err != nil {
		r.Damaged = append(r.Damaged, err.Error())
		return
	}
	for _, e := range entries {
		if !isFile(e.Name()) {
			continue
		}
		var rank Rank
		err := readJSON(filepath.Join(r.Dir, "logs", e.Name()), fileMax, &rank)
		for range rereads {
			if err == nil || errors.Is(err, fs.ErrNotExist) {
				break
			}
			time.Sleep(10 * time.Millisecond)
			err = readJSON(filepath.Join(r.Dir, "logs", e.Name()), fileMax, &rank)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err == nil && FileName(rank.Rank) != filepath.Join("logs", e.Name()):
			r.damaged(fmt.Errorf("%s: it says that it is of rank %d", e.Name(), rank.Rank))
		case err != nil:
			r.damaged(err)
		case r.isOfEarlier(&rank, start):
		default:
			r.Ranks = append(r.Ranks, rank)
		}
	}
	slices.SortFunc(r.Ranks, func(a, b Rank) int { return a.Rank - b.Rank })
	r.Size = max(r.Size, len(r.Ranks))
}

// isOfEarlier says whether a rank was of an earlier start than run.json. Without a token it was of one that had more
// ranks: run.json does not have it, and it has told nothing since that was written.
func (r *Run) isOfEarlier(of *Rank, start string) bool {
	if of.Start != "" || start != "" {
		return metrics.IsOfEarlier(of.Start, start)
	}
	started, err := time.Parse(time.RFC3339, r.Started)
	return err == nil && r.Size > 0 && of.Rank >= r.Size && of.At.Before(started)
}

// damaged notes that the file of a rank cannot be used.
func (r *Run) damaged(why error) {
	r.Damaged = append(r.Damaged, why.Error())
	r.unread++
}

func readJSON(path string, most int64, into any) error {
	data, err := durable.ReadFile(path, most)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
