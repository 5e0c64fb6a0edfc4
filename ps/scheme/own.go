package scheme

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Gate makes schemes outside this package whose pulls wait for v, as in ssp. Gate folds, commits, parks and answers;
// the scheme says how far a worker may lead. See OWN.md.
type Gate struct {
	Name      string    // the name of the Entry
	Lead      Lead      // the pull condition
	Release   Release   // when a delayed pull is answered; empty: soft
	Fold      FoldOrder // the default of the Entry
	Whole     bool      // with fold: arrival, a version is a whole iteration, as under bsp; otherwise it is one push, as under ssp
	Unbounded bool      // Lead has no largest bound, so fold: rank is refused; LeadMax of the Entry must say the same
}

// New makes the scheme for one shard. A panic in the Lead's methods ends the run as a bug of the scheme.
func (g Gate) New(env Env, common Common) (Scheme, error) {
	if g.Release == "" {
		g.Release = ReleaseSoft
	}
	if err := g.Release.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", g.Name, err)
	}
	r := rule{name: g.Name, limit: leadLimit{Lead: g.Lead}, unbounded: g.Unbounded, release: g.Release, perPush: !g.Whole}
	if l, learns := g.Lead.(Learner); learns {
		r.limit = learnerLimit{leadLimit{l}, l}
	}
	return newGate(env, common, g.Fold, r)
}

// Lead says how far ahead of v, the smallest clock of all workers, a worker may start an iteration.
type Lead interface {
	// Bound returns the limit for a pull for iteration c: the scheme answers the pull once c - v <= Bound(c). A bound below 0
	// counts as 0, so that the slowest worker never waits.
	Bound(c int64) int64
}

// Learner is a Lead whose bounds depend on what it learns about the shard. Whenever v advances, the scheme asks again for the bounds of all
// delayed pulls.
type Learner interface {
	Lead
	Pushed(ev Event)                     // a push has landed
	Replied(w int32, at time.Duration)   // a pull of the worker was answered; the worker computes from then on
	Left(w int32)                        // the worker has left
	Joined(w int32)                      // the worker has joined or rejoined; nothing is known about it
	State() []int64                      // everything that it has learned, for checkpoints
	Restore(state []int64) (Lead, error) // returns a new Learner with that state, and leaves the receiver unchanged
}

// leadLimit is the limit of a Lead.
type leadLimit struct{ Lead }

func (l leadLimit) bound(c int64) int64 { return max(l.Bound(c), 0) }
func (l leadLimit) admit(g *gate, _ int32, lead int64) bool {
	return lead <= l.bound(g.v+lead)
}
func (l leadLimit) pushed(Event)                    {}
func (l leadLimit) replied(int32, time.Duration)    {}
func (l leadLimit) workerLeft(int32)                {}
func (l leadLimit) workerJoined(int32)              {}
func (l leadLimit) hasMemory() bool                 { return false }
func (l leadLimit) vMoved(*gate, int64) (rose bool) { return false }
func (l leadLimit) text(*strings.Builder)           {}
func (l leadLimit) save(b []byte) []byte            { return b }
func (l leadLimit) load(*decoder) limit             { return l }

// learnerLimit is the limit of a Learner.
type learnerLimit struct {
	leadLimit
	l Learner
}

func (l learnerLimit) pushed(ev Event)                   { l.l.Pushed(ev) }
func (l learnerLimit) replied(w int32, at time.Duration) { l.l.Replied(w, at) }
func (l learnerLimit) workerLeft(w int32)                { l.l.Left(w) }
func (l learnerLimit) workerJoined(w int32)              { l.l.Joined(w) }
func (l learnerLimit) hasMemory() bool                   { return true }
func (l learnerLimit) vMoved(*gate, int64) (rose bool)   { return true }
func (l learnerLimit) text(b *strings.Builder)           { fmt.Fprintf(b, " learnt=%v", l.l.State()) }

func (l learnerLimit) save(b []byte) []byte {
	state := l.l.State()
	b = binary.LittleEndian.AppendUint64(b, uint64(len(state)))
	for _, x := range state {
		b = binary.LittleEndian.AppendUint64(b, uint64(x))
	}
	return b
}

func (l learnerLimit) load(d *decoder) limit {
	state := make([]int64, d.count(1))
	for k := range state {
		state[k] = d.integer()
	}
	if d.bad != "" {
		return l
	}
	restored, err := l.l.Restore(state)
	if err != nil {
		d.fail(err.Error())
		return l
	}
	lead, learns := restored.(Learner)
	if !learns {
		d.fail(fmt.Sprintf("a %T restores itself as a %T, which is not a Learner", l.l, restored))
		return l
	}
	return learnerLimit{leadLimit{lead}, lead}
}

// RuleKeys are the keys of every rule and of every phase, whatever the scheme. A test of configs holds them to its tables.
var RuleKeys = []string{"match", "servers", "scheme", "schemes", "until", "fold", "weight", "push", "update"}

// namePattern is the pattern of a scheme's name: a YAML value without quotes.
var namePattern = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// idlePattern is the pattern of the tag idle of a number: what it does nothing beyond, so that check warns of it.
var idlePattern = regexp.MustCompile(`^(lead|pushes|workers: .+)?$`)

// Add adds entries of other modules to the table. It fails if an entry lacks a field or if its name is taken. It must be called before a
// configuration is read, because reading accepts only the schemes in the table.
func Add(entries ...Entry) error {
	for _, e := range entries {
		if err := e.Complete(); err != nil {
			return fmt.Errorf("scheme %q: %w", e.Name, err)
		}
		if _, there := All.Lookup(e.Name); there {
			return fmt.Errorf("scheme %q: the name is taken; choose another one. Taken are %s", e.Name, strings.Join(All.Names(), ", "))
		}
		All = append(All, e)
	}
	return nil
}

// Complete fails if an entry lacks what configurations, explain and the drivers need of it, and names the field, the key or the tag.
func (e Entry) Complete() error {
	for _, f := range []struct {
		field string
		there bool
	}{
		{"Rule", e.Rule != ""}, {"Paper", e.Paper != ""}, {"Use", e.Use != ""}, {"Params", e.Params != nil}, {"LeadMax", e.LeadMax != nil},
		{"Whole", e.Whole != nil}, {"New", e.New != nil},
	} {
		if !f.there {
			return fmt.Errorf("its Entry lacks the field %s", f.field)
		}
	}
	if !namePattern.MatchString(e.Name) {
		return fmt.Errorf("its name %q is not allowed; a name has small letters, digits and _, such as my_ssp", e.Name)
	}
	if _, known := evidence[e.Evidence]; !known {
		return fmt.Errorf("its Evidence is %q, must be one of P, C, A, R, M, X", e.Evidence)
	}
	if e.Fold != FoldRank && e.Fold != FoldArrival {
		return fmt.Errorf("its Fold is %q, must be rank or arrival", e.Fold)
	}
	if a, b := e.Params(), e.Params(); reflect.ValueOf(a).Kind() == reflect.Pointer && a == b && reflect.TypeOf(a).Elem().Size() > 0 {
		return errors.New("its Params returns the same struct twice; it must make a new one each time")
	}
	return checkParams(e.Params())
}

// checkParams fails if a key lacks what configurations and explain need, and names the key and the tag.
func checkParams(p Params) error {
	v := reflect.ValueOf(p)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("its Params are a %T, must be a pointer to a struct", p)
	}
	fields, seen := v.Elem().Type(), map[string]bool{}
	for k := range fields.NumField() {
		f := fields.Field(k)
		key := f.Tag.Get("yaml")
		switch {
		case !f.IsExported():
			return fmt.Errorf("%s of its Params is not exported, and every field is a key; state of a Learner belongs into "+
				"a value of its own, which New makes", f.Name)
		case key == "" || f.Tag.Get("doc") == "":
			return fmt.Errorf("%s of its Params needs the tags yaml (the key) and doc (a sentence)", f.Name)
		case f.Type.Kind() == reflect.Int64 && f.Tag.Get("min") == "", f.Type.Kind() == reflect.Float64 && f.Tag.Get("min") == "":
			return fmt.Errorf("%s of its Params is a number and needs the tag min, the smallest allowed value", f.Name)
		case f.Type.Kind() == reflect.String && f.Tag.Get("values") == "":
			return fmt.Errorf("%s of its Params is a word and needs the tag values, the allowed words separated by commas", f.Name)
		case !isKeyKind(f.Type.Kind()):
			return fmt.Errorf("%s of its Params is a %v; a key is a bool, int64, float64 or string", f.Name, f.Type)
		case !idlePattern.MatchString(f.Tag.Get("idle")):
			return fmt.Errorf("%s of its Params has the tag idle:%q, must be lead, pushes, or workers: and what happens then",
				f.Name, f.Tag.Get("idle"))
		case !namePattern.MatchString(key):
			return fmt.Errorf("%s of its Params has the key %q; a key is small letters, digits and _", f.Name, key)
		case seen[key]:
			return fmt.Errorf("two fields of its Params have the key %s", key)
		case slices.Contains(RuleKeys, key):
			return fmt.Errorf("%s of its Params has the key %s, which every rule has; choose another than %s", f.Name, key,
				strings.Join(RuleKeys, ", "))
		}
		seen[key] = true
	}
	if err := p.Check(); err != nil {
		return fmt.Errorf("its Params refuse their own defaults: %w", err)
	}
	return nil
}

func isKeyKind(k reflect.Kind) bool {
	return k == reflect.Bool || k == reflect.Int64 || k == reflect.Float64 || k == reflect.String
}

// CheckTags checks the keys of p against their tags min, max and values. Its error names the key, the value, the limit
// and the way out.
func CheckTags(p Params) error {
	v := reflect.ValueOf(p).Elem()
	for k, d := range Docs(p) {
		f, tag := v.Field(k), v.Type().Field(k).Tag
		var x float64
		switch f.Kind() {
		case reflect.Int64:
			x = float64(f.Int())
		case reflect.Float64:
			x = f.Float()
		case reflect.String:
			if !slices.Contains(d.Values, f.String()) {
				return fmt.Errorf("%s: %q is not one of %s", d.Key, f.String(), strings.Join(d.Values, ", "))
			}
			continue
		default:
			continue
		}
		least, most := math.Inf(-1), math.Inf(1)
		if _, err := fmt.Sscan(cmp.Or(tag.Get("min"), "-Inf")+" "+cmp.Or(tag.Get("max"), "Inf"), &least, &most); err != nil {
			return fmt.Errorf("%s: its tags min and max are %q and %q, must be numbers: %w", d.Key, tag.Get("min"), tag.Get("max"), err)
		}
		if !(x >= least && x <= most) {
			return fmt.Errorf("%s: %v is not allowed: %s", d.Key, f.Interface(), d.Allowed)
		}
	}
	return nil
}
