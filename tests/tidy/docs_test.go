package tidy

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing/fstest"

	"fluentps/ps/scheme"
	"fluentps/ps/send"
)

var (
	fence      = regexp.MustCompile("(?ms)^```.*?^```$")
	inlineCode = regexp.MustCompile("`[^`\n]*`")
	markdown   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading    = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	notInSlug  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

var links = rule{
	name: "links",
	check: func(tr *tree) (problems []string) {
		for _, f := range tr.files {
			if path.Ext(f.name) != ".md" || f.inTestdata() {
				continue
			}
			prose := inlineCode.ReplaceAllString(fence.ReplaceAllString(string(f.data), ""), "")
			for _, m := range markdown.FindAllStringSubmatch(prose, -1) {
				if !strings.Contains(m[1], "://") && !strings.HasPrefix(m[1], "mailto:") && !resolves(tr, f, m[1]) {
					problems = append(problems, fmt.Sprintf("%s: the link %s leads nowhere", f.name, m[1]))
				}
			}
		}
		return problems
	},
	bad: fstest.MapFS{
		"a/a.md": {Data: []byte("# One: two\n[ok](../b.md) [folder](../a/) [here](#one-two) [there](../b.md#x) [web](https://x.org)\n" +
			"[gone](b.md) [no heading](#three) [nor there](../b.md#y) `[code](z.md)`\n```\n[code](z.md)\n```\n[out](../../c.md)\n")},
		"b.md": {Data: []byte("## x\n")},
	},
	want: []string{
		"a/a.md: the link b.md leads nowhere",
		"a/a.md: the link #three leads nowhere",
		"a/a.md: the link ../b.md#y leads nowhere",
		"a/a.md: the link ../../c.md leads nowhere",
	},
}

// resolves says whether a relative link of f names a file or folder and, if it has an anchor, a heading there.
func resolves(tr *tree, f *file, link string) bool {
	target, anchor, _ := strings.Cut(link, "#")
	name := f.name
	if target != "" {
		name = path.Join(f.dir, target)
		if !fs.ValidPath(name) {
			return false
		}
		if _, err := fs.Stat(tr.fsys, name); err != nil {
			return false
		}
	}
	if anchor == "" {
		return true
	}
	document := tr.find(name)
	if document == nil {
		return false
	}
	for _, m := range heading.FindAllStringSubmatch(string(document.data), -1) {
		if strings.ReplaceAll(notInSlug.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-") == anchor {
			return true
		}
	}
	return false
}

// examplesMentioned: an example that no README names is one that nobody finds.
var examplesMentioned = rule{
	name: "examples-mentioned",
	check: func(tr *tree) (problems []string) {
		var readmes strings.Builder
		for _, f := range tr.files {
			if path.Base(f.name) == "README.md" {
				readmes.Write(f.data)
			}
		}
		for _, f := range examples(tr) {
			if !strings.Contains(readmes.String(), path.Base(f.name)) {
				problems = append(problems, f.name+": no README.md mentions it")
			}
		}
		return problems
	},
	bad: fstest.MapFS{
		"README.md":                {Data: []byte("configs/examples/a.yaml\n")},
		"configs/examples/a.yaml":  {Data: []byte("name: a\n")},
		"configs/examples/b.yaml":  {Data: []byte("name: b\n")},
		"configs/testdata/c.yaml":  {Data: []byte("name: c\n")},
		"configs/examples/note.md": {Data: []byte("b.yaml\n")},
	},
	want: []string{"configs/examples/b.yaml: no README.md mentions it"},
}

func examples(tr *tree) (files []*file) {
	for _, f := range tr.files {
		if f.dir == "configs/examples" && path.Ext(f.name) == ".yaml" {
			files = append(files, f)
		}
	}
	return files
}

// readmeRow is the line of README.md that belongs to a scheme.
func readmeRow(e scheme.Entry) string {
	return fmt.Sprintf("| `%s` | %s | %s (%s) |", e.Name, e.Rule, e.Paper, e.Evidence)
}

// readmeSchemes keeps the table in README.md equal to the table in the code, row for row.
var readmeSchemes = rule{
	name: "readme-schemes",
	check: func(tr *tree) (problems []string) {
		readme := tr.find("README.md")
		if readme == nil {
			return []string{"README.md: missing"}
		}
		var rows []string
		inside := false
		for _, line := range readme.lines() {
			if strings.HasPrefix(line, "#") {
				inside = strings.Contains(line, "Schemes")
			}
			if inside && strings.HasPrefix(line, "| `") {
				rows = append(rows, line)
			}
		}
		for k, e := range tr.schemes {
			if k >= len(rows) || rows[k] != readmeRow(e) {
				problems = append(problems, fmt.Sprintf("README.md: row %d of the table under \"Schemes\" must be\n%s", k+1, readmeRow(e)))
			}
		}
		for k := len(tr.schemes); k < len(rows); k++ {
			problems = append(problems, "README.md: no such scheme: "+rows[k])
		}
		return problems
	},
	bad: fstest.MapFS{"README.md": {Data: []byte("## Schemes\n\n| scheme | rule | source |\n|---|---|---|\n" +
		"| `a` | waits | Doe 1999 (P) |\n| `b` | runs | Doe 2000 (P) |\n| `c` | | |\n## Other\n| `d` |\n")}},
	schemes: []scheme.Entry{
		{Name: "a", Rule: "waits", Paper: "Doe 1999", Evidence: "P"},
		{Name: "b", Rule: "walks", Paper: "Doe 2000", Evidence: "P"},
	},
	want: []string{
		"README.md: row 2 of the table under \"Schemes\" must be\n| `b` | walks | Doe 2000 (P) |",
		"README.md: no such scheme: | `c` | | |",
	},
}

// sendRow is the line of README.md that belongs to a send policy.
func sendRow(e send.Entry) string {
	return fmt.Sprintf("| `%s` | %s | %s |", e.Name, e.Rule, e.Paper)
}

// readmeSend keeps the table of send policies in README.md equal to the table in the code.
var readmeSend = rule{
	name: "readme-send",
	check: func(tr *tree) (problems []string) {
		readme := tr.find("README.md")
		for _, e := range send.All {
			if readme == nil || !slices.Contains(readme.lines(), sendRow(e)) {
				problems = append(problems, "README.md: the table under \"Sending\" lacks the row\n"+sendRow(e))
			}
		}
		return problems
	},
	bad:  fstest.MapFS{"README.md": {Data: []byte(sendRow(send.All[0]) + "\n" + sendRow(send.All[1]) + "\n")}},
	want: []string{"README.md: the table under \"Sending\" lacks the row\n" + sendRow(send.All[2])},
}

// schemesComplete: a scheme without its script, its paper test and an example to run is not finished.
var schemesComplete = rule{
	name: "schemes-complete",
	check: func(tr *tree) (problems []string) {
		for _, e := range tr.schemes {
			lacks := func(format string, args ...any) {
				problems = append(problems, fmt.Sprintf("scheme %s: no ", e.Name)+fmt.Sprintf(format, args...))
			}
			if entries, err := fs.ReadDir(tr.fsys, "ps/scheme/testdata/"+e.Name); err != nil || len(entries) == 0 {
				lacks("script in ps/scheme/testdata/%s/", e.Name)
			}
			if tr.find("ps/scheme/"+e.Name+"_paper_test.go") == nil {
				lacks("ps/scheme/%s_paper_test.go", e.Name)
			}
			if readme := tr.find("ps/scheme/README.md"); readme == nil || !strings.Contains(string(readme.data), "`"+e.Name+"`") {
				lacks("row in ps/scheme/README.md")
			}
			used := regexp.MustCompile(`\bscheme: *["']?` + e.Name + `\b`)
			found := false
			for _, f := range examples(tr) {
				found = found || used.Match(f.data)
			}
			if !found {
				lacks("example in configs/examples that uses it")
			}
		}
		return problems
	},
	bad: fstest.MapFS{
		"ps/scheme/README.md":         {Data: []byte("| `a` |\n")},
		"ps/scheme/testdata/a/one":    {Data: []byte("x\n")},
		"ps/scheme/a_paper_test.go":   {Data: []byte("package scheme\n")},
		"configs/examples/first.yaml": {Data: []byte("sync:\n  - {match: \"*\", scheme: a, staleness: 3}\n  - scheme: ab\n")},
	},
	schemes: []scheme.Entry{{Name: "a"}, {Name: "b"}},
	want: []string{
		"scheme b: no script in ps/scheme/testdata/b/",
		"scheme b: no ps/scheme/b_paper_test.go",
		"scheme b: no row in ps/scheme/README.md",
		"scheme b: no example in configs/examples that uses it",
	},
}
