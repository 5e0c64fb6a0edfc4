package configs

import (
	"cmp"
	"fmt"
	"time"

	"gopkg.in/yaml.v3"

	"fluentps/ps/workload"
)

// readCost reads a time, or {fixed: 1ms, per_sample: 0.2ms}. The limits of the key hold for what one sample takes.
func readCost(l *leaf, ptr *workload.Cost, n *yaml.Node) *problem {
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
		key, value := n.Content[i], deref(n.Content[i+1])
		part := map[string]*time.Duration{"fixed": &v.Fixed, "per_sample": &v.PerSample}[key.Value]
		if part == nil || seen[key.Value] {
			p := problemf(hint, "want the keys fixed and per_sample, once each, got %s", clip(key.Value))
			p.at = key
			return p
		}
		seen[key.Value] = true
		if p := readDuration(&leaf{spec: &costSpec, path: join(l.path, key.Value)}, part, value); p != nil {
			p.at, p.hint = value, cmp.Or(p.hint, hint)
			return p
		}
	}
	if len(seen) == 0 || !l.span.has(v.Of(1).Seconds()) {
		return ofFine(problemf(hint, "an iteration of one sample takes %v: %s", v.Of(1), cmp.Or(limitText(l), "want a time")))
	}
	*ptr = v
	return nil
}

// costSpec is each of the two times: up to a day, as their sum.
var costSpec = spec{path: "compute", span: from(0, 24*60*60)}

// iterationMax is longer than any iteration, and so short that a time of it overflows nowhere.
const iterationMax = 366 * 24 * time.Hour

// crossCost checks what a whole batch takes.
func (w *walker) crossCost(t *table) {
	batch := max(w.cfg.Train.BatchGlobal, w.cfg.Train.BatchPerWorker)
	if t.byPath["train.batch_global"].bad || t.byPath["train.batch_per_worker"].bad {
		return
	}
	for _, path := range []string{"model.compute", "simulate.compute"} {
		l := t.byPath[path]
		if l == nil || l.bad || l.key == nil {
			continue
		}
		if c := l.ptr.(*workload.Cost); float64(c.Fixed)+float64(c.PerSample)*float64(batch) > float64(iterationMax) {
			w.fatal(l.node, path, "set a smaller per_sample, or a smaller batch", "an iteration of %d samples takes more than a year", batch)
		}
	}
}

func formatCost(c workload.Cost) string {
	if c.PerSample == 0 {
		return formatDuration(c.Fixed)
	}
	return fmt.Sprintf("{fixed: %s, per_sample: %s}", formatDuration(c.Fixed), formatDuration(c.PerSample))
}

// costText describes the two ways to write it.
const costText = "; a time, or what an iteration and each of its samples take: {fixed: 1ms, per_sample: 0.2ms}"

// costForms are the schemas of the two ways to write it.
func costForms() []*form {
	part := &form{Type: "string", Pattern: timeSchema}
	return []*form{part, {Type: "object", Properties: map[string]any{"fixed": part, "per_sample": part}, Further: false}}
}

// timeSchema is what a time looks like.
const timeSchema = `^[-+]?(0|(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`
