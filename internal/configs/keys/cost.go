package keys

import (
	"cmp"
	"fmt"
	"time"

	"gopkg.in/yaml.v3"

	"fluentps/internal/configs/diag"
	"fluentps/ps/workload"
)

// readCost reads a time, or {fixed: 1ms, per_sample: 0.2ms}. The limits of the key hold for what one sample takes.
func readCost(l *Leaf, ptr *workload.Cost, n *yaml.Node) *Problem {
	const hint = "write a time, or {fixed: 1ms, per_sample: 0.2ms}"
	if n.Kind != yaml.MappingNode {
		var d time.Duration
		p := readDuration(l, &d, n)
		if p == nil {
			*ptr = workload.Cost{Fixed: d}
		}
		return p
	}
	var v workload.Cost
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], diag.Deref(n.Content[i+1])
		part := map[string]*time.Duration{"fixed": &v.Fixed, "per_sample": &v.PerSample}[key.Value]
		if part == nil || seen[key.Value] {
			p := problemf(hint, "want the keys fixed and per_sample, once each, got %s", diag.Clip(key.Value))
			p.At = key
			return p
		}
		seen[key.Value] = true
		if p := readDuration(&Leaf{Spec: &costSpec, Path: diag.Join(l.Path, key.Value)}, part, value); p != nil {
			p.At, p.Hint = value, cmp.Or(p.Hint, hint)
			return p
		}
	}
	if len(seen) == 0 || !l.Span.Has(v.Of(1).Seconds()) {
		return ofFine(problemf(hint, "an iteration of one sample takes %v: %s", v.Of(1), cmp.Or(LimitText(l), "want a time")))
	}
	*ptr = v
	return nil
}

// costSpec is each of the two times: up to a day, as their sum.
var costSpec = Spec{Path: "compute", Span: from(0, 24*60*60)}

// FormatCost writes a cost as YAML that reads back equal.
func FormatCost(c workload.Cost) string {
	if c.PerSample == 0 {
		return diag.FormatDuration(c.Fixed)
	}
	return fmt.Sprintf("{fixed: %s, per_sample: %s}", diag.FormatDuration(c.Fixed), diag.FormatDuration(c.PerSample))
}

// CostText describes the two ways to write a cost.
const CostText = "; a time, or what an iteration and each of its samples take: {fixed: 1ms, per_sample: 0.2ms}"
