//go:build race

package runtime

const underRace = true
