//go:build race

package runtime

const (
	underRace       = true
	residualUpdates = 2 // each further update runs the same code, some 20 times slower
)
