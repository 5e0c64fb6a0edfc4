// Package localtest adds policies to the table of package local, for tests of what a policy of its own needs.
package localtest

import (
	"fmt"
	"slices"
	"strings"

	"fluentps/internal/policy/local"
)

// Add adds a policy to the table, and returns what takes it out again. It fails if the entry lacks a field or if its name is taken. It must
// be called before a configuration is read, because reading accepts only the policies in the table.
func Add(e local.Entry) (remove func(), err error) {
	if err := e.Complete(); err != nil {
		return nil, fmt.Errorf("local policy %q: %w", e.Name, err)
	}
	if _, there := local.All.Lookup(e.Name); there {
		return nil, fmt.Errorf("local policy %q: the name is taken; choose another one. Taken are %s", e.Name,
			strings.Join(local.All.Names(), ", "))
	}
	local.All = append(local.All, e)
	return func() {
		local.All = slices.DeleteFunc(local.All, func(of local.Entry) bool { return of.Name == e.Name })
	}, nil
}
