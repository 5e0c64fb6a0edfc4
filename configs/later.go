package configs

import (
	"cmp"
	"slices"
	"strings"
)

// notYet lists what the design names and this version does not have, so that nobody takes a planned key for a
// typing mistake. A row without values is a whole key. A value that a table has meanwhile learnt is legal there
// before this list is asked, so a row too many does no harm.
var notYet = []struct {
	path    string // list indices left out: sync[].push
	values  []string
	numbers bool   // numbers above the key's limit
	has     string // for whole keys: what to write instead
}{
	{path: "work.policy", values: []string{"dbs", "r2sp_batch", "flexrr", "epsp", "coded", "partial", "anytime"}},
	{path: "local.steps", numbers: true},
	{path: "local.hpsgd", has: "local has: steps: 1"},
	{path: "metrics.sinks", values: []string{"tensorboard"}},
}

// laterKey says whether the design names the key and this version lacks it, and what to do instead.
func laterKey(path string) (hint string, later bool) {
	for _, n := range notYet {
		if n.path == path && n.values == nil && !n.numbers {
			return cmp.Or(n.has, "remove it"), true
		}
	}
	return "", false
}

// laterValue says the same of one value of a key.
func laterValue(path, value string) bool {
	for _, n := range notYet {
		if n.path == path && slices.Contains(n.values, value) {
			return true
		}
	}
	return false
}

// belongs names the value of another key that brings about what a word asks for.
func belongs(path, word string) (hint string, ok bool) {
	if path == "send.order" && word == "slots" {
		return "the slots are R2SP's, and its servers grant them: write scheme: r2sp in a rule of sync, beside any order", true
	}
	if path == "device.kind" && strings.EqualFold(word, "gpu") {
		return "write cuda, for NVIDIA's", true
	}
	if path == "sync[].update" && word == "average" {
		return "statistics, such as batch norm's means, are averaged whatever update says; for averages of trained parameters write push: delta with update: add", true
	}
	return wordElsewhere(path, word)
}

// laterNumber says the same of the numbers above a key's limit.
func laterNumber(path string) bool {
	for _, n := range notYet {
		if n.path == path && n.numbers {
			return true
		}
	}
	return false
}
