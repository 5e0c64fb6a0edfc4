//go:build !race

package runtime

const (
	underRace       = false
	residualUpdates = 4
)
