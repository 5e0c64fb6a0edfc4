//go:build invariants

package comm

import (
	"bytes"
	"fmt"
)

// Invariants tells whether this build has the checks that cost too much for production.
const Invariants = true

// poisoned is the content of freed memory: NaN as float32 and as float64, never the magic of a header.
var poisoned = bytes.Repeat([]byte{0xFF}, 4096)

func poison(mem []byte) {
	for len(mem) > 0 {
		mem = mem[copy(mem, poisoned):]
	}
}

func checkPoison(mem []byte) {
	for at := 0; at < len(mem); at += len(poisoned) {
		part := mem[at:min(len(mem), at+len(poisoned))]
		if !bytes.Equal(part, poisoned[:len(part)]) {
			panic(fmt.Sprintf("comm: a freed buffer of class %d was written after its Free, near byte %d", len(mem), at))
		}
	}
}
