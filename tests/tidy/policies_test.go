package tidy

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"testing/fstest"

	"fluentps/internal/policy/local"
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
		"configs/a_test.go": {Data: []byte("package configs\n\nconst b = \"diloco\"\n")},
	},
	want: []string{
		"configs/a.go:5: names diloco, a policy of local; give its entry in internal/policy/local a field",
		"configs/a.go:5: names qsr, a policy of local; give its entry in internal/policy/local a field",
	},
}
