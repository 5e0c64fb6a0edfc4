package tidy

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing/fstest"

	"fluentps/internal/policy/local"
	"fluentps/internal/policy/payload"
	"fluentps/internal/policy/work"
	"fluentps/ps/scheme"
)

// policyNames are the names of local's policies and periods that mean nothing else.
func policyNames() []string { return slices.Concat(local.All.Names()[1:], local.Periods.Names()[1:]) }

// policiesInTheirTable: code that compares the name of a policy of local knows what only the policy's entry should know, so that a new
// policy would need changes there. A rule of the servers may have the name of a policy.
var policiesInTheirTable = rule{
	name: "policies-in-their-table",
	check: func(tr *tree) (problems []string) {
		for _, f := range tr.goFiles() {
			if f.dir == "internal/policy/local" || f.dir == "internal/policy/optim" {
				continue
			}
			ast.Inspect(f.ast, func(n ast.Node) bool {
				problems = append(problems, compared(tr, f, n)...)
				if s, ok := n.(*ast.BasicLit); ok && s.Kind == token.STRING {
					if name, err := strconv.Unquote(s.Value); err == nil && slices.Contains(policyNames(), name) {
						problems = append(problems,
							fmt.Sprintf("%s:%d: names %s, a policy of local; give its entry in internal/policy/local a field", f.name, tr.line(s.Pos()), name))
					}
				}
				return true
			})
		}
		return problems
	},
	bad: fstest.MapFS{
		"internal/policy/local/a.go": {Data: []byte("package local\n\nconst a = \"diloco\"\n")},
		"internal/policy/optim/a.go": {Data: []byte("package optim\n\nconst a = \"slowmo\"\n")},
		"configs/a.go": {Data: []byte("package configs\n\n// as diloco\nfunc a(s string) bool {\n\treturn s == " +
			"\"diloco\" || s == `qsr` || s == \"set diloco\" || s == \"none\"\n}\n")},
		"internal/configs/a.go": {Data: []byte("package configs\n\nfunc a(s string) bool {\n\tswitch s {\n\tcase \"flexrr\":\n\t}\n" +
			"\treturn s != \"ringleader\" || s == \"threshold\" || a(\"asp\")\n}\n")},
		"internal/configs/rules/a.go": {Data: []byte("package rules\n\nfunc a(s string) bool { return s == \"flexrr\" }\n")},
		"configs/a_test.go":           {Data: []byte("package configs\n\nconst b = \"diloco\"\n")},
	},
	want: []string{
		"configs/a.go:5: names diloco, a policy of local; give its entry in internal/policy/local a field",
		"configs/a.go:5: names qsr, a policy of local; give its entry in internal/policy/local a field",
		"internal/configs/a.go:5: compares with flexrr; state a term or a fact in its entry",
		"internal/configs/a.go:7: compares with ringleader; state a term or a fact in its entry",
		"internal/configs/rules/a.go:3: compares with flexrr; state a term or a fact in its entry",
	},
}

// compared reports a comparison, in the packages that check configurations, with the name of a scheme, of a payload or of
// a policy of work that means nothing else: what such an entry does not go with is a term beside its own code.
func compared(tr *tree, f *file, n ast.Node) (problems []string) {
	var with []ast.Expr
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if n.Op == token.EQL || n.Op == token.NEQ {
			with = []ast.Expr{n.X, n.Y}
		}
	case *ast.CaseClause:
		with = n.List
	}
	names := slices.Concat(scheme.All.Names(), work.All.Names(), payload.All.Names())
	for _, x := range with {
		s, ok := x.(*ast.BasicLit)
		if !ok || !strings.HasPrefix(f.dir+"/", "internal/configs/") || s.Kind != token.STRING {
			continue
		}
		name, err := strconv.Unquote(s.Value)
		means := []string{"threshold", "dbs", "float32"} // a key, a kind of slowness, the type of a number
		if err == nil && slices.Contains(names, name) && !slices.Contains(means, name) {
			problems = append(problems, fmt.Sprintf("%s:%d: compares with %s; state a term or a fact in its entry", f.name, tr.line(s.Pos()), name))
		}
	}
	return problems
}
