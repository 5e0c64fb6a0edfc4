package folder

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"fluentps/internal/disk/durable"
)

// settings flattens resolved.yaml to a value for each path, such as train.optimizer.lr. The comments of that file say
// which of them the user wrote.
func (in *reader) settings() {
	data := in.file("resolved.yaml", settingsMax, "the settings are unknown, so the run is grouped with no other")
	if data == nil {
		return
	}
	var node yaml.Node
	if err := yaml.Unmarshal(data, &node); err != nil {
		in.damage("resolved.yaml is damaged, so the settings are unknown: %v", err)
		return
	}
	f := flat{values: map[string]string{}}
	f.add("", &node, 0)
	in.run.Settings = f.values
	swept := in.swept()
	for i, key := range f.keys {
		// The configuration of a run of a sweep holds all values: those of the sweep and of the command line are the user's.
		if origin := f.origins[i]; origin != "" && origin != "# default" && (swept == nil || !isFile.MatchString(origin)) {
			in.run.Chosen = append(in.run.Chosen, key)
		}
	}
	if swept != nil {
		in.run.Swept, in.run.Chosen = len(swept), append(swept, in.run.Chosen...)
	}
}

// isFile is the origin of a value that a file gave.
var isFile = regexp.MustCompile(`:[0-9]+$`)

// The first line of the configuration of a run of a sweep: its settings, as --set takes them.
var (
	sweepHead = regexp.MustCompile(`^# run [0-9]+ of a sweep: (.*)`)
	sweepKey  = regexp.MustCompile(`(?:^| )([a-z_][a-z_0-9]*(?:\[[0-9]+\]|\.[a-z_0-9]+)*)=`)
)

// swept are the keys that a sweep set for this run; nil: it is of none.
func (in *reader) swept() (keys []string) {
	for _, set := range settingsOf(in.file("config.yaml", settingsMax, ""), in.run.Settings) {
		key, _, _ := strings.Cut(set, "=")
		keys = append(keys, key)
	}
	return keys
}

// settingsOf are the settings in the first line of the configuration of a run of a sweep, as key=value; nil: it is of
// none. What looks like a key inside a value is none of the configuration.
func settingsOf(config []byte, values map[string]string) (settings []string) {
	head, _, _ := strings.Cut(string(config), "\n")
	found := sweepHead.FindStringSubmatch(head)
	if found == nil {
		return nil
	}
	text, end := found[1], len(found[1])
	all := sweepKey.FindAllStringSubmatchIndex(text, -1)
	for k := len(all) - 1; k >= 0; k-- {
		key := text[all[k][2]:all[k][3]]
		for known := range values {
			if known == key || strings.HasPrefix(known, key+".") || strings.HasPrefix(known, key+"[") {
				settings, end = append(settings, text[all[k][2]:end]), all[k][0]
				break
			}
		}
	}
	slices.Reverse(settings)
	return settings
}

// Sweep lists the runs of a sweep's folder in the order of their numbers: their settings, and their folders, which may not be there yet. It
// lists none if the folder is not that of a sweep.
func Sweep(dir string) (sets [][]string, folders []string) {
	for {
		name := filepath.Join(dir, fmt.Sprintf("%04d", len(sets)))
		config, err := durable.ReadFile(name+".yaml", settingsMax)
		if err != nil {
			return sets, folders
		}
		var node yaml.Node
		if yaml.Unmarshal(config, &node) != nil {
			return nil, nil
		}
		f := flat{values: map[string]string{}}
		f.add("", &node, 0)
		set := settingsOf(config, f.values)
		if set == nil {
			return nil, nil
		}
		sets, folders = append(sets, set), append(folders, name)
	}
}

// depthMax is deeper than any configuration is.
const depthMax = 20

// flat is a file of YAML as a value for each path.
type flat struct {
	values  map[string]string
	keys    []string // in the order of the file
	origins []string // the comment behind each
}

func (f *flat) add(path string, n *yaml.Node, depth int) {
	if depth > depthMax {
		return
	}
	switch n.Kind {
	case yaml.DocumentNode:
		for _, c := range n.Content {
			f.add(path, c, depth+1)
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i].Value
			if path != "" {
				key = path + "." + key
			}
			f.add(key, n.Content[i+1], depth+1)
		}
	case yaml.SequenceNode:
		var plain []string
		for i, c := range n.Content {
			if c.Kind != yaml.ScalarNode {
				f.add(fmt.Sprintf("%s[%d]", path, i), c, depth+1)
				continue
			}
			plain = append(plain, c.Value)
		}
		if plain != nil || len(n.Content) == 0 {
			f.leaf(path, "["+strings.Join(plain, ", ")+"]", n)
		}
	case yaml.ScalarNode:
		f.leaf(path, n.Value, n)
	}
}

func (f *flat) leaf(path, value string, n *yaml.Node) {
	f.values[path] = value
	f.keys, f.origins = append(f.keys, path), append(f.origins, n.LineComment)
}
