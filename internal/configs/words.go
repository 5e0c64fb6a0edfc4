package configs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"fluentps/internal/configs/diag"
	"fluentps/internal/configs/keys"
)

// withoutPhases leaves the keys of schemes: out where the same are keys of a rule.
func withoutPhases(paths []string) []string {
	rules := slices.DeleteFunc(slices.Clone(paths), func(path string) bool { return strings.Contains(path, "schemes[]") })
	if len(rules) > 0 {
		return rules
	}
	return paths
}

// noKey returns the hint for an override that is near no key. A variable may belong to another program.
func (v *override) noKey() string {
	if v.name == show(v.path, false) {
		return "check --resolved lists every key"
	}
	for _, n := range notKeys {
		if !strings.HasSuffix(n, "*") && len(diag.Nearest(v.name, []string{strings.ToLower(n)})) > 0 {
			return "did you mean " + n + "?"
		}
	}
	return "check --resolved lists every key; unset the variable if it is not a setting"
}

// fileHint looks for the configuration that was meant by a file that cannot be read.
func fileHint(file string) string {
	for _, other := range []string{file + ".yaml", file + ".yml", filepath.Join(file, "config.yaml")} {
		if info, err := os.Stat(other); err == nil && info.Mode().IsRegular() {
			return "did you mean " + other + "?"
		}
	}
	return ""
}

// SettingHint says which setting of a configuration a word stands for, "" for none.
func SettingHint(word string) string {
	plain := strings.ReplaceAll(strings.ToLower(word), "-", "_")
	known := &keys.KnownPaths{}
	known.Fill()
	if _, ok := known.IsText[plain]; ok {
		return plain
	}
	if s, ok := synonymOf(plain); ok && len(s.paths) > 0 {
		return s.paths[0]
	}
	var found []string
	for _, path := range known.All() {
		if diag.LastName(path) == plain {
			found = append(found, path)
		}
	}
	if found = withoutPhases(found); len(found) == 1 {
		return strings.ReplaceAll(found[0], "[]", "[0]")
	}
	return ""
}
