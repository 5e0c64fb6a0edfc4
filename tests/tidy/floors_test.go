package tidy

import (
	"fmt"
	"slices"
	"strings"
	"testing/fstest"
)

// foldersMax limits the folders on the first level of ps and of internal: so many can be kept in mind.
const foldersMax = 10

// floors reads the table of floors, from the highest to the lowest: the folders of each, which hold all packages below them that have
// no floor of their own.
func floors(tr *tree) (floor map[string]int, problems []string) {
	f := tr.find(architecture)
	if f == nil {
		return nil, []string{architecture + ": missing; it holds the table of floors"}
	}
	floor = map[string]int{}
	inside := false
	for k, line := range f.lines() {
		inside = strings.HasPrefix(line, "| floor |") || inside && strings.HasPrefix(line, "|")
		if !inside || !strings.HasPrefix(line, "| `") {
			continue
		}
		cells := strings.Split(line, "|")
		for _, folder := range ticked(cells[1]) {
			if _, twice := floor[folder]; twice {
				problems = append(problems, fmt.Sprintf("%s:%d: a second floor for %s", f.name, k+1, folder))
				continue
			}
			floor[folder] = k + 1
		}
		if strings.Trim(cells[2], " ") == "" {
			problems = append(problems, fmt.Sprintf("%s:%d: a sentence says what the floor holds", f.name, k+1))
		}
	}
	if len(floor) == 0 {
		problems = append(problems, architecture+": no row of the table of floors")
	}
	return floor, problems
}

// floorOf is the longest folder with a floor in which the package lies.
func floorOf(floor map[string]int, name string) (folder string) {
	for f := range floor {
		if len(f) > len(folder) && (name == f || strings.HasPrefix(name, f+"/")) {
			folder = f
		}
	}
	return folder
}

// importsGoDown: a package imports packages of its own floor and of lower ones. Its tests look at it from above.
var importsGoDown = rule{
	name: "imports-go-down",
	check: func(tr *tree) (problems []string) {
		floor, problems := floors(tr)
		found := map[string]bool{}
		for _, f := range tr.goFiles() {
			from := floorOf(floor, f.dir)
			if from == "" {
				if !found[f.dir] {
					problems = append(problems, fmt.Sprintf("%s: on no floor of %s", f.dir, architecture))
				}
				found[f.dir] = true
				continue
			}
			found[from] = true
			if strings.HasSuffix(f.name, "_test.go") {
				continue
			}
			imports(tr, f, func(line int, importPath string) {
				name, ours := strings.CutPrefix(importPath, module+"/")
				if to := floorOf(floor, name); ours && to != "" && floor[to] < floor[from] {
					problems = append(problems, fmt.Sprintf("%s:%d: %s imports %s, which stands on a higher floor (%s:%d)",
						f.name, line, f.dir, name, architecture, floor[to]))
				}
			})
		}
		for folder, line := range floor {
			if !found[folder] {
				problems = append(problems, fmt.Sprintf("%s:%d: there is no package in %s", architecture, line, folder))
			}
		}
		slices.Sort(problems)
		return problems
	},
	bad: fstest.MapFS{
		architecture: {Data: []byte("| floor | holds |\n|---|---|\n| `a` `b` | top |\n| `c` | |\n| `c/low` | low |\n| `d` `a` | bottom |\n" +
			"\n| `other` | no floor |\n")},
		"a/a.go":      {Data: []byte("package a\nimport \"fluentps/b\"\nimport \"fluentps/c/low\"\n")},
		"b/b.go":      {Data: []byte("package b\nimport \"fluentps/a\"\n")},
		"c/c.go":      {Data: []byte("package c\nimport \"fluentps/c/low\"\nimport \"fluentps/b\"\nimport \"os\"\n")},
		"c/c_test.go": {Data: []byte("package c\nimport \"fluentps/b\"\n")},
		"c/low/l.go":  {Data: []byte("package low\nimport \"fluentps/c\"\n")},
		"e/e.go":      {Data: []byte("package e\n")},
		"e/e2.go":     {Data: []byte("package e\n")},
	},
	want: []string{
		"c/c.go:3: c imports b, which stands on a higher floor (ps/ARCHITECTURE.md:3)",
		"c/low/l.go:2: c/low imports c, which stands on a higher floor (ps/ARCHITECTURE.md:4)",
		"e: on no floor of ps/ARCHITECTURE.md",
		"ps/ARCHITECTURE.md:4: a sentence says what the floor holds",
		"ps/ARCHITECTURE.md:6: a second floor for a",
		"ps/ARCHITECTURE.md:6: there is no package in d",
	},
}

// fewFolders: on the first level of ps and of internal.
var fewFolders = rule{
	name: "few-folders",
	check: func(tr *tree) (problems []string) {
		for _, top := range []string{"ps", "internal"} {
			var folders []string
			for _, f := range tr.files {
				if parts := strings.Split(f.name, "/"); parts[0] == top && len(parts) > 2 && !slices.Contains(folders, parts[1]) {
					folders = append(folders, parts[1])
				}
			}
			if len(folders) > foldersMax {
				problems = append(problems, fmt.Sprintf("%s: %d folders on its first level (%s), at most %d",
					top, len(folders), strings.Join(folders, " "), foldersMax))
			}
		}
		return problems
	},
	bad: fstest.MapFS{
		"ps/a/x": {}, "ps/b/x": {}, "ps/c/x": {}, "ps/d/x/y": {}, "ps/e/x": {}, "ps/f/x": {}, "ps/g/x": {}, "ps/h/x": {}, "ps/i/x": {},
		"ps/j/x": {}, "ps/k/x": {}, "ps/PAGE.md": {}, "internal/a/x": {}, "tests/z/x": {},
	},
	want: []string{"ps: 11 folders on its first level (a b c d e f g h i j k), at most 10"},
}
