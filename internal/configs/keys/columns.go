package keys

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"fluentps/internal/configs/diag"
	"fluentps/ps/workload/dataset/csv"
)

// columnText is what the name of a column looks like.
const columnText = `^[^\x00-\x08\x0a-\x1f]+$`

var columnName = regexp.MustCompile(columnText)

// readColumns reads what columns are: {city: onehot, 4: standardize}.
func readColumns(ptr *csv.Columns, n *yaml.Node) *Problem {
	hint := fmt.Sprintf("write {NAME: %s}", strings.Join(csv.KindNames(), "} or {NAME: "))
	if n.Kind != yaml.MappingNode {
		return problemf(hint, "want columns and what each is, got %s", diag.Describe(n))
	}
	if len(n.Content)/2 > ItemsMax {
		return problemf(`write "*" for all that are of one kind`, "%d columns, more than the %d allowed", len(n.Content)/2, ItemsMax)
	}
	var names, kinds []string
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], diag.Deref(n.Content[i+1])
		var p *Problem
		switch tag := key.ShortTag(); {
		case key.Kind != yaml.ScalarNode || tag != "!!str" && tag != "!!int" || !columnName.MatchString(key.Value):
			p = problemf("write a name of the header, or a number from 1", "want a column, got %s", diag.Describe(key))
		case slices.Contains(names, key.Value):
			p = problemf("keep one of them", "column %s is here again", diag.Clip(key.Value))
		case value.Kind != yaml.ScalarNode || !slices.Contains(csv.KindNames(), value.Value):
			p = problemf(diag.DidYouMean(value.Value, csv.KindNames()), "want one of %s for column %s, got %s", strings.Join(csv.KindNames(), ", "),
				diag.Clip(key.Value), diag.Describe(value))
			key = value
		}
		if p != nil {
			p.At = key
			return p
		}
		names, kinds = append(names, key.Value), append(kinds, value.Value)
	}
	ptr.Kinds = csv.KindsOf(names, kinds)
	return nil
}

// formatColumns writes columns as YAML that reads back equal.
func formatColumns(c csv.Columns) string {
	var items []string
	c.Kinds.Each(func(name string, kind csv.Kind) { items = append(items, diag.FormatString(name)+": "+string(kind)) })
	return "{" + strings.Join(items, ", ") + "}"
}
