//go:build !invariants

package comm

// Invariants tells whether this build has the checks that cost too much for production.
const Invariants = false

func poison([]byte)      {}
func checkPoison([]byte) {}
