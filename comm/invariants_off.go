//go:build !invariants

package comm

// Invariants tells whether this build checks what costs too much for every day.
const Invariants = false

func poison([]byte)      {}
func checkPoison([]byte) {}
