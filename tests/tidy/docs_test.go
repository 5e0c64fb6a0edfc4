package tidy

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing/fstest"

	"fluentps/internal/policy/send"
	"fluentps/ps/scheme"
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

// examplesMentioned: an example that no README names is one that nobody finds. A name with SCHEME in it stands for those of all
// schemes, so that a new one edits no page.
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
			family := path.Base(f.name)
			for _, e := range tr.schemes {
				if prefix, ok := strings.CutSuffix(family, "-"+e.Name+".yaml"); ok {
					family = prefix + "-SCHEME.yaml"
				}
			}
			if !strings.Contains(readmes.String(), path.Base(f.name)) && !strings.Contains(readmes.String(), family) {
				problems = append(problems, f.name+": no README.md mentions it")
			}
		}
		return problems
	},
	bad: fstest.MapFS{
		"README.md":                        {Data: []byte("configs/examples/a.yaml x-SCHEME.yaml\n")},
		"configs/examples/x-s.yaml":        {Data: []byte("name: x\n")},
		"configs/examples/y-s.yaml":        {Data: []byte("name: y\n")},
		"configs/examples/x-t.yaml":        {Data: []byte("name: x\n")},
		"configs/examples/a.yaml":          {Data: []byte("name: a\n")},
		"configs/examples/b.yaml":          {Data: []byte("name: b\n")},
		"internal/configs/testdata/c.yaml": {Data: []byte("name: c\n")},
		"configs/examples/note.md":         {Data: []byte("b.yaml\n")},
	},
	schemes: []scheme.Entry{{Name: "s"}},
	want: []string{
		"configs/examples/b.yaml: no README.md mentions it",
		"configs/examples/x-t.yaml: no README.md mentions it",
		"configs/examples/y-s.yaml: no README.md mentions it",
	},
}

func examples(tr *tree) (files []*file) {
	for _, f := range tr.files {
		if f.dir == "configs/examples" && path.Ext(f.name) == ".yaml" {
			files = append(files, f)
		}
	}
	return files
}

const sendPage = "internal/policy/send/README.md"

// sendRow is the line of the page on sending that belongs to a send policy.
func sendRow(e send.Entry) string {
	return fmt.Sprintf("| `%s` | %s | %s |", e.Name, e.Rule, e.Paper)
}

// sendRows keeps the table of send policies equal to the table in the code.
var sendRows = rule{
	name: "send-rows",
	check: func(tr *tree) (problems []string) {
		page := tr.find(sendPage)
		for _, e := range send.All {
			if page == nil || !slices.Contains(page.lines(), sendRow(e)) {
				problems = append(problems, sendPage+" lacks the row\n"+sendRow(e))
			}
		}
		return problems
	},
	bad: fstest.MapFS{sendPage: {Data: []byte(sendRow(send.All[0]) + "\n" + sendRow(send.All[1]) + "\n" +
		sendRow(send.All[2]) + "\n" + sendRow(send.All[3]) + "\n")}},
	want: []string{sendPage + " lacks the row\n" + sendRow(send.All[4])},
}

// schemesComplete: each scheme must have a script, a paper test and an example to run.
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
		"ps/scheme/testdata/a/one":    {Data: []byte("x\n")},
		"ps/scheme/a_paper_test.go":   {Data: []byte("package scheme\n")},
		"configs/examples/first.yaml": {Data: []byte("sync:\n  - {match: \"*\", scheme: a, staleness: 3}\n  - scheme: ab\n")},
	},
	schemes: []scheme.Entry{{Name: "a"}, {Name: "b"}},
	want: []string{
		"scheme b: no script in ps/scheme/testdata/b/",
		"scheme b: no ps/scheme/b_paper_test.go",
		"scheme b: no example in configs/examples that uses it",
	},
}
