package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"fluentps/internal/disk/durable"
)

// BestName is the name under which a user asks for the best checkpoint of a run, as if it were a folder beside the others.
const BestName = "best"

const (
	bestFile = "best.json"
	bestMax  = 64 << 10 // bytes
)

// Best names the checkpoint of a run that was found to be the best so far.
type Best struct {
	Checkpoint string  `json:"checkpoint"` // the name of its folder
	By         string  `json:"by"`         // accuracy or loss, on the test set
	Value      float64 `json:"value"`
}

// ReadBest returns the best checkpoint in root, or nil if there is none yet.
func ReadBest(root string) (*Best, error) {
	path := filepath.Join(root, bestFile)
	text, err := durable.ReadFile(path, bestMax)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	b := new(Best)
	if err == nil {
		err = json.Unmarshal(text, b)
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoints: %s: %w; remove this file, and the next checkpoint becomes the best", path, err)
	}
	if _, ok := numberOf(b.Checkpoint); !ok {
		return nil, fmt.Errorf("checkpoints: %s names %q, which is not a checkpoint; remove this file, and the next "+
			"checkpoint becomes the best", path, b.Checkpoint)
	}
	return b, nil
}

// Find returns the folder of one checkpoint in root. name is the name of that folder, or BestName.
func Find(root, name string) (string, error) {
	if name == BestName {
		switch b, err := ReadBest(root); {
		case err != nil:
			return "", err
		case b == nil:
			return "", fmt.Errorf("%s has no best checkpoint: checkpoint.best was none, or no checkpoint was evaluated yet; "+
				"name the run folder, %s, for its newest checkpoint", root, filepath.Dir(root))
		default:
			name = b.Checkpoint
		}
	}
	dirs, err := List(root)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, name)
	switch {
	case slices.Contains(dirs, dir):
		return dir, nil
	case len(dirs) == 0:
		return "", fmt.Errorf("there is no checkpoint %s, and no other one in %s", dir, root)
	}
	return "", fmt.Errorf("there is no checkpoint %s; the newest of %d in %s is %s", dir, len(dirs), root, filepath.Base(dirs[0]))
}

// SetBest makes a finished checkpoint of a run the best one. It is atomic: a reader finds the new best checkpoint or the previous one.
func SetBest(run *durable.Folder, b Best) error {
	text, err := json.Marshal(b)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	if err := run.Write(filepath.Join(Folder, bestFile), append(text, '\n')); err != nil {
		return writeError(err)
	}
	return nil
}
