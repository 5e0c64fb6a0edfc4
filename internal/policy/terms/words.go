package terms

import (
	"slices"
	"strings"
)

// Of lists the terms of an entry to which so much may apply: those of all entries, and those of these kinds.
func Of[F Fact | Trait](list []Term, may []F) (stated []Term) {
	for _, t := range list {
		if t.Of == nil || slices.ContainsFunc(may, func(f F) bool { return any(f) == any(t.Of) }) {
			stated = append(stated, t)
		}
	}
	return stated
}

// Forbidden says in words what a term forbids.
func (t *Term) Forbidden() string {
	var with []string
	for _, c := range t.If {
		with = append(with, c.String())
	}
	if len(t.Beside) > 0 {
		var beside []string
		for _, b := range t.Beside {
			beside = append(beside, b.String())
		}
		with = append(with, "in another rule: "+Or(beside))
	}
	return strings.Join(with, ", with ")
}

// Reason is Why and Out for pages, where no configuration is there: name stands for the entry that states the term, and
// scheme for the one that breaks it.
func (t *Term) Reason(name, scheme string) string {
	text := t.Why + "; " + t.Out
	if name == "it" { // in a table: the column before it names what "work.policy NAME" would
		text = strings.NewReplacer("work.policy {name}", "it", "local.policy {name}", "it").Replace(text)
	}
	return Fill(text, func(word string) string {
		switch word {
		case "name":
			return name
		case "scheme":
			return scheme
		case "schemes":
			return "its schemes"
		case "rule":
			return "a rule"
		case "other":
			return "another rule"
		case "other.scheme":
			return "its scheme"
		case "awaits":
			return "that waits"
		case "pulling":
			return "let workers pull before every iteration"
		case "delta":
			return "push: delta"
		}
		_, key, in := strings.Cut(word, "in .")
		if in {
			return key
		}
		return strings.TrimPrefix(word, ".")
	})
}
