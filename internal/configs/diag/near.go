package diag

import (
	"slices"
	"strings"
)

// LastName returns the last name of a path: lr for train.optimizer.lr.
func LastName(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

// nearMax is the largest edit distance that still counts as a typing mistake.
const nearMax = 2

// Nearest returns the legal words closest to word, at most nearMax edits away and always fewer edits than word
// has letters. Upper case and hyphens cost nothing, so that BSP finds bsp.
func Nearest(word string, legal []string) []string {
	plain := strings.ReplaceAll(strings.ToLower(word), "-", "_")
	best := nearMax
	var found []string
	for _, l := range legal {
		d := edits(plain, l)
		if d > best || d >= len(plain) {
			continue
		}
		if d < best {
			best, found = d, nil
		}
		if !slices.Contains(found, l) {
			found = append(found, l)
		}
	}
	return found
}

// DidYouMean returns the hint for a wrong word: the nearest legal words, or else all of them.
func DidYouMean(word string, legal []string) string {
	if near := Nearest(word, legal); len(near) > 0 {
		return "did you mean " + OrList(near) + "?"
	}
	return "it is one of: " + strings.Join(legal, ", ")
}

// OrList writes words as a choice, as in "a, b or c".
func OrList(words []string) string {
	n := len(words)
	if n == 1 {
		return words[0]
	}
	return strings.Join(words[:n-1], ", ") + " or " + words[n-1]
}

// edits counts insertions, deletions, replacements and swaps of neighbours (optimal string alignment). It
// stops at nearMax+1, which stands for "far".
func edits(a, b string) int {
	if d := len(a) - len(b); d > nearMax || d < -nearMax {
		return nearMax + 1
	}
	prev2 := make([]int, len(b)+1)
	prev := make([]int, len(b)+1)
	row := make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], prev2[j-2]+1)
			}
		}
		prev2, prev, row = prev, row, prev2
	}
	return min(prev[len(b)], nearMax+1)
}

// Join puts a name at the end of a path; "" is the path of the whole file.
func Join(prefix, name string) string {
	if prefix == "" {
		return name
	}
	return prefix + "." + name
}
