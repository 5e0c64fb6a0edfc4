package verbs

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"fluentps/internal/configs"
	"fluentps/ps/scheme"
)

var index = regexp.MustCompile(`\[[0-9]*\]`)

// plainPath is a key without the indices of list items: sync[1].match, sync[].match and sync.match become the same.
func plainPath(path string) string { return index.ReplaceAllString(path, "") }

// keyPaths lists all keys, without indices.
func keyPaths() []string {
	var paths []string
	for _, k := range configs.Keys() {
		paths = append(paths, plainPath(k.Path))
	}
	return paths
}

// keyNames lists the names that explainKey accepts: paths, their sections, their last words, and the keys of schemes.
func keyNames() []string {
	var names []string
	add := func(name string) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, path := range keyPaths() {
		add(path)
		for at := strings.LastIndexByte(path, '.'); at > 0; at = strings.LastIndexByte(path[:at], '.') {
			add(path[:at])
		}
		add(path[strings.LastIndexByte(path, '.')+1:])
	}
	for _, e := range scheme.All {
		for _, d := range scheme.Docs(e.Params()) {
			add(d.Key)
		}
	}
	return names
}

// explainKey explains a key of the YAML, all keys of a section, or all keys that have a name as a part of their path, keys of schemes
// included; else the keys whose path or name begins so, or that take the name as a value. It returns "" if there is no such key, and
// for the name of a scheme, a send policy, a payload or a policy.
func explainKey(name string) string {
	if slices.Contains(explained(), name) {
		return ""
	}
	path := plainPath(name)
	var b strings.Builder
	for _, k := range configs.Keys() {
		if at := plainPath(k.Path); at == path || strings.HasPrefix(at, path+".") {
			writeKey(&b, &k)
		}
	}
	of := strings.TrimPrefix(path, "sync.")
	if b.Len() == 0 && of == path {
		writeKeys(&b, func(k *configs.Key) bool { return strings.Contains("."+plainPath(k.Path)+".", "."+path+".") })
	}
	writeSchemeKeys(&b, of)
	if b.Len() == 0 && len(path) >= prefixMin {
		writeKeys(&b, func(k *configs.Key) bool { return strings.Contains("."+plainPath(k.Path), "."+path) })
	}
	if b.Len() == 0 {
		writeKeys(&b, func(k *configs.Key) bool { return slices.Contains(k.Values, name) })
	}
	return b.String()
}

// prefixMin is the shortest beginning of a name for which all keys that begin so are explained.
const prefixMin = 4

func writeKeys(b *strings.Builder, of func(*configs.Key) bool) {
	for _, k := range configs.Keys() {
		if of(&k) {
			writeKey(b, &k)
		}
	}
}

// writeKey writes the meaning of a key, its values, and the settings that it needs.
func writeKey(b *strings.Builder, k *configs.Key) {
	what := k.Type
	if len(k.Values) > 0 {
		what += ": " + strings.Join(k.Values, " | ")
	}
	if k.Limit != "" {
		what += ", " + strings.TrimPrefix(k.Limit, "must be ")
	}
	fmt.Fprintf(b, "%s\n", k.Path)
	wrapped(b, "  what     ", k.Doc)
	wrapped(b, "  value    ", what)
	switch {
	case k.Required:
		wrapped(b, "  default  ", "none: it must be set")
	default:
		wrapped(b, "  default  ", cmp.Or(k.Default, "none"))
	}
	if k.With != "" {
		wrapped(b, "  only     with ", k.With)
	}
	b.WriteString("\n")
}

// writeSchemeKeys writes the meaning of a key under each scheme that has it. Schemes with the same text share an entry.
func writeSchemeKeys(b *strings.Builder, key string) {
	var texts []string
	of := map[string][]string{}
	for _, e := range scheme.All {
		for _, d := range scheme.Docs(e.Params()) {
			if d.Key != key {
				continue
			}
			var one strings.Builder
			wrapped(&one, "  what     ", d.Doc)
			wrapped(&one, "  value    ", d.Allowed)
			wrapped(&one, "  default  ", d.Default)
			text := one.String()
			if of[text] == nil {
				texts = append(texts, text)
			}
			of[text] = append(of[text], e.Name)
		}
	}
	for _, text := range texts {
		wrapped(b, "sync[]."+key+" of ", strings.Join(of[text], ", "))
		b.WriteString(text + "\n")
	}
}
