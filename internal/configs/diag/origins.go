package diag

import (
	"maps"
	"strings"
)

// Origins records where each value comes from.
type Origins struct {
	of map[string]string
	at map[string]Diagnostic // place of each given value, by path: file, line, column and source line
}

// NewOrigins makes an empty record.
func NewOrigins() *Origins {
	return &Origins{of: map[string]string{}, at: map[string]Diagnostic{}}
}

// Place returns the place of a value. For a value that was not given, it returns the place of its list, or the head of the file.
func (o *Origins) Place(path string) Diagnostic {
	for o != nil && path != "" {
		if d, given := o.at[path]; given {
			return d
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	if o == nil {
		return Diagnostic{}
	}
	return o.at[""] // the head of the file
}

// Of returns the origin of the value at a path such as sync[0].match: "default", "file:line", "env FLUENTPS_X" or "--set".
func (o *Origins) Of(path string) string {
	if o != nil && o.of[path] != "" {
		return o.of[path]
	}
	return "default"
}

// Refuse makes a diagnostic from an error about the value at a path. The text after the first semicolon is the hint.
func (o *Origins) Refuse(path string, err error) Diagnostic {
	d := o.Place(path)
	d.Path = path
	d.Msg, d.Hint, _ = strings.Cut(err.Error(), "; ")
	return d.Printable()
}

// Set records where a value comes from.
func (o *Origins) Set(path, origin string) { o.of[path] = origin }

// Locate records where a value stands.
func (o *Origins) Locate(path string, at Diagnostic) { o.at[path] = at }

// Forget drops the values whose paths begin so.
func (o *Origins) Forget(begin string) {
	in := func(path string) bool { return strings.HasPrefix(path, begin) }
	maps.DeleteFunc(o.of, func(path, _ string) bool { return in(path) })
	maps.DeleteFunc(o.at, func(path string, _ Diagnostic) bool { return in(path) })
}
