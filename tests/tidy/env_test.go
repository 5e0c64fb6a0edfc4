package tidy

import (
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"testing/fstest"
)

var (
	makeTarget = regexp.MustCompile(`\bmake ([a-z][a-z-]*)`)
	// ownPath is a file of the repository, alone or below the names that stand for its root.
	ownPath = regexp.MustCompile("(?:^|[\\s\"'`(]|\\./|CLONE/|/src/)((?:cmd|configs|internal|kernels|ps|slurm|tests)/[\\w./-]*\\w)")
	// copied is a line by which the container copies a file or folder from the root of the repository.
	copied = regexp.MustCompile(`^\s+(\S+) /src/\S+$`)
)

// envIsTrue: the files that install the program elsewhere must name existing files and targets of make, and one that copies some of
// the names at the top of the repository must copy all of them. No compiler checks them.
var envIsTrue = rule{
	name: "env-is-true",
	check: func(tr *tree) (problems []string) {
		targets := "\n"
		if f := tr.find("Makefile"); f != nil {
			targets += string(f.data)
		}
		there := func(name string) bool {
			_, err := fs.Stat(tr.fsys, name)
			return err == nil
		}
		for _, f := range tr.files {
			if !strings.HasPrefix(f.name, "slurm/env/") {
				continue
			}
			copies := map[string]bool{}
			for k, line := range f.lines() {
				complain := func(what string) {
					problems = append(problems, fmt.Sprintf("%s:%d: there is no %s", f.name, k+1, what))
				}
				for _, m := range makeTarget.FindAllStringSubmatch(line, -1) {
					if !strings.Contains(targets, "\n"+m[1]+":") {
						complain("make " + m[1])
					}
				}
				for _, m := range ownPath.FindAllStringSubmatch(line, -1) {
					if !there(m[1]) {
						complain(m[1])
					}
				}
				if m := copied.FindStringSubmatch(line); m != nil {
					copies[m[1]] = true
					if m[1] != ".git" && !there(m[1]) {
						complain(m[1])
					}
				}
			}
			for _, top := range topNames {
				if len(copies) > 0 && !copies[top] && there(top) {
					problems = append(problems, fmt.Sprintf("%s: it does not copy %s", f.name, top))
				}
			}
		}
		return problems
	},
	bad: fstest.MapFS{
		"Makefile":       {Data: []byte("build: deps\nbuild-pure:\n")},
		"configs/a.yaml": {},
		"slurm/env/README.md": {Data: []byte("Type `make build CUDA=1`, not make install.\nSee `configs/a.yaml`, " +
			"CLONE/configs/b.yaml and /usr/configs/c.yaml.\n")},
		"slurm/env/x.def": {Data: []byte("%files\n    .git /src/.git\n    Makefile /src/Makefile\n    docs /src/docs\n   " +
			" /src/tests/a.sh /opt/a\n")},
		"slurm/other.md": {Data: []byte("make nothing\n")},
	},
	want: []string{
		"slurm/env/README.md:1: there is no make install",
		"slurm/env/README.md:2: there is no configs/b.yaml",
		"slurm/env/x.def:4: there is no docs",
		"slurm/env/x.def:5: there is no tests/a.sh",
		"slurm/env/x.def: it does not copy configs",
		"slurm/env/x.def: it does not copy slurm",
	},
}
