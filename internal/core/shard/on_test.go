package shard

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A rule for some servers changes the rule of the shards that lie there, and nothing else (FluentPS's "each server
// independently adjusts its scheme"). The map of parameters to servers does not depend on it.
func TestARuleForSomeServersMovesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, o := genPlan(t)
		on := rapid.SliceOfNDistinct(rapid.IntRange(0, o.Servers-1), 1, o.Servers, rapid.ID).Draw(t, "on")
		o.Rules, o.On = append([]string{"*"}, o.Rules...), [][]int{on}
		q, err := Cut(p.Params, o)
		if err != nil {
			t.Fatal(err)
		}
		if q.Arena != p.Arena || !slices.Equal(q.At, p.At) || len(q.Shards) != len(p.Shards) || !reflect.DeepEqual(q.Pieces, p.Pieces) {
			t.Fatalf("the map has changed: %+v, was %+v", q, p)
		}
		for i := range q.Shards {
			a, b := &p.Shards[i], &q.Shards[i]
			want := a.Rule + 1
			if slices.Contains(on, int(a.Server)) {
				want = 0
			}
			if a.Lo != b.Lo || a.Hi != b.Hi || a.Server != b.Server || a.Stat != b.Stat || b.Rule != want ||
				!strings.HasPrefix(b.Name, o.Rules[want]+"/") {
				t.Fatalf("shard %+v, was %+v; rule %d is for servers %v", b, a, 0, on)
			}
		}
	})
}

// Each shard has the first rule that fits all its parameters and its server, however the rules are mixed.
func TestAShardHasTheFirstRuleThatFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, o := genPlan(t)
		o.Rules = []string{"*.bias", "fc1.*", "*.weight", "*"}
		for k := range 3 {
			var on []int
			if rapid.Bool().Draw(t, "restricted") {
				on = []int{rapid.IntRange(0, o.Servers-1).Draw(t, "on")}
			}
			if o.On = append(o.On, on); k == 2 {
				o.On = append(o.On, nil)
			}
		}
		q, err := Cut(p.Params, o)
		if err != nil {
			t.Fatal(err)
		}
		for i := range q.Shards {
			s := &q.Shards[i]
			for _, g := range s.Segs {
				name := q.Params[g.Param].Name
				want := slices.IndexFunc(o.Rules, func(glob string) bool {
					on := o.On[slices.Index(o.Rules, glob)]
					return Match(glob, name) && (on == nil || slices.Contains(on, int(s.Server)))
				})
				if s.Rule != want {
					t.Fatalf("%s on server %d has rule %d, want %d of %v for %v", name, s.Server, s.Rule, want, o.Rules, o.On)
				}
			}
		}
	})
}

func TestRulesForServersThatAreNotThere(t *testing.T) {
	params := []Param{{Name: "a", N: 8}}
	for want, o := range map[string]Options{
		`for server 2, and there are 2, from 0 on; change its servers`: {Rules: []string{"*", "*"}, On: [][]int{{0, 2}, nil}},
		`no sync rule takes "1" on server 1`:                           {Rules: []string{"*"}, On: [][]int{{0}}},
	} {
		o.Slice, o.MaxBytes, o.Servers = "even", 64, 2
		if _, err := Cut(params, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v for %v: error %v, want one with %q", o.Rules, o.On, err, want)
		}
	}
}

// A resumed run may have fewer servers than a rule names.
func TestRulesForServersThatAreGone(t *testing.T) {
	o := Options{Slice: "even", MaxBytes: 64, Servers: 2, Rules: []string{"*", "*"}, On: [][]int{{2}, nil}}
	if _, err := Cut([]Param{{Name: "a", N: 8}}, o); err == nil || !strings.Contains(err.Error(), "is for server 2, and there are 2") {
		t.Errorf("error %v", err)
	}
}
