//go:build !race

package stationtest

// UnderRace says that the race detector is on.
const UnderRace = false
