//go:build race

package stationtest

// UnderRace says that the race detector is on. Each iteration costs ten times as much under it, so tests leave out there what runs no other
// statements.
const UnderRace = true
