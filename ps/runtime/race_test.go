//go:build race

package runtime

const (
	underRace       = true
	residualUpdates = 2 // each further one is the same code once more, some 20 times slower
)
