package stationtest

import (
	"strings"
	"sync"
)

// Lines is a buffer that many ranks may write to.
type Lines struct {
	mu sync.Mutex
	b  strings.Builder
}

// Write appends to the buffer.
func (l *Lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// String returns what was written so far.
func (l *Lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
