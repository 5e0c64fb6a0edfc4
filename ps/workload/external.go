package workload

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"fluentps/internal/disk/durable"
	"fluentps/internal/disk/foreign"
	"fluentps/ps/workload/external"
	"fluentps/ps/workload/shapes"
)

// externalEntry is a model in another process. Its architecture is in a file, and its samples are where it computes.
var externalEntry = ModelEntry{Name: external.Name, Doc: "a program of your own", elsewhere: true, New: newExternal}

// IsExternal says whether a model is another process, which has the samples.
func IsExternal(name string) bool { return modelOf(name).elsewhere }

// Housed is a Model in another process. What it is bound to in memory of Room is not copied between the processes.
type Housed interface {
	Model
	Room(bytes int) ([]byte, error)
	// Lend does the same for all of a file that is mapped at mem. Both must stay as long as the model's process does.
	Lend(f *os.File, mem []byte) error
}

// externalModel is the model that a child computes.
type externalModel struct {
	*external.Model
	child *external.Child
}

func newExternal(s ModelSpec, _ Samples, _ Device, _ int) (Model, error) {
	if s.Child == nil {
		return nil, errors.New("model external: only the workers of a run compute it; nothing else starts its program")
	}
	slot := external.Training
	if s.Evaluates {
		slot = external.Evaluation
	}
	return &externalModel{s.Child.Model(slot), s.Child}, nil
}

func (m *externalModel) Room(bytes int) ([]byte, error) { return m.child.Room(bytes) }

func (m *externalModel) Lend(f *os.File, mem []byte) error { return m.child.Lend(f, mem) }

// Clone returns a model that evaluates: a child trains one.
func (m *externalModel) Clone() (Model, error) {
	return &externalModel{m.child.Model(external.Evaluation), m.child}, nil
}

// shapesFiles are the files read so far: a configuration is checked in many places, and a file is read once while it does not change.
var shapesFiles struct {
	sync.Mutex
	by map[string]shapesFile
}

type shapesFile struct {
	size int64
	at   time.Time
	a    *Architecture
}

// readShapes reads the file of an architecture. Its error names the key.
func readShapes(path string) (*Architecture, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("model.shapes: %s does not exist; write it with: fluentps probe CONFIG --out %[1]s", foreign.Text(path))
	}
	if err != nil {
		return nil, fmt.Errorf("model.shapes: %w", err)
	}
	shapesFiles.Lock()
	defer shapesFiles.Unlock()
	if f, known := shapesFiles.by[path]; known && f.size == info.Size() && f.at.Equal(info.ModTime()) {
		return f.a, nil
	}
	f, err := durable.Open(path)
	if err != nil {
		return nil, fmt.Errorf("model.shapes: %w", err)
	}
	defer f.Close()
	a, err := shapes.Read(foreign.Text(path), f)
	if err != nil {
		return nil, fmt.Errorf("model.shapes: %w", err)
	}
	if shapesFiles.by == nil {
		shapesFiles.by = map[string]shapesFile{}
	}
	shapesFiles.by[path] = shapesFile{info.Size(), info.ModTime(), a}
	return a, nil
}
