//go:build !race

package real

const underRace = false
