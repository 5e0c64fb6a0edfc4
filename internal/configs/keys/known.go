package keys

import (
	"maps"
	"slices"

	"fluentps/internal/configs/diag"
	"fluentps/internal/configs/settings"
	"fluentps/ps/scheme"
)

// KnownPaths are the paths that an override may name.
type KnownPaths struct {
	IsText map[string]bool // by path: its value is a text
	Words  []string        // sections that may be plain words
}

// Fill lists the paths, unless it has done so. It is called when a path is looked up, because most configurations have no override.
func (k *KnownPaths) Fill() {
	if k.IsText != nil {
		return
	}
	k.IsText = map[string]bool{}
	list := func(prefix string, leaves []*Leaf) {
		for _, l := range leaves {
			path := diag.Join(prefix, l.Spec.Path)
			_, k.IsText[path] = l.Ptr.(*string)
			for i, c := range path {
				if (c == '.' || c == '[') && !k.IsText[path[:i]] {
					k.IsText[path[:i]] = false
				}
			}
		}
	}
	top := Bind("", TopKeys, &settings.Config{})
	list("", top.Leaves)
	for section := range top.Sections {
		if top.HasWord(section) { // a word or a mapping, so that it is read as YAML
			k.IsText[section], k.IsText[diag.Join(section, WordName)] = false, true
			k.Words = append(k.Words, section)
		}
	}
	list("sync[]", Bind("", RuleKeys, &settings.Rule{}).Leaves)
	list("sync[]", BindPhased("", &settings.Rule{}, &[]settings.Phase{}).Leaves[1:2])
	list("sync[].schemes[]", Bind("", PhaseKeys, &settings.Phase{}).Leaves)
	list("faults[]", Bind("", FaultKeys, &settings.Fault{}).Leaves)
	for _, e := range scheme.All {
		list("sync[]", BindParams(e.Params()))
		list("sync[].schemes[]", BindParams(e.Params()))
	}
	for path, l := range Bind("", TopKeys, &settings.Config{}).ByPath {
		if TypeName(l) == "list" {
			k.IsText[path+"[]"] = false
		}
	}
}

// All lists the paths in alphabetical order.
func (k *KnownPaths) All() []string { return slices.Sorted(maps.Keys(k.IsText)) }

// SweepKey is the key with the settings of several runs. No run has this key, so it is removed from the tree before the file is read.
const SweepKey = "sweep"
