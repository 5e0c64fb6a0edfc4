package keys

import (
	"gopkg.in/yaml.v3"
)

// OrKey is the place of the value of a leaf, or else that of another.
func (l *Leaf) OrKey(other *Leaf) *yaml.Node {
	if l.Node != nil {
		return l.Node
	}
	return other.Node
}
