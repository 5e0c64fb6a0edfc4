package keys

import (
	"cmp"
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"

	"fluentps/internal/configs/diag"
	"fluentps/internal/configs/settings"
	"fluentps/ps/scheme"
)

// The keys of until where a scheme waits for a straggler.
var (
	StragglerSpec = Spec{Path: "straggler", Words: func() []string { return []string{scheme.StragglerShows, scheme.StragglerGone} }}
	FactorSpec    = Spec{Path: "factor", Span: aboveTo(1, 1e9)}
	RoundsSpec    = Spec{Path: "rounds", Span: from(1, 1e9)}
	awaitKeys     = []string{"straggler", "factor", "rounds"}
)

// isAwait says whether the keys of an until are meant to be those of a straggler.
func isAwait(n *yaml.Node) bool {
	for i := 0; i < len(n.Content); i += 2 {
		if len(diag.Nearest(n.Content[i].Value, awaitKeys)) > 0 {
			return true
		}
	}
	return false
}

// readAwait reads {straggler: shows, factor: 1.5, rounds: 5}; the last two have defaults.
func readAwait(ptr *scheme.Await, n *yaml.Node) *Problem {
	const hint = "write {straggler: shows} or {straggler: gone}, with factor and rounds where their defaults do not suit"
	a := scheme.Await{Factor: scheme.AwaitFactor, Rounds: scheme.AwaitRounds}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], diag.Deref(n.Content[i+1])
		var p *Problem
		switch {
		case seen[key.Value]:
			p = problemf(hint, "%s stands there twice", diag.Clip(key.Value))
		case key.Value == StragglerSpec.Path:
			p = (&Leaf{Spec: &StragglerSpec, Path: key.Value}).readString(&a.Straggler, value, false)
		case key.Value == FactorSpec.Path:
			p = readFloat(&Leaf{Spec: &FactorSpec, Path: key.Value}, &a.Factor, value)
		case key.Value == RoundsSpec.Path:
			p = readInt(&Leaf{Spec: &RoundsSpec, Path: key.Value}, &a.Rounds, value)
		default:
			value, p = key, problemf(diag.DidYouMean(key.Value, awaitKeys), "unknown key %s", diag.Clip(key.Value))
		}
		if seen[key.Value] = true; p != nil {
			if p.At, p.Hint = value, cmp.Or(p.Hint, hint); value != key && key.Value != StragglerSpec.Path {
				p.Msg = key.Value + ": " + p.Msg
			}
			return p
		}
	}
	if !a.IsSet() {
		return problemf(hint, "factor and rounds say which worker is a straggler, but the key straggler is missing")
	}
	*ptr = a
	return nil
}

func formatAwait(a scheme.Await) string {
	return fmt.Sprintf("{straggler: %s, factor: %s, rounds: %d}", a.Straggler, diag.FormatNumber(a.Factor), a.Rounds)
}

// IterationsSpec and EpochsSpec are the two forms of until.
var (
	IterationsSpec = Spec{Path: "until", Span: from(1, 1e15)}
	EpochsSpec     = Spec{Path: "epochs", Span: aboveTo(0, 1e9)}
)

// readUntil reads a number of iterations, {epochs: 2}, or {straggler: shows}.
func readUntil(ptr *settings.Until, n *yaml.Node) *Problem {
	const hint = "write a number of iterations, {epochs: 2}, or {straggler: shows}"
	if n.Kind != yaml.MappingNode {
		l := Leaf{Spec: &IterationsSpec, Path: "until"}
		p := readInt(&l, &ptr.Iterations, n)
		if p != nil && p.Hint == "" {
			p.Hint = hint
		}
		return p
	}
	if isAwait(n) {
		return readAwait(&ptr.Await, n)
	}
	if len(n.Content) != 2 || n.Content[0].Value != "epochs" && n.Content[0].Value != "iterations" {
		var keys []string
		for i := 0; i < len(n.Content); i += 2 {
			keys = append(keys, diag.Clip(n.Content[i].Value))
		}
		return problemf(hint, "want the key epochs, or the key straggler, got {%s}", strings.Join(keys, ", "))
	}
	value := diag.Deref(n.Content[1])
	if n.Content[0].Value == "iterations" {
		return problemf("write until: "+diag.Clip(value.Value), "iterations need no key")
	}
	l := Leaf{Spec: &EpochsSpec, Path: "epochs"}
	p := readFloat(&l, &ptr.Epochs, value)
	if p != nil {
		p.At, p.Hint = value, cmp.Or(p.Hint, hint)
	}
	return p
}

func formatUntil(u settings.Until) string {
	if u.Await.IsSet() {
		return formatAwait(u.Await)
	}
	if u.Epochs > 0 {
		return "{epochs: " + diag.FormatNumber(u.Epochs) + "}"
	}
	return fmt.Sprint(u.Iterations)
}
