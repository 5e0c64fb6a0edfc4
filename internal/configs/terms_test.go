package configs

import (
	"fmt"
	"strings"
	"testing"

	"fluentps/internal/configs/keys"
	"fluentps/internal/configs/settings"
	"fluentps/internal/policy/local"
	"fluentps/internal/policy/payload"
	"fluentps/internal/policy/send"
	"fluentps/internal/policy/terms"
	"fluentps/internal/policy/work"
	"fluentps/ps/scheme"
	"fluentps/tests/pagetest"
)

// eachStated visits the terms of all entries, with their names, in the order of the tables.
func eachStated(visit func(table, name string, t terms.Term)) {
	for _, e := range scheme.All {
		for _, t := range e.Stated() {
			visit("scheme", e.Name, t)
		}
	}
	for _, e := range payload.All {
		for _, t := range e.Stated() {
			visit("payload.push", e.Name, t)
		}
	}
	for _, e := range work.All {
		for _, t := range e.Stated() {
			visit("work.policy", e.Name, t)
		}
	}
	for _, e := range local.All {
		for _, t := range e.Stated() {
			visit("local.policy", e.Name, t)
		}
	}
	for _, e := range local.Periods {
		for _, t := range e.Stated() {
			visit("local.period", e.Name, t)
		}
	}
	for _, e := range send.All {
		for _, t := range e.Stated() {
			visit("send.order", e.Name, t)
		}
	}
}

// TestWhatComposes writes what composes with what into the page, from the terms that check uses.
func TestWhatComposes(t *testing.T) {
	var rows []string
	who := map[string][]string{}
	eachStated(func(table, name string, term terms.Term) {
		scheme := "the scheme"
		if table == "scheme" {
			scheme = "it"
		}
		row := fmt.Sprintf("| %s | %s |", term.Forbidden(), term.Reason("it", scheme))
		if who[table+row] == nil {
			rows = append(rows, table+row)
		}
		who[table+row] = append(who[table+row], "`"+name+"`")
	})
	made := "| who | does not go with | because, and what to do |\n|---|---|---|\n"
	for _, row := range rows {
		table, rest, _ := strings.Cut(row, "|")
		made += fmt.Sprintf("| %s %s |%s\n", table, strings.Join(who[row], ", "), rest)
	}
	pagetest.Table(t, *update, "ps/scheme/COMPOSE.md", "go test ./internal/configs -run TestWhatComposes -update", made, 0)
}

// TestTermsNameKeys: a key that does not exist would never break a term, and its text would have a gap.
func TestTermsNameKeys(t *testing.T) {
	top := keys.Bind("", keys.TopKeys, &settings.Config{})
	n := 0
	eachStated(func(table, name string, term terms.Term) {
		n++
		for _, path := range strings.Split(term.At, "|") {
			if path != "" && !strings.HasPrefix(path, ".") && top.ByPath[path] == nil {
				t.Errorf("%s %s: an error at %s, which is no key", table, name, path)
			}
		}
		for _, c := range term.Conds() {
			if k, is := c.(terms.Key); is && !strings.HasPrefix(k.Path, ".") && top.ByPath[k.Path] == nil {
				t.Errorf("%s %s: compares %s, which is no key", table, name, k.Path)
			}
		}
		terms.Fill(term.Why+term.Out, func(word string) string {
			if strings.Contains(word, ".") && !strings.Contains(word, " ") && !strings.HasPrefix(word, ".") &&
				word != "other.scheme" && top.ByPath[word] == nil {
				t.Errorf("%s %s: {%s} is no key", table, name, word)
			}
			return ""
		})
	})
	if n < 100 {
		t.Errorf("%d terms, want those of all tables", n)
	}
}
