package verbs

import (
	"strings"
	"testing"

	"fluentps/internal/configs"
	"fluentps/ps/scheme"
)

// Every key is explained by its path, with its section and by its last word. Keys of schemes are explained by their names.
func TestEveryKeyIsExplained(t *testing.T) {
	unwrapped := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	for _, k := range configs.Keys() {
		path := plainPath(k.Path)
		names := []string{k.Path, path}
		if at := strings.LastIndexByte(path, '.'); at > 0 {
			names = append(names, path[:at])
		}
		if k.Doc == "" || k.Default == "" && k.Limit == "" && len(k.Values) == 0 && k.Type == "" {
			t.Errorf("%s has no documentation: %+v", k.Path, k)
		}
		for _, name := range names {
			got := unwrapped(explainKey(name))
			for _, want := range []string{k.Path, k.Doc, k.Type, k.Default, k.With, strings.TrimPrefix(k.Limit, "must be "),
				strings.Join(k.Values, " | ")} {
				if !strings.Contains(got, unwrapped(want)) {
					t.Errorf("explain %s lacks %q:\n%s", name, want, explainKey(name))
				}
			}
		}
	}
	for _, e := range scheme.All {
		for _, d := range scheme.Docs(e.Params()) {
			for _, name := range []string{d.Key, "sync." + d.Key, "sync[2]." + d.Key} {
				got := unwrapped(explainKey(name))
				if !strings.Contains(got, "of "+e.Name) && !strings.Contains(got, ", "+e.Name) || !strings.Contains(got, unwrapped(d.Doc)) {
					t.Errorf("explain %s says nothing of %s:\n%s", name, e.Name, got)
				}
			}
		}
	}
	if got := explainKey("ssp") + explainKey("topk") + explainKey("xyzzy"); got != "" {
		t.Errorf("a name that is not a key is explained as one:\n%s", got)
	}
}
