package tidy

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing/fstest"
)

// The words below are put together from pieces, so that this file does not break its own rules.
const slash = "/"

var topNames = []string{
	".ci", ".gitignore", "LICENSE", "Makefile", "README.md", "cmd", "configs", "fluentps.go", "go.mod", "go.sum", "internal",
	"kernels", "ps", "slurm", "tests",
}

var topLevel = rule{
	name: "top-level",
	check: func(tr *tree) (problems []string) {
		seen := map[string]bool{}
		for _, f := range tr.files {
			top, _, _ := strings.Cut(f.name, "/")
			if !seen[top] && !slices.Contains(topNames, top) {
				problems = append(problems, fmt.Sprintf("%s: not one of the top-level names: %s", top, strings.Join(topNames, " ")))
			}
			seen[top] = true
		}
		return problems
	},
	bad: fstest.MapFS{"docs/a.md": {}, "docs/b.md": {}, "ps/a.go": {Data: []byte("package ps\n")}, "bin/fluentps": {}, "x.test": {}},
	want: []string{
		"docs: not one of the top-level names: .ci .gitignore LICENSE Makefile README.md cmd configs fluentps.go " +
			"go.mod go.sum internal kernels ps slurm tests",
	},
}

// textHygiene does not check testdata, because goldens and deliberately bad inputs must stay as they are.
var textHygiene = rule{
	name: "text-hygiene",
	check: func(tr *tree) (problems []string) {
		for _, f := range tr.files {
			if !f.text || f.inTestdata() || len(f.data) == 0 {
				continue
			}
			for k, line := range f.lines() {
				switch {
				case strings.HasSuffix(line, "\r"):
					problems = append(problems, fmt.Sprintf("%s:%d: a carriage return", f.name, k+1))
				case strings.TrimRight(line, " \t") != line:
					problems = append(problems, fmt.Sprintf("%s:%d: a trailing blank", f.name, k+1))
				}
			}
			switch {
			case !bytes.HasSuffix(f.data, []byte("\n")):
				problems = append(problems, f.name+": no newline at the end")
			case bytes.HasSuffix(f.data, []byte("\n\n")):
				problems = append(problems, f.name+": an empty line at the end")
			}
		}
		return problems
	},
	bad: fstest.MapFS{
		"a.md":         {Data: []byte("x\x20\ny\t\nz\r\n")},
		"b.md":         {Data: []byte("x")},
		"c.md":         {Data: []byte("x\n\n")},
		"testdata/d":   {Data: []byte("x\x20\n")},
		"e.bin":        {Data: []byte("x\x00\x20\n")},
		"empty/e.yaml": {},
	},
	want: []string{
		"a.md:1: a trailing blank", "a.md:2: a trailing blank", "a.md:3: a carriage return",
		"b.md: no newline at the end", "c.md: an empty line at the end",
	},
}

var leftover = regexp.MustCompile(`\b(` + strings.Join([]string{"TO" + "DO", "FIX" + "ME", "XX" + "X"}, "|") + `)\b`)

var leftovers = rule{
	name: "leftovers",
	check: func(tr *tree) []string {
		return grep(tr, leftover, "is unfinished work: finish it or open an issue", nil)
	},
	bad:  fstest.MapFS{"a.md": {Data: []byte("x\nTO" + "DO: y\nmktemp a.XX" + "XXXX\n")}},
	want: []string{`a.md:2: "TO` + `DO" is unfinished work: finish it or open an issue`},
}

// strange matches names that a reader of the repository cannot look up: absolute paths of a developer's machine and notes that are
// not shipped.
var strange = regexp.MustCompile(strings.Join([]string{
	`(^|[^\w.])` + slash + "work" + slash, // not the package internal/policy/work
	`\b(design|peers|sync-core|straggler-and-contention|mpi-from-go|cuda-from-go)\.` + "md",
	`\b(style-` + `anchors|user-` + `expectations|slurm-and-` + `testbed)\b`,
}, "|"))

// elsewhere is data that a developer may have outside the repository. Only tests may read it.
var elsewhere = regexp.MustCompile(`\.\./` + "shared")

var strangeNames = rule{
	name: "strange-names",
	check: func(tr *tree) []string {
		problems := grep(tr, strange, "is nothing that a reader of this repository can open", nil)
		return append(problems, grep(tr, elsewhere, "is outside the repository; only tests may look there", func(f *file) bool {
			return f.isTest() || strings.HasPrefix(f.name, "tests/")
		})...)
	},
	bad: fstest.MapFS{
		"a.go": {Data: []byte("// Package a: see " + slash + "work" + slash +
			"x, internal/policy/work/x or ../work/x.\npackage a\n\n// As in design." + "md 4.\n")},
		"b.go":            {Data: []byte("package a\n\nconst data = \"../../../" + "shared/data\"\n")},
		"b_test.go":       {Data: []byte("package a\n\nconst data = \"../../../" + "shared/data\"\n")},
		"tests/accept/x":  {Data: []byte("../" + "shared/data\n")},
		"ps/framework/ok": {Data: []byte("framework/x, redesign it\n")},
	},
	want: []string{
		`a.go:1: " ` + slash + "work" + slash + `" is nothing that a reader of this repository can open`,
		`a.go:4: "design.` + `md" is nothing that a reader of this repository can open`,
		`b.go:3: "../` + `shared" is outside the repository; only tests may look there`,
	},
}

// grep reports each line of each text file that matches pattern, except in spared files.
func grep(tr *tree, pattern *regexp.Regexp, why string, spared func(*file) bool) (problems []string) {
	for _, f := range tr.files {
		if !f.text || f.name == "go.sum" || spared != nil && spared(f) || !pattern.Match(f.data) {
			continue
		}
		for k, line := range f.lines() {
			if found := pattern.FindString(line); found != "" {
				problems = append(problems, fmt.Sprintf("%s:%d: %q %s", f.name, k+1, found, why))
			}
		}
	}
	return problems
}

const blobBytesMax = 200 << 10

var blobs = rule{
	name: "blobs",
	check: func(tr *tree) (problems []string) {
		for _, f := range tr.files {
			if !f.text && len(f.data) > blobBytesMax {
				problems = append(problems, fmt.Sprintf("%s: a binary file of %d bytes, at most %d", f.name, len(f.data), blobBytesMax))
			}
		}
		return problems
	},
	bad: fstest.MapFS{
		"a.bin":          {Data: make([]byte, blobBytesMax+1)},
		"testdata/b.bin": {Data: make([]byte, blobBytesMax)},
		"c.txt":          {Data: bytes.Repeat([]byte("x"), blobBytesMax+1)},
	},
	want: []string{"a.bin: a binary file of 204801 bytes, at most 204800"},
}

// scripts: every script must stop at the first error, and be executable by name.
var scripts = rule{
	name: "scripts",
	check: func(tr *tree) (problems []string) {
		for _, f := range tr.files {
			if f.inTestdata() || !strings.HasSuffix(f.name, ".sh") && f.name != ".ci/run" {
				continue
			}
			if !bytes.HasPrefix(f.data, []byte("#!/usr/bin/env bash\n")) {
				if f.mode&0o111 != 0 {
					problems = append(problems, f.name+": the first line must be #!/usr/bin/env bash")
				}
				continue // a file that others source
			}
			if f.mode&0o111 == 0 {
				problems = append(problems, f.name+": not executable")
			}
			if !regexp.MustCompile(`(?m)^set -eu`).Match(f.data) {
				problems = append(problems, f.name+": no `set -eu`")
			}
		}
		return problems
	},
	bad: fstest.MapFS{
		".ci/run": {Data: []byte("#!/usr/bin/env bash\nset -eu\n")},
		"a.sh":    {Data: []byte("#!/bin/sh\nset -eu\n"), Mode: 0o755},
		"b.sh":    {Data: []byte("#!/usr/bin/env bash\ntrue\n"), Mode: 0o755},
		"lib.sh":  {Data: []byte("# to be sourced\n")},
	},
	want: []string{
		".ci/run: not executable",
		"a.sh: the first line must be #!/usr/bin/env bash",
		"b.sh: no `set -eu`",
	},
}
