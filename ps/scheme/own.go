package scheme

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Gate makes schemes outside this package whose pulls wait for v, as those of ssp do. It folds, commits, parks and answers; the
// scheme says how far a worker may lead. See OWN.md.
type Gate struct {
	Name      string    // that of the Entry
	Lead      Lead      // the pull condition
	Release   Release   // when a delayed pull is answered; empty: soft
	Fold      FoldOrder // the default of the Entry
	Whole     bool      // with fold: arrival a version is a whole iteration, as under bsp; else it is one push, as under ssp
	Unbounded bool      // Lead has no largest bound, and so fold: rank is refused; LeadMax of the Entry says the same
}

// New makes the scheme for one shard. A panic of the Lead's methods ends the run as a bug of the scheme.
func (g Gate) New(env Env, common Common) (Scheme, error) {
	if g.Release == "" {
		g.Release = ReleaseSoft
	}
	if err := g.Release.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", g.Name, err)
	}
	r := rule{name: g.Name, limit: stated{Lead: g.Lead}, unbounded: g.Unbounded, release: g.Release, perPush: !g.Whole}
	if l, learns := g.Lead.(Learner); learns {
		r.limit = learnt{stated{l}, l}
	}
	return newGate(env, common, g.Fold, r)
}

// Lead says how far ahead of v, the smallest clock of all workers, a worker may start an iteration.
type Lead interface {
	// Bound is what a pull for iteration c waits for: it is answered once c - v <= Bound(c). Below 0 counts as 0, with which the
	// slowest worker still runs.
	Bound(c int64) int64
}

// Learner is a Lead whose bounds change with what it hears of the shard. Whenever v advances, all delayed pulls are judged anew.
type Learner interface {
	Lead
	Pushed(ev Event)                     // a push has landed
	Replied(w int32, at time.Duration)   // a pull of the worker is answered: it computes from now on
	Left(w int32)                        // the worker is gone
	Joined(w int32)                      // the worker came (back); nothing is known of it
	State() []int64                      // all that it has learnt, for checkpoints
	Restore(state []int64) (Lead, error) // one that has learnt that; the Lead itself stays as it is
}

// stated is the limit of a Lead.
type stated struct{ Lead }

func (l stated) bound(c int64) int64 { return max(l.Bound(c), 0) }
func (l stated) admit(g *gate, _ int32, lead int64) bool {
	return lead <= l.bound(g.v+lead)
}
func (l stated) pushed(Event)                   {}
func (l stated) replied(int32, time.Duration)   {}
func (l stated) leaves(int32)                   {}
func (l stated) forget(int32)                   {}
func (l stated) lasts() bool                    { return false }
func (l stated) moved(*gate, int64) (rose bool) { return false }
func (l stated) text(*strings.Builder)          {}
func (l stated) save(b []byte) []byte           { return b }
func (l stated) load(*decoder) limit            { return l }

// learnt is the limit of a Learner.
type learnt struct {
	stated
	l Learner
}

func (l learnt) pushed(ev Event)                   { l.l.Pushed(ev) }
func (l learnt) replied(w int32, at time.Duration) { l.l.Replied(w, at) }
func (l learnt) leaves(w int32)                    { l.l.Left(w) }
func (l learnt) forget(w int32)                    { l.l.Joined(w) }
func (l learnt) lasts() bool                       { return true }
func (l learnt) moved(*gate, int64) (rose bool)    { return true }
func (l learnt) text(b *strings.Builder)           { fmt.Fprintf(b, " learnt=%v", l.l.State()) }

func (l learnt) save(b []byte) []byte {
	state := l.l.State()
	b = binary.LittleEndian.AppendUint64(b, uint64(len(state)))
	for _, x := range state {
		b = binary.LittleEndian.AppendUint64(b, uint64(x))
	}
	return b
}

func (l learnt) load(d *decoder) limit {
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
		d.fail(fmt.Sprintf("a %T restores itself as a %T, which learns nothing", l.l, restored))
		return l
	}
	return learnt{stated{lead}, lead}
}

// ownName is what a scheme may be called: a value of YAML without quotes.
var ownName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// Add puts entries of other modules into the table. An entry that is incomplete, or has the name of another, is refused with what
// it lacks. Call it before anything is read: what the table holds then is what configurations know.
func Add(entries ...Entry) error {
	for _, e := range entries {
		if err := e.complete(); err != nil {
			return fmt.Errorf("scheme %q: %w", e.Name, err)
		}
		if _, there := Lookup(e.Name); there {
			return fmt.Errorf("scheme %q: there is one of that name; choose another: %s are taken", e.Name, strings.Join(Names(), ", "))
		}
		All = append(All, e)
	}
	return nil
}

// complete says what an entry of another module lacks.
func (e Entry) complete() error {
	for _, f := range []struct {
		field string
		there bool
	}{
		{"Rule", e.Rule != ""}, {"Paper", e.Paper != ""}, {"Use", e.Use != ""}, {"Params", e.Params != nil}, {"LeadMax", e.LeadMax != nil},
		{"Whole", e.Whole != nil}, {"New", e.New != nil},
	} {
		if !f.there {
			return fmt.Errorf("its Entry has no %s", f.field)
		}
	}
	if !ownName.MatchString(e.Name) {
		return fmt.Errorf("a name is small letters, digits and _, such as my_ssp; %q is not", e.Name)
	}
	if _, known := evidence[e.Evidence]; !known {
		return fmt.Errorf("its Evidence is %q, must be one of P, C, A, R, M, X", e.Evidence)
	}
	if e.Fold != FoldRank && e.Fold != FoldArrival {
		return fmt.Errorf("its Fold is %q, must be rank or arrival", e.Fold)
	}
	return completeParams(e.Params())
}

// completeParams says which key lacks what configurations and explain need to know of it.
func completeParams(p Params) error {
	v := reflect.ValueOf(p)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("its Params are a %T, must be a pointer to a struct", p)
	}
	fields := v.Elem().Type()
	for k := range fields.NumField() {
		f := fields.Field(k)
		switch {
		case f.Tag.Get("yaml") == "" || f.Tag.Get("doc") == "":
			return fmt.Errorf("%s of its Params needs the tags yaml, the key, and doc, a sentence", f.Name)
		case f.Type.Kind() == reflect.Int64 && f.Tag.Get("min") == "", f.Type.Kind() == reflect.Float64 && f.Tag.Get("min") == "":
			return fmt.Errorf("%s of its Params is a number and needs the tag min, the least that is allowed", f.Name)
		case f.Type.Kind() == reflect.String && f.Tag.Get("values") == "":
			return fmt.Errorf("%s of its Params is a word and needs the tag values, those that are allowed, by commas", f.Name)
		case !holdsKey(f.Type.Kind()):
			return fmt.Errorf("%s of its Params is a %v; a key is a bool, int64, float64 or string", f.Name, f.Type)
		}
	}
	if err := p.Check(); err != nil {
		return fmt.Errorf("its Params refuse their own defaults: %w", err)
	}
	return nil
}

func holdsKey(k reflect.Kind) bool {
	return k == reflect.Bool || k == reflect.Int64 || k == reflect.Float64 || k == reflect.String
}

// CheckTags holds the keys of p to their tags min, max and values, and names the key, the value, the limit and the way out.
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
