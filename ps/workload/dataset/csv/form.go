package csv

import (
	"fmt"
	"strings"
)

// opNames are what columns are, in a form.
var opNames = map[op]string{opWide: string(Standardize), opText: string(OneHot), opGroup: "group", opSkip: "dropped"}

// form is Found.Form.
func (r *reader) form() string {
	var parts []string
	if r.forced != "" {
		parts = append(parts, r.forced)
	}
	if s := r.scheme; s.label != len(s.ops)-1 {
		parts = append(parts, fmt.Sprint("label ", s.label))
	}
	for i, op := range r.scheme.ops {
		if name, special := opNames[op]; special {
			parts = append(parts, fmt.Sprint(i, " ", name))
		}
	}
	if r.missing > 0 {
		parts = append(parts, "missing mean")
	}
	return strings.Join(parts, "; ")
}

// beside is what of a dialect differs from the one that is found without any key.
func (d *dialect) beside(path string, head []byte, more bool) string {
	plain, err := (&Options{}).find(path, head, more, nil)
	if err == nil && plain.sep == d.sep && plain.point == d.point && (plain.header == nil) == (d.header == nil) {
		return ""
	}
	return fmt.Sprintf("delimiter %q, decimal %q, header %v", d.sep, d.point, d.header != nil)
}
