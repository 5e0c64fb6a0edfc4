package sidestest

import (
	"sync"
	"time"

	"fluentps/internal/configs/configstest"
	"fluentps/ps/workload/dataset"
)

// gateMax is how long a rank waits for the others to begin.
const gateMax = 20 * time.Second

// startGate blocks the first read of each rank's rows until all ranks have asked for theirs.
type startGate struct {
	mu      sync.Mutex
	missing int
	all     chan struct{}
}

func (b *startGate) wait() {
	b.mu.Lock()
	if b.missing--; b.missing == 0 {
		close(b.all)
	}
	b.mu.Unlock()
	select {
	case <-b.all:
	case <-time.After(gateMax):
	}
}

// gatedData is the data of one rank of a startGate.
type gatedData struct {
	dataset.Table
	once *sync.Once
	all  *startGate
}

func (b gatedData) Fill(x []float32, y []int32, rows []int32) {
	b.once.Do(b.all.wait)
	b.Table.Fill(x, y, rows)
}

// Together is a Load with which n workers begin together, so that none is told to stop before it has begun: a fast worker computes
// hundreds of iterations before a busy machine lets another one begin.
func Together(n int) func(rank int, spec dataset.Spec) (*dataset.Set, error) {
	all := &startGate{missing: n, all: make(chan struct{})}
	return func(_ int, spec dataset.Spec) (*dataset.Set, error) {
		set, err := configstest.Data(spec)
		if err != nil {
			return nil, err
		}
		mine := *set
		mine.Train = gatedData{set.Train, new(sync.Once), all}
		return &mine, nil
	}
}
