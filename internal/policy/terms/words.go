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
		if not, is := c.(Not); is {
			with = append(with, "without "+not.Cond.String())
			continue
		}
		with = append(with, c.String())
	}
	if len(t.Beside) > 0 {
		var beside []string
		for _, b := range t.Beside {
			beside = append(beside, b.String())
		}
		with = append(with, "in another rule: "+Or(beside))
	}
	if len(with) == 0 {
		return "any run"
	}
	return strings.ReplaceAll(strings.Join(with, ", with "), "with without", "without")
}

// Reason is Why and Out for pages, where no configuration is there: name stands for the entry that states the term, and
// scheme for the one that breaks it.
func (t *Term) Reason(name, scheme string) string {
	text := strings.ReplaceAll(t.Why+"; "+t.Out, "{rule}.", "its rule's ")
	if t.At != "" && !strings.Contains(t.At, "|") && !strings.HasPrefix(t.At, ".") && !strings.HasPrefix(text, "{"+t.At+"}") {
		text = t.At + ": " + text // as check begins: with the key at which the error stands
	}
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
