package runtime

import (
	"strings"
	"sync"

	"fluentps/ps/workload"
)

// lines is a buffer that many ranks may write to.
type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

var (
	cacheMu sync.Mutex
	cache   = map[workload.DataSpec]*workload.Set{}
)

// cached reads each data set once for all tests: sets are read-only.
func cached(spec workload.DataSpec) (*workload.Set, error) {
	cacheMu.Lock()
	defer cacheMu.Unlock()
	if set := cache[spec]; set != nil {
		return set, nil
	}
	set, err := workload.Load(spec)
	if err == nil {
		cache[spec] = set
	}
	return set, err
}
