package verbs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"fluentps/internal/configs"
	"fluentps/internal/policy/local"
	"fluentps/internal/policy/terms"
)

// localNames are the policies of local, and its periods, but for those that change nothing.
func localNames() []string { return slices.Concat(local.All.Names()[1:], local.Periods.Names()[1:]) }

// explainLocal writes a policy of local, or one of its periods, with its keys and the defaults that they have there. It returns false for
// another name.
func explainLocal(c *cli.Context, name string) (known bool, err error) {
	var b strings.Builder
	e, isPolicy := local.All.Lookup(name)
	p, _ := local.Periods.Lookup(name)
	switch {
	case !slices.Contains(localNames(), name):
		return false, nil
	case isPolicy:
		fmt.Fprintf(&b, "%s   (local: {policy: %s})\n\n", name, name)
		wrapped(&b, "  rule   ", e.Rule)
		wrapped(&b, "  source ", e.Source)
	default:
		fmt.Fprintf(&b, "%s   (local: {period: {name: %s}}, with policy %s)\n\n", name, name, strings.Join(local.OfPeriods(), ", "))
		wrapped(&b, "  rule   ", p.Rule)
		wrapped(&b, "  source ", p.Source)
	}
	b.WriteString("\nKeys of local:\n\n")
	for _, k := range configs.Keys() {
		key, in := strings.CutPrefix(k.Path, "local.")
		general := isPolicy && k.With == "" && key != "policy" && (e.Periods || !strings.HasPrefix(key, "period."))
		if in && (general || isOnlyWith(&k, name)) {
			wrapped(&b, fmt.Sprintf("  %-22s ", key+": "+cmp.Or(e.Defaults[k.Path], k.Default)), k.Doc)
		}
	}
	if isPolicy {
		b.WriteString(termsText(slices.DeleteFunc(e.Stated(), func(t terms.Term) bool {
			return !e.Periods && strings.Contains(t.Forbidden(), "period") // its page has no such key
		}), name, "the scheme"))
	} else {
		b.WriteString(termsText(p.Stated(), name, "the scheme"))
	}
	_, err = fmt.Fprint(c.App.Writer, b.String())
	return true, err
}

// termsText is what an entry does not go with, as check says it; "" if there is nothing.
func termsText(stated []terms.Term, name, scheme string) string {
	var b strings.Builder
	for _, t := range stated {
		fmt.Fprintf(&b, "  %s:\n", strings.ReplaceAll(t.Forbidden(), "`", ""))
		wrapped(&b, "      ", t.Reason(name, scheme))
	}
	if b.Len() == 0 {
		return ""
	}
	return "\nWhat it does not go with (check says where):\n\n" + b.String()
}

// isOnlyWith says whether a key exists only with some names, of which this is one.
func isOnlyWith(k *configs.Key, name string) bool {
	return slices.Contains(strings.FieldsFunc(k.With, func(r rune) bool { return r == ' ' || r == ',' }), name)
}
