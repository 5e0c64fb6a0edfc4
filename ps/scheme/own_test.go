package scheme_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fluentps/ps/scheme"
	"fluentps/ps/scheme/schemetest"
)

// evenLead is a Lead that depends on the iteration.
type evenLead struct{ s int64 }

func (l evenLead) Bound(c int64) int64 { return l.s * (1 - c%2) }

// fixedLead is the bound of ssp.
type fixedLead int64

func (l fixedLead) Bound(int64) int64 { return int64(l) }

// patience is a Learner: its bound grows by 1 with every fourth push, up to 3, and falls to 0 when a worker leaves.
type patience struct {
	pushes, replies int64
}

func (p *patience) Bound(int64) int64            { return min(p.pushes/4, 3) }
func (p *patience) Pushed(scheme.Event)          { p.pushes++ }
func (p *patience) Replied(int32, time.Duration) { p.replies++ }
func (p *patience) Left(int32)                   { p.pushes = 0 }
func (p *patience) Joined(int32)                 {}
func (p *patience) State() []int64               { return []int64{p.pushes, p.replies} }
func (p *patience) Restore(state []int64) (scheme.Lead, error) {
	if len(state) != 2 || slices.Min(state) < 0 {
		return nil, fmt.Errorf("%v is not two counts", state)
	}
	return &patience{pushes: state[0], replies: state[1]}, nil
}

type noKeys struct {
	Least int64 `yaml:"least" min:"0" max:"9" doc:"nothing"`
}

func (k *noKeys) Check() error { return scheme.CheckTags(k) }

// own is an entry as another module defines it.
func own(name string, lead func() scheme.Lead, leadMax int64) scheme.Entry {
	return scheme.Entry{
		Name: name, Rule: "a rule", Paper: "none", Evidence: "X", Use: "in tests", Fold: scheme.FoldArrival,
		Params:  func() scheme.Params { return &noKeys{Least: 1} },
		LeadMax: func(scheme.Params) (int64, bool) { return leadMax, true },
		Whole:   func(c scheme.Common, _ scheme.Params) bool { return c.Fold == scheme.FoldRank },
		New: func(env scheme.Env, common scheme.Common, _ scheme.Params) (scheme.Scheme, error) {
			return scheme.Gate{Name: name, Lead: lead(), Fold: scheme.FoldArrival}.New(env, common)
		},
	}
}

func TestOwnSchemesConform(t *testing.T) {
	t.Run("stated", func(t *testing.T) {
		schemetest.Run(t, own("even", func() scheme.Lead { return evenLead{3} }, 3))
	})
	t.Run("learnt", func(t *testing.T) {
		schemetest.Run(t, own("patience", func() scheme.Lead { return &patience{} }, 3))
	})
}

// A Gate with ssp's bound decides as ssp does, event by event.
func TestAGateWithTheBoundOfSSPIsSSP(t *testing.T) {
	ssp, _ := scheme.All.Lookup("ssp")
	rapid.Check(t, func(t *rapid.T) {
		env := schemetest.DrawEnv(t)
		s := rapid.Int64Range(0, 4).Draw(t, "staleness")
		release := rapid.SampledFrom([]scheme.Release{scheme.ReleaseSoft, scheme.ReleaseLazy, scheme.ReleaseBlock}).Draw(t, "release")
		common := scheme.Common{Fold: rapid.SampledFrom([]scheme.FoldOrder{scheme.FoldRank, scheme.FoldArrival}).Draw(t, "fold")}
		theirs, err := ssp.New(env, common, &scheme.SSPParams{Staleness: s, Release: release})
		if err != nil {
			t.Fatal(err)
		}
		ours, err := scheme.Gate{Name: "ssp", Lead: fixedLead(s), Release: release, Fold: scheme.FoldArrival}.New(env, common)
		if err != nil {
			t.Fatal(err)
		}
		d := schemetest.Driver{Env: env, Bound: s, See: func(ev scheme.Event, decisions []scheme.Decision) {
			if got := ours.Step(ev, nil); !slices.Equal(got, decisions) || ours.String() != theirs.String() {
				t.Fatalf("%v: the gate decided %v and is %v; ssp decided %v and is %v", ev, got, ours, decisions, theirs)
			}
		}}
		d.Run(t, theirs)
	})
}

func TestAddRefusesWhatIsIncomplete(t *testing.T) {
	whole := func() scheme.Entry { return own("whole", func() scheme.Lead { return evenLead{} }, 0) }
	for _, c := range []struct {
		change func(*scheme.Entry)
		want   string
	}{
		{func(e *scheme.Entry) { e.Name = "ssp" }, `scheme "ssp": the name is taken`},
		{func(e *scheme.Entry) { e.Name = "My SSP" }, "a name has small letters"},
		{func(e *scheme.Entry) { e.New = nil }, "its Entry lacks the field New"},
		{func(e *scheme.Entry) { e.LeadMax = nil }, "its Entry lacks the field LeadMax"},
		{func(e *scheme.Entry) { e.Evidence = "Z" }, `its Evidence is "Z", must be one of P, C, A, R, M, X`},
		{func(e *scheme.Entry) { e.Fold = "" }, `its Fold is "", must be rank or arrival`},
		{func(e *scheme.Entry) { e.Params = func() scheme.Params { return &noKeys{Least: 10} } },
			"its Params refuse their own defaults: least: 10 is not allowed: integer from 0 to 9"},
		{func(e *scheme.Entry) { e.Params = func() scheme.Params { return &untagged{} } },
			"Untagged of its Params needs the tags yaml (the key) and doc"},
		{func(e *scheme.Entry) { e.Params = func() scheme.Params { return &leastless{} } },
			"Boundless of its Params is a number and needs the tag min"},
		{func(e *scheme.Entry) { e.Params = func() scheme.Params { return &idleless{} } },
			`Most of its Params has the tag idle:"bound", must be lead, pushes, or workers: and what happens then`},
		{func(e *scheme.Entry) { e.Params = func() scheme.Params { return &wordless{} } },
			"Word of its Params is a word and needs the tag values"},
		{func(e *scheme.Entry) { e.Params = func() scheme.Params { return &hidden{} } }, "state of its Params is not exported"},
		{func(e *scheme.Entry) { e.Params = func() scheme.Params { return &common{} } },
			"Weight of its Params has the key weight, which every rule has"},
		{func(e *scheme.Entry) { e.Params = func() scheme.Params { return &doubled{} } }, "two fields of its Params have the key least"},
		{func(e *scheme.Entry) { e.Params = func() scheme.Params { return &misnamed{} } }, `Least of its Params has the key "Bad Key:"`},
		{func(e *scheme.Entry) { p := &noKeys{Least: 1}; e.Params = func() scheme.Params { return p } },
			"its Params returns the same struct twice"},
		{func(e *scheme.Entry) { e.Params = func() scheme.Params { return &listed{} } },
			"List of its Params is a []int64; a key is a bool, int64, float64 or string"},
	} {
		e := whole()
		c.change(&e)
		if err := scheme.Add(e); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Add: %v, want %q", err, c.want)
		}
	}
	before := len(scheme.All)
	if err := scheme.Add(whole()); err != nil {
		t.Error(err)
	}
	if _, there := scheme.All.Lookup("whole"); !there {
		t.Error("Add did not add the entry")
	}
	scheme.All = scheme.All[:before]
}

type untagged struct{ Untagged int64 }
type leastless struct {
	Boundless int64 `yaml:"boundless" doc:"no least value"`
}
type idleless struct {
	Most int64 `yaml:"most" min:"0" idle:"bound" doc:"idle beyond what nobody knows"`
}
type wordless struct {
	Word string `yaml:"word" doc:"no values"`
}
type listed struct {
	List []int64 `yaml:"list" doc:"no key"`
}

type hidden struct {
	state int64 `yaml:"state" min:"0" doc:"not exported"`
}
type common struct {
	Weight float64 `yaml:"weight" min:"0" doc:"a key of every rule"`
}
type doubled struct {
	Least int64 `yaml:"least" min:"0" doc:"one"`
	Most  int64 `yaml:"least" min:"0" doc:"the same"`
}
type misnamed struct {
	Least int64 `yaml:"Bad Key:" min:"0" doc:"no key of YAML"`
}

func (h *hidden) Check() error  { return scheme.CheckTags(&noKeys{Least: h.state + 1}) }
func (*common) Check() error    { return nil }
func (*doubled) Check() error   { return nil }
func (*misnamed) Check() error  { return nil }
func (*untagged) Check() error  { return nil }
func (*leastless) Check() error { return nil }
func (*idleless) Check() error  { return nil }
func (*wordless) Check() error  { return nil }
func (*listed) Check() error    { return errors.New("not reached") }
