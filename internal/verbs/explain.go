package verbs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"fluentps/internal/configs"
	"fluentps/internal/policy/local"
	"fluentps/internal/policy/payload"
	"fluentps/internal/policy/send"
	"fluentps/internal/policy/work"
	"fluentps/internal/sim"
	"fluentps/ps/scheme"
)

func explainCommand() *cli.Command {
	return &cli.Command{
		Name:      "explain",
		Usage:     "list the schemes, send policies, payloads, work policies and local policies, or explain one of them or a key of the YAML",
		ArgsUsage: "[NAME or KEY]",
		Action:    explainVerb,
		BashComplete: func(c *cli.Context) {
			for _, name := range slices.Concat(explained(), keyPaths()) {
				fmt.Fprintln(c.App.Writer, name)
			}
		},
	}
}

func explainVerb(c *cli.Context) error {
	if c.NArg() == 0 {
		return explainAll(c)
	}
	name, err := one(c, "NAME or KEY, or nothing")
	if err != nil {
		return err
	}
	name = strings.ToLower(name)
	if text := explainKey(name); text != "" {
		_, err := fmt.Fprint(c.App.Writer, text)
		return err
	}
	if p, ok := send.All.Lookup(name); ok {
		return explainSend(c, p)
	}
	if p, ok := payload.All.Lookup(name); ok {
		return explainPayload(c, p)
	}
	if p, ok := work.All.Lookup(name); ok {
		return explainWork(c, p)
	}
	if known, err := explainLocal(c, name); known {
		return err
	}
	e, ok := scheme.All.Lookup(name)
	if !ok {
		if near := configs.Nearest(plainPath(name), slices.Concat(explained(), keyNames())); len(near) > 0 {
			return usagef("explain: there is no scheme, send policy, payload, work policy, local policy or key %q; did you "+
				"mean %s?", name, strings.Join(near, " or "))
		}
		return usagef("explain: %s; check --resolved FILE lists the keys",
			unknown("scheme, send policy, payload, work policy or local policy", name, explained()))
	}
	text, err := scheme.Explain(name)
	if err != nil {
		return err
	}
	drawing, err := sim.Timeline(e)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.App.Writer, "%s\n%s%s", text, drawing, termsText(e.Stated(), e.Name, e.Name))
	return err
}

func explained() []string {
	return slices.Concat(scheme.All.Names(), send.All.Names(), payload.All.Names(), work.All.Names(), localNames())
}

// explainWork writes a policy of work with its keys.
func explainWork(c *cli.Context, p work.Entry) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s   (work: {policy: %s})\n\n", p.Name, p.Name)
	wrapped(&b, "  rule   ", p.Rule)
	wrapped(&b, "  source ", p.Source)
	b.WriteString("\nKeys of work:\n\n")
	for _, k := range configs.Keys() {
		if name, ok := strings.CutPrefix(k.Path, "work."); ok && name != "policy" && isOnlyWith(&k, p.Name) {
			wrapped(&b, fmt.Sprintf("  %-22s ", name+": "+k.Default), k.Doc)
		}
	}
	b.WriteString(termsText(p.Stated(), p.Name, "the scheme"))
	_, err := fmt.Fprint(c.App.Writer, b.String())
	return err
}

// explainPayload writes a codec with its keys.
func explainPayload(c *cli.Context, p payload.Entry) error {
	var b strings.Builder
	if p.Residual {
		fmt.Fprintf(&b, "%s   (payload: {push: %s})\n\n", p.Name, p.Name)
	} else {
		fmt.Fprintf(&b, "%s   (payload: {push: %s, pull: %s})\n\n", p.Name, p.Name, p.Name)
	}
	wrapped(&b, "  rule   ", p.Rule)
	wrapped(&b, "  paper  ", fmt.Sprintf("%s [%s]", p.Paper, p.Evidence))
	if p.Lossy {
		wrapped(&b, "         ", "Lossy: the values that arrive differ from those that were sent, and the summary says so.")
	}
	if p.Residual {
		wrapped(&b, "         ", "Each piece of a push is encoded separately, so the encoded values depend on shards and shards.max_bytes.")
		b.WriteString("\nKeys of payload:\n\n")
	}
	for _, k := range configs.Keys() {
		if name, ok := strings.CutPrefix(k.Path, "payload."); ok && p.Residual && (name == "ratio" || name == p.Name) {
			wrapped(&b, fmt.Sprintf("  %-22s ", name+": "+k.Default), k.Doc)
		}
	}
	b.WriteString(termsText(p.Stated(), p.Name, "the scheme"))
	_, err := fmt.Fprint(c.App.Writer, b.String())
	return err
}

// explainSend writes a send policy with its keys.
func explainSend(c *cli.Context, p send.Entry) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s   (send: {order: %s})\n\n", p.Name, p.Name)
	wrapped(&b, "  rule   ", p.Rule)
	wrapped(&b, "  paper  ", p.Paper)
	if p.Reply != nil {
		wrapped(&b, "         ", "A server sends its replies to each worker in the same order.")
	}
	if len(p.Keys) > 0 {
		b.WriteString("\nKeys of send:\n\n")
	}
	for _, k := range configs.Keys() {
		name, ok := strings.CutPrefix(k.Path, "send.")
		if section, _, _ := strings.Cut(name, "."); ok && slices.Contains(p.Keys, section) {
			wrapped(&b, fmt.Sprintf("  %-22s ", name+": "+k.Default), k.Doc)
		}
	}
	b.WriteString(termsText(p.Stated(), p.Name, "the scheme"))
	_, err := fmt.Fprint(c.App.Writer, b.String())
	return err
}

func explainAll(c *cli.Context) error {
	var b strings.Builder
	b.WriteString("Schemes, chosen per shard by a rule under sync: (the letter in brackets grades our source for the paper: explain NAME)\n\n")
	width := 0
	for _, name := range explained() {
		width = max(width, len(name))
	}
	indent := strings.Repeat(" ", width+3)
	for _, e := range scheme.All {
		wrapped(&b, fmt.Sprintf("  %-*s ", width, e.Name), e.Rule)
		wrapped(&b, indent, fmt.Sprintf("%s [%s]", e.Paper, e.Evidence))
	}
	b.WriteString("\nA rule may have several schemes in turn. Each change waits until all workers have reached it:\n\n" +
		"  - {match: \"*\", schemes: [{scheme: bsp, until: 100}, {scheme: ssp, staleness: 3}]}   or until: {epochs: 2}\n" +
		"  - {match: \"*\", schemes: [{scheme: bsp, until: {straggler: shows}}, {scheme: asp, until: {straggler: gone}}]}   explain until\n")
	b.WriteString("\nSend policies, under send: order:\n\n")
	for _, p := range send.All {
		wrapped(&b, fmt.Sprintf("  %-*s ", width, p.Name), p.Rule)
		wrapped(&b, indent, p.Paper)
	}
	b.WriteString("\nThe slots of R2SP are not a send policy: under scheme: r2sp a server grants them, and send: " +
		"order orders what was granted.\n")
	b.WriteString("\nPayloads, under payload: push and, for those that leave out no element, pull:\n\n")
	for _, p := range payload.All {
		wrapped(&b, fmt.Sprintf("  %-*s ", width, p.Name), p.Rule)
		wrapped(&b, indent, fmt.Sprintf("%s [%s]", p.Paper, p.Evidence))
	}
	b.WriteString("\nWho gets how many samples, under work: policy:\n\n")
	for _, p := range work.All {
		wrapped(&b, fmt.Sprintf("  %-*s ", width, p.Name), p.Rule)
		wrapped(&b, indent, p.Source)
	}
	b.WriteString("\nWhat a worker does between two exchanges, under local: policy:\n\n")
	for _, p := range local.All {
		wrapped(&b, fmt.Sprintf("  %-*s ", width, p.Name), p.Rule)
		wrapped(&b, indent, p.Source)
	}
	b.WriteString("\nHow the number of steps between two exchanges changes, under local: period: name:\n\n")
	for _, p := range local.Periods {
		wrapped(&b, fmt.Sprintf("  %-*s ", width, p.Name), p.Rule)
		wrapped(&b, indent, p.Source)
	}
	b.WriteString("\nfluentps explain NAME shows the keys, their defaults, and when to use it.\n")
	_, err := fmt.Fprint(c.App.Writer, b.String())
	return err
}
