package tidy

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing/fstest"
)

// pure packages decide, and never act. The simulator runs them in virtual time, and recorded runs are replayed through them. That
// works only if they have no access to a clock, a thread, randomness or the outside. The same rules hold for the simulator itself,
// which acts only in virtual time.
var pure = []string{
	"internal/comm/wire", "internal/core", "internal/core/inturn", "internal/core/servernode", "internal/core/shard",
	"internal/core/snapshot", "internal/core/steps", "internal/core/straggle", "internal/core/workernode",
	"internal/plan/build", "internal/plan/layout", "internal/plan/network", "internal/policy/local",
	"internal/policy/optim", "internal/policy/payload", "internal/policy/send", "internal/policy/straggler",
	"internal/policy/terms", "internal/policy/work", "internal/policy/work/code", "internal/show/report", "internal/show/report/plot",
	"internal/sim", "internal/sim/calibrate", "internal/sim/check", "internal/sim/real", "ps/scheme",
	"ps/workload/shapes",
}

// pureFiles calls visit with every node of every non-test file of the pure packages.
func pureFiles(tr *tree, visit func(f *file, names map[string]string, n ast.Node)) {
	for _, f := range tr.goFiles() {
		if !slices.Contains(pure, f.dir) {
			continue
		}
		names := importNames(f)
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if n != nil {
				visit(f, names, n)
			}
			return true
		})
	}
}

// importNames maps the name under which f sees a package to its import path.
func importNames(f *file) map[string]string {
	names := map[string]string{}
	for _, spec := range f.ast.Imports {
		importPath, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		name := importPath[strings.LastIndexByte(importPath, '/')+1:]
		if name == "v2" {
			name = "rand" // the only such path in the pure packages is math/rand/v2
		}
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = importPath
	}
	return names
}

// selected returns the import path and the name where n is package.Name.
func selected(names map[string]string, n ast.Node) (importPath, name string, ok bool) {
	sel, ok := n.(*ast.SelectorExpr)
	if !ok {
		return "", "", false
	}
	id, ok := sel.X.(*ast.Ident)
	if !ok {
		return "", "", false
	}
	importPath, ok = names[id.Name]
	return importPath, sel.Sel.Name, ok
}

var impureRoots = []string{
	"C", "context", "crypto/rand", "embed", "io/fs", "io/ioutil", "log", "math/rand", "net", "os", "path/filepath",
	"plugin", "runtime", "sync", "syscall", "testing", "unsafe",
}

var pureImports = rule{
	name: "pure-imports",
	check: func(tr *tree) (problems []string) {
		for _, f := range tr.goFiles() {
			if !slices.Contains(pure, f.dir) {
				continue
			}
			for _, spec := range f.ast.Imports {
				importPath, _ := strconv.Unquote(spec.Path.Value)
				impure := slices.ContainsFunc(impureRoots, func(root string) bool {
					return importPath == root || strings.HasPrefix(importPath, root+"/")
				})
				if impure && importPath != "math/rand/v2" {
					problems = append(problems, fmt.Sprintf("%s:%d: %s is pure and may not import %s", f.name, tr.line(spec.Pos()), f.dir, importPath))
				}
				if spec.Name != nil && spec.Name.Name == "." {
					problems = append(problems, fmt.Sprintf("%s:%d: a dot import hides where a name comes from", f.name, tr.line(spec.Pos())))
				}
			}
		}
		return problems
	},
	bad: fstest.MapFS{
		"internal/core/a.go": {Data: []byte("package core\nimport " +
			"(\n\"os/signal\"\n\"sync\"\n\"log/slog\"\n\"math/rand\"\n\"math/rand/v2\"\n. \"fmt\"\n)\n")},
		"internal/core/a_test.go":    {Data: []byte("package core\nimport \"os\"\n")},
		"internal/rank/runtime/a.go": {Data: []byte("package runtime\nimport \"os\"\n")},
	},
	want: []string{
		"internal/core/a.go:3: internal/core is pure and may not import os/signal",
		"internal/core/a.go:4: internal/core is pure and may not import sync",
		"internal/core/a.go:5: internal/core is pure and may not import log/slog",
		"internal/core/a.go:6: internal/core is pure and may not import math/rand",
		"internal/core/a.go:8: a dot import hides where a name comes from",
	},
}

var clockNames = []string{"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until"}

var pureTime = rule{
	name: "pure-time",
	check: func(tr *tree) (problems []string) {
		pureFiles(tr, func(f *file, names map[string]string, n ast.Node) {
			if importPath, name, ok := selected(names, n); ok && importPath == "time" && slices.Contains(clockNames, name) {
				problems = append(problems, fmt.Sprintf("%s:%d: time.%s in a pure package; times come in events", f.name, tr.line(n.Pos()), name))
			}
		})
		return problems
	},
	bad: fstest.MapFS{
		"ps/scheme/a.go": {Data: []byte("package scheme\nimport tm \"time\"\nvar d tm.Duration\nvar n = tm.Now\nfunc f() { tm.Sleep(d) }\n")},
	},
	want: []string{
		"ps/scheme/a.go:4: time.Now in a pure package; times come in events",
		"ps/scheme/a.go:5: time.Sleep in a pure package; times come in events",
	},
}

// seededNames are the names of math/rand/v2 that take a seed. All others draw from a global generator.
var seededNames = []string{"ChaCha8", "New", "NewChaCha8", "NewPCG", "NewZipf", "PCG", "Rand", "Source", "Zipf"}

var pureRandom = rule{
	name: "pure-random",
	check: func(tr *tree) (problems []string) {
		pureFiles(tr, func(f *file, names map[string]string, n ast.Node) {
			importPath, name, ok := selected(names, n)
			if ok && strings.HasPrefix(importPath, "math/rand") && !slices.Contains(seededNames, name) {
				problems = append(problems,
					fmt.Sprintf("%s:%d: rand.%s draws from a global generator; draw from the seeded one", f.name, tr.line(n.Pos()), name))
			}
		})
		return problems
	},
	bad: fstest.MapFS{
		"internal/core/shard/a.go": {Data: []byte("package shard\nimport \"math/rand/v2\"\nvar p *rand.PCG\n" +
			"var x = rand.IntN(3)\nvar r = rand.New(p)\n")},
	},
	want: []string{"internal/core/shard/a.go:4: rand.IntN draws from a global generator; draw from the seeded one"},
}

var pureFlow = rule{
	name: "pure-flow",
	check: func(tr *tree) (problems []string) {
		pureFiles(tr, func(f *file, _ map[string]string, n ast.Node) {
			what := ""
			switch n := n.(type) {
			case *ast.GoStmt:
				what = "a go statement"
			case *ast.ChanType:
				what = "a channel"
			case *ast.SelectStmt:
				what = "a select"
			case *ast.SendStmt:
				what = "a channel send"
			case *ast.UnaryExpr:
				if n.Op == token.ARROW {
					what = "a channel receive"
				}
			}
			if what != "" {
				problems = append(problems, fmt.Sprintf("%s:%d: %s in a pure package; drivers own all concurrency", f.name, tr.line(n.Pos()), what))
			}
		})
		return problems
	},
	bad: fstest.MapFS{
		"internal/policy/send/a.go": {Data: []byte("package send\nfunc f() {\n" +
			"\tgo f()\n\tc := make(chan int)\n\tc <- 1\n\t<-c\n\tselect {}\n}\n")},
	},
	want: []string{
		"internal/policy/send/a.go:3: a go statement in a pure package; drivers own all concurrency",
		"internal/policy/send/a.go:4: a channel in a pure package; drivers own all concurrency",
		"internal/policy/send/a.go:5: a channel send in a pure package; drivers own all concurrency",
		"internal/policy/send/a.go:6: a channel receive in a pure package; drivers own all concurrency",
		"internal/policy/send/a.go:7: a select in a pure package; drivers own all concurrency",
	},
}

var pureOutput = rule{
	name: "pure-output",
	check: func(tr *tree) (problems []string) {
		pureFiles(tr, func(f *file, names map[string]string, n ast.Node) {
			importPath, name, ok := selected(names, n)
			if ok && importPath == "fmt" && (strings.HasPrefix(name, "Print") || strings.HasPrefix(name, "Scan")) {
				problems = append(problems, fmt.Sprintf("%s:%d: fmt.%s in a pure package", f.name, tr.line(n.Pos()), name))
			}
			if call, isCall := n.(*ast.CallExpr); isCall {
				if id, isIdent := call.Fun.(*ast.Ident); isIdent && (id.Name == "print" || id.Name == "println") {
					problems = append(problems, fmt.Sprintf("%s:%d: %s in a pure package", f.name, tr.line(n.Pos()), id.Name))
				}
			}
		})
		return problems
	},
	bad: fstest.MapFS{
		"internal/policy/optim/a.go": {Data: []byte("package optim\nimport \"fmt\"\nfunc f() string " +
			"{\n\tfmt.Println()\n\tprintln()\n\treturn fmt.Sprint(1)\n}\n")},
	},
	want: []string{
		"internal/policy/optim/a.go:4: fmt.Println in a pure package",
		"internal/policy/optim/a.go:5: println in a pure package",
	},
}
