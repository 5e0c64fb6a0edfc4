package configs

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"fluentps/ps/scheme"
)

// Phase is one of the schemes that a rule's shards have in turn.
type Phase struct {
	Scheme string        `yaml:"scheme,required" values:"@schemes" doc:"when a pull is answered and how pushes become a version"`
	Common scheme.Common `yaml:",inline"` // defaults filled from the scheme's table entry
	Params scheme.Params // the scheme's own keys, defaults filled, checked
	Until  Until         `yaml:"until,omitempty" doc:"when the next scheme takes over: an iteration; {epochs: 2}; or {straggler: shows, factor: 1.5, rounds: 5}: when a worker has taken more than factor times the median of all workers in so many iterations in a row, with gone when no worker has in its last rounds iterations (after Sync-Switch, ICDCS 2021; the rule is reconstructed [R]). The last scheme has none, or waits for a straggler, and the first follows it"`
}

// Until is the end of a scheme, in one of three forms: a clock of the run in one of two units, or something that happens; zero is none.
type Until struct {
	Iterations int64
	Epochs     float64      // passes over the training rows, all workers together
	Await      scheme.Await // what the scheme waits for
}

// clock returns the iteration at which the next phase begins, in a run of so many ranks that compute and so many training rows.
func (c *Config) clock(u Until, computing, rows int) int64 {
	if u.Epochs == 0 {
		return u.Iterations
	}
	return max(1, int64(c.iterations(u.Epochs*float64(rows),
		int64(c.Batch(computing))*c.Local.StepsMin()*c.Local.Turns(), Facts{Computes: computing, Rows: rows})))
}

func (u Until) String() string {
	if u.Await.IsSet() {
		return u.Await.String()
	}
	if u.Epochs > 0 {
		return "epoch " + number(u.Epochs)
	}
	return fmt.Sprintf("iteration %d", u.Iterations)
}

// Phases lists the schemes of a rule in turn; most rules have one.
func (r *Rule) Phases() []Phase { return append([]Phase{r.Phase}, r.Then...) }

// InTurn lists the schemes without their ends: every Until is 0, and no Await is set.
func (r *Rule) InTurn() (phases []scheme.Phase) {
	for _, ph := range r.Phases() {
		phases = append(phases, scheme.Phase{Scheme: ph.Scheme, Common: ph.Common, Params: ph.Params})
	}
	return phases
}

// Schemes names the schemes of a rule in turn, such as "bsp>ssp".
func (r *Rule) Schemes() string {
	text := r.Scheme
	for _, ph := range r.Then {
		text += ">" + ph.Scheme
	}
	return text
}

// BoundKey returns the key that bounds the lead under a rule; "" if there is none, or if the rule has several schemes.
func (r *Rule) BoundKey() string {
	e, _ := scheme.All.Lookup(r.Schemes())
	return e.Bound
}

// PhasesOf returns the phases of a rule with the iterations at which they end, or with what ends them. It fails if a
// phase would not end after its begin.
func (c *Config) PhasesOf(rule, workers, rows int) ([]scheme.Phase, error) {
	r := &c.Sync[rule]
	phases := r.InTurn()
	for i, ph := range r.Phases() {
		at := c.clock(ph.Until, workers, rows)
		if i > 0 && at > 0 && at <= phases[i-1].Until {
			return nil, fmt.Errorf("sync: match %q: scheme %s is until %v, which is iteration %d here and not after "+
				"iteration %d, where it begins; raise its until", r.Match, ph.Scheme, ph.Until, at, phases[i-1].Until)
		}
		phases[i].Until, phases[i].Await = at, ph.Until.Await
	}
	return phases, nil
}

// phasesOf returns the schemes of a rule, and the key that names them. It returns none if the rule has a problem already.
func (w *walker) phasesOf(i int) (phases []Phase, at *leaf) {
	if i >= len(w.cfg.Sync) || w.cfg.Sync[i].Params == nil {
		return nil, nil
	}
	for _, l := range w.rows[i].leaves {
		if l.bad {
			return nil, nil
		}
		if name := lastName(l.path); name == "scheme" || name == "schemes" {
			at = l
		}
	}
	return w.cfg.Sync[i].Phases(), at
}

// ruleSpec returns a key that rules with one scheme and with several schemes share.
func ruleSpec(path string) spec {
	rows := ruleKeys()
	return rows[slices.IndexFunc(rows, func(r row) bool { return r.path == path })].spec
}

// bindPhased makes the table of a rule with a list of schemes.
func bindPhased(prefix string, r *Rule, list *[]Phase) *table {
	t := &table{prefix: prefix, byPath: map[string]*leaf{}, sections: map[string]*yaml.Node{}}
	match, servers, push, update := ruleSpec("match"), ruleSpec("servers"), ruleSpec("push"), ruleSpec("update")
	t.add(&match, &r.Match)
	t.add(&servers, &r.Servers)
	t.add(&spec{path: "schemes", required: true, doc: "the schemes of the shards in turn; each except the last has until"}, list)
	t.add(&push, &r.Push)
	t.add(&update, &r.Update)
	return t
}

// bindScheme adds the keys of a scheme to the table of a rule or a phase.
func bindScheme(t *table, params *scheme.Params, name string) (e scheme.Entry, known bool) {
	e, known = scheme.All.Lookup(name)
	if !known {
		return e, false
	}
	if *params == nil {
		*params = e.Params()
	}
	for _, p := range paramsOf(*params) {
		t.add(p.spec, p.ptr)
	}
	t.setDefault("fold", string(e.Fold))
	return e, true
}

// phasedRule reads a rule with a list of schemes.
func (w *walker) phasedRule(r *Rule, path string, n *yaml.Node) bool {
	var list []Phase
	t := bindPhased(path, r, &list)
	w.rows = append(w.rows, t)
	for _, item := range child(n, "schemes").Content {
		if e, ok := scheme.All.Lookup(valueOf(deref(item), "scheme")); ok && e.Push != "" {
			t.setDefault("push", e.Push)
		}
	}
	w.pushesChanges(t)
	if push := cmp.Or(valueOf(n, "push"), t.byPath["push"].def); push == PushDelta {
		t.setDefault("update", UpdateAdd)
		t.deltas = !w.takesSteps()
	}
	before := len(w.diags)
	w.mapping(t, "", n, w.unknownBesideSchemes)
	w.finish(t, n)
	if len(w.diags) > before {
		return false
	}
	for i := range list {
		e, _ := scheme.All.Lookup(list[i].Scheme)
		w.crossPush(t, e, r)
	}
	r.Phase, r.Then = list[0], list[1:]
	return len(w.diags) == before
}

// unknownBesideSchemes reports a key of a rule that belongs in one of its schemes, or that is unknown.
func (w *walker) unknownBesideSchemes(t *table, section string, key *yaml.Node) {
	if slices.Contains(bind("", phaseKeys, &Phase{}).below(""), key.Value) || len(ownersOf(key.Value)) > 0 {
		w.misshapen(key, join(t.prefix, key.Value), "move it into one of them, as in "+schemesExample, "belongs in one of the schemes")
		return
	}
	w.unknownKey(t, section, key)
}

const schemesExample = "schemes: [{scheme: bsp, until: 100}, {scheme: ssp, staleness: 3}]"

// phases reads the list of schemes of a rule.
func (w *walker) phases(ptr *[]Phase, l *leaf, n *yaml.Node) bool {
	items, ok := w.items(l, n, schemesExample)
	if ok && len(items) < 2 {
		first := "bsp"
		if len(items) == 1 {
			if e, known := scheme.All.Lookup(valueOf(deref(items[0]), "scheme")); known {
				first = e.Name
			}
		}
		w.misshapen(n, l.path, "write scheme: "+first+" in place of schemes, or "+schemesExample, "want at least 2 schemes, got %d", len(items))
		ok = false
	}
	if !ok {
		return false
	}
	*ptr = make([]Phase, len(items))
	before := len(w.diags)
	for i := 0; i < len(items) && !w.more; i++ {
		path, item := fmt.Sprintf("%s[%d]", l.path, i), deref(items[i])
		if item.Kind != yaml.MappingNode {
			w.misshapen(item, path, "write {scheme: bsp, until: 100}", "want a scheme with its keys, got %s", describe(item))
			continue
		}
		w.crossUntil(w.phase(&(*ptr)[i], path, item, w.rows[len(w.rows)-1].deltas), *ptr, i, item)
	}
	return len(w.diags) == before
}

// phase reads one of the schemes. delta is true if the rule pushes deltas.
func (w *walker) phase(ph *Phase, path string, n *yaml.Node, delta bool) *table {
	t := bind(path, phaseKeys, ph)
	name := valueOf(n, "scheme")
	e, known := bindScheme(t, &ph.Params, name)
	if delta {
		t.addWhole(e, n)
	}
	before := len(w.diags)
	w.mapping(t, "", n, func(t *table, _ string, key *yaml.Node) {
		if key.Value == "match" || key.Value == "servers" || key.Value == "push" || key.Value == "update" {
			w.misshapen(key, join(path, key.Value), "move it beside schemes", "is one for all schemes of a rule")
			return
		}
		w.unknownInRule(t, key, name, known)
	})
	w.finish(t, n)
	if !known {
		return t
	}
	if e.Scope == scheme.PerServer {
		w.schemeError(t, e, errServerScope)
	}
	if e.CopiesOf(ph.Params) != scheme.Pulled {
		way := "set scheme: ssp"
		if t.byPath["cache"] != nil {
			way = "set cache: false"
		}
		w.schemeError(t, e, fmt.Errorf("%w; give it a rule of its own, or %s", errCopies, way))
	}
	w.checkScheme(t, e, ph, before)
	return t
}

// crossUntil checks that each phase except the last has an end, and that it ends later than the phase before.
func (w *walker) crossUntil(t *table, all []Phase, i int, n *yaml.Node) {
	until := t.byPath["until"]
	last := i == len(all)-1
	awaits := all[0].Until.Await.IsSet()
	switch {
	case until.bad:
	case i > 0 && until.key != nil && all[0].Until != (Until{}) && awaits != all[i].Until.Await.IsSet():
		what := fmt.Sprintf("waits for a straggler, but the first scheme of the rule ends at %v", all[0].Until)
		if awaits {
			what = fmt.Sprintf("%v is another kind of end than that of the first scheme of the rule, which waits for a straggler", all[i].Until)
		}
		w.fatal(until.node, until.path, "write straggler in each until of the rule, or in none", "%s", what)
	case awaits && (!last || until.key != nil):
		if until.key == nil {
			w.fatal(n, until.path, "write until: {straggler: gone}, or another end of this kind", "is missing: another scheme follows")
		}
	case last && until.key != nil:
		w.fatal(until.key, until.path, "remove it, or add the scheme that follows", "ends the last scheme, and none follows")
	case !last && until.key == nil:
		w.fatal(n, until.path, "write until: 100, until: {epochs: 2}, or until: {straggler: shows}", "is missing: another scheme follows")
	case i > 0 && !last:
		was, is := all[i-1].Until, all[i].Until
		if was.Epochs > 0 && is.Epochs > 0 && is.Epochs <= was.Epochs || was.Iterations > 0 && is.Iterations > 0 &&
			is.Iterations <= was.Iterations {
			w.fatal(until.node, until.path, "let each scheme end later than the one before", "%v is not after %v, where it begins", is, was)
		}
	}
}

// iterationsSpec and epochsSpec are the two forms of until.
var (
	iterationsSpec = spec{path: "until", span: from(1, 1e15)}
	epochsSpec     = spec{path: "epochs", span: aboveTo(0, 1e9)}
)

// readUntil reads a number of iterations, {epochs: 2}, or {straggler: shows}.
func readUntil(ptr *Until, n *yaml.Node) *problem {
	const hint = "write a number of iterations, {epochs: 2}, or {straggler: shows}"
	if n.Kind != yaml.MappingNode {
		l := leaf{spec: &iterationsSpec, path: "until"}
		p := readInt(&l, &ptr.Iterations, n)
		if p != nil && p.hint == "" {
			p.hint = hint
		}
		return p
	}
	if isAwait(n) {
		return readAwait(&ptr.Await, n)
	}
	if len(n.Content) != 2 || n.Content[0].Value != "epochs" && n.Content[0].Value != "iterations" {
		var keys []string
		for i := 0; i < len(n.Content); i += 2 {
			keys = append(keys, clip(n.Content[i].Value))
		}
		return problemf(hint, "want the key epochs, or the key straggler, got {%s}", strings.Join(keys, ", "))
	}
	value := deref(n.Content[1])
	if n.Content[0].Value == "iterations" {
		return problemf("write until: "+clip(value.Value), "iterations need no key")
	}
	l := leaf{spec: &epochsSpec, path: "epochs"}
	p := readFloat(&l, &ptr.Epochs, value)
	if p != nil {
		p.at, p.hint = value, cmp.Or(p.hint, hint)
	}
	return p
}

func formatUntil(u Until) string {
	if u.Await.IsSet() {
		return formatAwait(u.Await)
	}
	if u.Epochs > 0 {
		return "{epochs: " + number(u.Epochs) + "}"
	}
	return fmt.Sprint(u.Iterations)
}

// errCopies refuses a scheme whose workers keep copies: at a change of scheme, every worker must pull.
var errCopies = errors.New("scheme: lets workers keep copies, but at a change of scheme all workers pull")

// errServerScope refuses a scheme that schedules the link of a server.
var errServerScope = errors.New("scheme: decides for all shards of its rule on a server, and cannot take turns " +
	"with another; give it a rule of its own")
