package diag

import (
	"strconv"

	"gopkg.in/yaml.v3"
)

// Deref follows an alias to what it stands for.
func Deref(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// Describe says what a node is, for a message that says what it should be.
func Describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch tag := n.ShortTag(); tag {
	case "!!null":
		return "nothing"
	case "!!str":
		return Clip(strconv.Quote(n.Value))
	case "!!int", "!!float":
		return "the number " + Clip(n.Value)
	case "!!bool":
		return "the truth value " + Clip(n.Value)
	case "!!timestamp":
		return "the date " + Clip(n.Value)
	default:
		return "a value with the tag " + Clip(tag)
	}
}

// Clip keeps a value in a message short.
func Clip(s string) string { return ClipTo(s, 40) }

// ClipTo cuts a text that is longer than so many characters, and ends it with three dots.
func ClipTo(s string, runes int) string {
	if len(s) <= runes { // as bytes, so surely as runes
		return s
	}
	if r := []rune(s); len(r) > runes {
		return string(r[:runes-3]) + "..."
	}
	return s
}

// Child is the value of a key of a mapping, nil where it is not given.
func Child(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return Deref(n.Content[i+1])
		}
	}
	return nil
}

// ValueOf is the text of a key of a mapping, before it was checked; "" where it is not given.
func ValueOf(n *yaml.Node, key string) string {
	if value := Child(n, key); value != nil {
		return value.Value
	}
	return ""
}

// IsNull reports whether a node has no value: nothing is written there, or null.
func IsNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }
