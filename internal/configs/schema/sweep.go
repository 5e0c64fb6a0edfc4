package schema

import (
	"strings"

	"fluentps/internal/configs/keys"
)

// sweepForms are the schemas of sweep, all combinations of values or a list of settings, and of one setting. Paths into lists
// take any value.
func sweepForms() (sweep, setting *form) {
	known := &keys.KnownPaths{}
	known.Fill()
	values, settings := map[string]any{}, map[string]any{}
	var inLists []string
	for _, path := range known.All() {
		if strings.Contains(path, "[]") {
			inLists = append(inLists, strings.NewReplacer("[]", `\[[0-9]{1,9}\]`, ".", `\.`).Replace(path))
			continue
		}
		value := &form{Any: []*form{{Ref: defined + path}, {Type: "null"}}}
		if known.IsText[path] { // as with --set
			value.Any = append(value.Any, &form{Type: []string{"number", "boolean"}})
		}
		settings[path] = value
		values[path] = &form{Type: "array", Items: &form{Ref: defined + "setting/properties/" + path}, ItemsMin: 1}
	}
	pattern := "^(" + strings.Join(inLists, "|") + ")$"
	sweep = &form{
		Description: "several runs: paths with lists of values for all combinations, or a list of settings",
		Any: []*form{
			{Type: "object", PropsMin: 1, Properties: values, Patterns: map[string]*form{pattern: {Type: "array", ItemsMin: 1}}, Further: false},
			{Type: "array", ItemsMin: 1, Items: &form{Ref: defined + "setting"}},
		},
	}
	setting = &form{Type: "object", PropsMin: 1, Properties: settings, Patterns: map[string]*form{pattern: {}}, Further: false}
	return sweep, setting
}
