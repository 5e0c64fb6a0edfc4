package keys

import (
	"cmp"
	"slices"
	"strings"

	"fluentps/internal/policy/straggler"
)

// notYet lists planned keys and values that this version does not have, so that check does not report them as typing mistakes. A row
// without values is a whole key. The tables come first: a row for a value that a table has does no harm.
var notYet = []struct {
	path    string // list indices left out: sync[].push
	values  []string
	numbers bool   // numbers above the key's limit
	has     string // for whole keys: what to write instead
}{
	{path: "model.name", values: []string{"network"}},
}

// movedKeys are keys of earlier versions, with what to write instead.
var movedKeys = map[string]string{
	"simulate.noise": `write it as a fault, for the simulator and for real runs alike: faults: [{worker: "*", slow: {kind: exponential, factor: 1.1}}]; kinds: ` + strings.Join(straggler.All.Names(), ", "),
}

// MovedKey reports whether a key, or one that it is a part of, was a key of earlier versions, and what to write instead.
func MovedKey(path string) (hint string, moved bool) {
	for was, hint := range movedKeys {
		if path == was || strings.HasPrefix(path, was+".") {
			return hint, true
		}
	}
	return "", false
}

// LaterKey reports whether the key is planned but missing in this version, and what to write instead.
func LaterKey(path string) (hint string, later bool) {
	for _, n := range notYet {
		if n.path == path && n.values == nil && !n.numbers {
			return cmp.Or(n.has, "remove it"), true
		}
	}
	return "", false
}

// laterValue reports whether a value of a key is planned but missing in this version.
func laterValue(path, value string) bool {
	for _, n := range notYet {
		if n.path == path && slices.Contains(n.values, value) {
			return true
		}
	}
	return false
}

// belongs returns a hint for a word that is not a value of this key, but has an equivalent, perhaps under another key.
func belongs(path, word string) (hint string, ok bool) {
	if path == "send.order" && word == "slots" {
		return "slots belong to R2SP, whose servers grant them: set sync[0].scheme: r2sp with send.order: auto", true
	}
	if path == "device.kind" && strings.EqualFold(word, "gpu") {
		return "write cuda, for NVIDIA GPUs", true
	}
	if path == "sync[].update" && word == "average" {
		return "statistics, such as the means of batch norm, are always averaged; to average trained parameters, write " +
			"push: delta with update: add", true
	}
	return wordElsewhere(path, word)
}

// laterNumber reports whether numbers above a key's limit are planned but missing in this version.
func laterNumber(path string) bool {
	for _, n := range notYet {
		if n.path == path && n.numbers {
			return true
		}
	}
	return false
}
