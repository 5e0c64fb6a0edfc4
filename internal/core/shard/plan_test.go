package shard

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// mlp is 784-256-128-10 with weights and biases.
func mlp() []Param {
	return []Param{
		{Name: "fc1.weight", Layer: 0, N: 784 * 256}, {Name: "fc1.bias", Layer: 0, N: 256},
		{Name: "fc2.weight", Layer: 1, N: 256 * 128}, {Name: "fc2.bias", Layer: 1, N: 128},
		{Name: "fc3.weight", Layer: 2, N: 128 * 10}, {Name: "fc3.bias", Layer: 2, N: 10},
	}
}

// cutText cuts parameters, and lists the shards with their servers and elements.
func cutText(t *testing.T, params []Param, o Options) string {
	t.Helper()
	p, err := Cut(params, o)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range p.Shards {
		got = append(got, fmt.Sprintf("%s s%d %d+%d", s.Name, s.Server, s.Lo, s.Hi-s.Lo))
	}
	return strings.Join(got, "; ")
}

func TestEvenGivesEveryServerAnEqualPartOfEveryGroup(t *testing.T) {
	got := cutText(t, mlp(), Options{Slice: "even", MaxBytes: 4 << 20, Servers: 2, Rules: []string{"fc3.*", "*"}})
	want := "fc3.*/0 s0 0+645; fc3.*/1 s1 645+645; */0 s0 1290+116928; */1 s1 118218+116928"
	if got != want {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
}

// With several parts a server, the parts are dealt in turn, so both servers have early and late layers. A group that
// is too small for so many has fewer, and at least one a server.
func TestPartsAreDealtInTurn(t *testing.T) {
	got := cutText(t, mlp(), Options{Slice: "even", MaxBytes: 4 << 20, Servers: 2, Parts: 3, PartMin: 100_000, Rules: []string{"fc3.*", "*"}})
	want := "fc3.*/0 s0 0+645; fc3.*/1 s1 645+645; */0 s0 1290+38976; */1 s1 40266+38976; */2 s0 79242+38976; */3 s1 " +
		"118218+38976; */4 s0 157194+38976; */5 s1 196170+38976"
	if got != want {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
}

// Shares hold in each round of parts.
func TestPartsOfSharesAreDealtInTurn(t *testing.T) {
	got := cutText(t, []Param{{Name: "w", N: 3000}},
		Options{Slice: "even", MaxBytes: 4 << 20, Servers: 3, Shares: []int{4, 2, 2}, Parts: 2, Rules: []string{"*"}})
	if want := "*/0 s0 0+750; */1 s1 750+375; */2 s2 1125+375; */3 s0 1500+750; */4 s1 2250+375; */5 s2 2625+375"; got != want {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
}

// Pieces that are short because of the link have equal lengths; those that MaxBytes cuts leave a rest.
func TestShortPiecesAreEqual(t *testing.T) {
	for _, c := range []struct {
		pieceMax, maxBytes int64
		want               string
	}{{400, 4 << 20, "[84 84 82]"}, {0, 400, "[100 100 50]"}, {400, 400, "[100 100 50]"}, {4000, 4 << 20, "[250]"}} {
		p, err := Cut([]Param{{Name: "w", N: 250}},
			Options{Slice: "even", MaxBytes: c.maxBytes, PieceMax: c.pieceMax, Servers: 1, Rules: []string{"*"}})
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, q := range p.Pieces {
			got = append(got, q.Hi-q.Lo)
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestLayerDealsLargestFirstToTheEmptiestServerAndLeadsOnServer0(t *testing.T) {
	p, err := Cut(mlp(), Options{Slice: "layer", MaxBytes: 4 << 20, Servers: 2, Rules: []string{"fc3.*", "*"}})
	if err != nil {
		t.Fatal(err)
	}
	// fc1 is dealt first and would lie on server 0; fc2 and fc3 go to the other server. Shard 0 is fc3, so the labels
	// swap.
	want := map[string]int32{"fc3.*/fc3": 0, "*/fc1": 1, "*/fc2": 0}
	for _, s := range p.Shards {
		if s.Server != want[s.Name] {
			t.Errorf("shard %s lies on server %d, want %d", s.Name, s.Server, want[s.Name])
		}
	}
	if len(p.Shards) != 3 {
		t.Errorf("%d shards, want 3", len(p.Shards))
	}
}

// P3's slices, straggler-and-contention 7.3 [A]: a layer is cut at max_bytes, each part is a shard, and the shards are
// dealt to the servers in turn, over all layers.
func TestSlicesAreDealtInTurnOverAllLayers(t *testing.T) {
	p, err := Cut(mlp(), Options{Slice: "slices", MaxBytes: 400000, Servers: 2, Rules: []string{"fc3.*", "*"}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range p.Shards {
		got = append(got, fmt.Sprintf("%s s%d %d+%d", s.Name, s.Server, s.Lo, s.Hi-s.Lo))
		if len(s.Pieces) != 1 {
			t.Errorf("%s has %d pieces", s.Name, len(s.Pieces))
		}
	}
	want := "fc3.*/fc3.0 s0 0+1290; */fc1.0 s1 1290+100000; */fc1.1 s0 101290+100000; */fc1.2 s1 201290+960; */fc2.0 s0 202250+32896"
	if strings.Join(got, "; ") != want {
		t.Fatalf("got  %s\nwant %s", strings.Join(got, "; "), want)
	}
}

// PS-Lite's range slicer, sync-core 1.7 [C]: consecutive small keys all land on server 0.
func TestRangePutsEveryKeyOnServer0(t *testing.T) {
	p, err := Cut(mlp(), Options{Slice: "range", MaxBytes: 4 << 20, Servers: 4, Rules: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Shards) != 1 || p.Shards[0].Server != 0 || p.Shards[0].Hi != p.Arena {
		t.Fatalf("got %+v", p.Shards)
	}
}

func TestPiecesAreLayersInShardsCutAtMaxBytes(t *testing.T) {
	p, err := Cut(mlp(), Options{Slice: "even", MaxBytes: 400000, Servers: 1, Rules: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, q := range p.Pieces {
		got = append(got, fmt.Sprintf("L%d %d+%d", q.Layer, q.Lo, q.Hi-q.Lo))
	}
	want := "L0 0+100000; L0 100000+100000; L0 200000+960; L1 200960+32896; L2 233856+1290"
	if strings.Join(got, "; ") != want {
		t.Fatalf("got  %s\nwant %s", strings.Join(got, "; "), want)
	}
}

func TestCutRefuses(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Slice: "even", MaxBytes: 4, Servers: 0, Rules: []string{"*"}}, "cluster.servers is 0"},
		{Options{Slice: "even", MaxBytes: 3, Servers: 1, Rules: []string{"*"}}, "shards.max_bytes is 3"},
		{Options{Slice: "odd", MaxBytes: 4, Servers: 1, Rules: []string{"*"}}, `shards.slice is "odd"; it is one of [even layer slices range]`},
		{Options{Slice: "even", MaxBytes: 4, Servers: 1, Rules: []string{"fc1.*"}}, `no sync rule takes parameter "fc2.weight"`},
	} {
		if _, err := Cut(mlp(), c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

func genPlan(t *rapid.T) (*Plan, Options) {
	var params []Param
	for l := range rapid.IntRange(1, 6).Draw(t, "layers") {
		for _, kind := range []string{"weight", "bias", "mean"}[:rapid.IntRange(1, 3).Draw(t, "kinds")] {
			params = append(params,
				Param{Name: fmt.Sprintf("l%d.%s", l, kind), Layer: l, N: rapid.IntRange(1, 90).Draw(t, "n"), Stat: kind == "mean"})
		}
	}
	o := Options{
		Slice:    rapid.SampledFrom(Slices()).Draw(t, "slice"),
		MaxBytes: int64(rapid.IntRange(4, 200).Draw(t, "max_bytes")),
		Servers:  rapid.IntRange(1, 7).Draw(t, "servers"),
		Rules:    rapid.SampledFrom([][]string{{"*"}, {"l0.*", "*"}, {"*.bias", "l1.*", "*"}}).Draw(t, "rules"),
		Keys:     rapid.SampledFrom(append(KeyForms(), "")).Draw(t, "keys"),
		Parts:    rapid.IntRange(0, 5).Draw(t, "parts"),
		PartMin:  rapid.Int64Range(0, 60).Draw(t, "part min"),
		PieceMax: rapid.SampledFrom([]int64{0, 4, 12, 40}).Draw(t, "piece max"),
	}
	if o.listed() { // a message is then as long as messages may be
		o.PieceMax = 0
	}
	p, err := Cut(params, o)
	if err != nil {
		t.Fatal(err)
	}
	return p, o
}

// The invariants of sync-core 1.7: slices partition the flat vector, and even slices differ by at most one.
func TestPlanPartitionsTheParameters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, o := genPlan(t)
		if p.Shards[0].Server != 0 {
			t.Fatalf("the lead shard lies on server %d", p.Shards[0].Server)
		}
		owner := make([]int, p.Arena)
		element := map[[2]int]bool{}
		piece := int32(0)
		for i, s := range p.Shards {
			if s.ID != int32(i) || s.Lo >= s.Hi || s.Server < 0 || int(s.Server) >= o.Servers {
				t.Fatalf("shard %d is %+v", i, s)
			}
			for e := s.Lo; e < s.Hi; e++ {
				owner[e]++
			}
			at := s.Lo
			for _, g := range s.Segs {
				q := p.Params[g.Param]
				if g.At != at || RuleOf(o.Rules, q.Name) != s.Rule || q.Stat != s.Stat {
					t.Fatalf("segment %+v of shard %+v", g, s)
				}
				for e := g.Lo; e < g.Hi; e++ {
					if element[[2]int{g.Param, e}] {
						t.Fatalf("element %d of %s lies in two places", e, q.Name)
					}
					element[[2]int{g.Param, e}] = true
				}
				at += g.Hi - g.Lo
			}
			if at != s.Hi {
				t.Fatalf("segments of shard %d end at %d, the shard at %d", i, at, s.Hi)
			}
			at = s.Lo
			for _, q := range s.Pieces {
				if q.ID != piece || q.Shard != s.ID || q.Lo != at || q.Hi <= q.Lo ||
					int64(q.Hi-q.Lo)*ElemBytes > min(o.MaxBytes, p.PieceMax()) || o.PieceMax > 0 &&
					int64(q.Hi-q.Lo)*ElemBytes > o.PieceMax || p.Pieces[q.ID] != q {
					t.Fatalf("piece %+v of shard %+v", q, s)
				}
				piece++
				at = q.Hi
			}
			if at != s.Hi {
				t.Fatalf("pieces of shard %d end at %d, the shard at %d", i, at, s.Hi)
			}
		}
		for e, n := range owner {
			if n != 1 {
				t.Fatalf("arena element %d lies in %d shards", e, n)
			}
		}
	})
}

func TestEvenShardsOfAGroupDifferByAtMostOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, o := genPlan(t)
		if o.Slice != "even" || o.Keys == KeysTensor {
			return
		}
		size := map[groupKey]map[int]int{}    // by group and place in it
		owned := map[groupKey]map[int32]int{} // by group and server
		total := map[groupKey]int{}
		for _, s := range p.Shards {
			k := groupKey{fmt.Sprint(s.rules), s.Stat}
			if size[k] == nil {
				size[k], owned[k] = map[int]int{}, map[int32]int{}
			}
			owned[k][s.Server] += s.Hi - s.Lo
			place, err := strconv.Atoi(strings.TrimSuffix(s.Name[strings.LastIndex(strings.TrimSuffix(s.Name, "/stat"), "/")+1:], "/stat"))
			if err != nil {
				t.Fatalf("shard %s: %v", s.Name, err)
			}
			size[k][place] += s.Hi - s.Lo
			total[k] += s.Hi - s.Lo
		}
		for k, by := range size {
			parts := int(max(1, min(int64(o.Parts), int64(total[k])*ElemBytes/(int64(o.Servers)*max(ElemBytes, o.PartMin)))))
			all := parts * o.Servers
			for place := range all {
				if n := by[place]; n < total[k]/all || n > total[k]/all+1 {
					t.Fatalf("group %v: part %d has %d of %d over %d parts", k, place, n, total[k], all)
				}
			}
			for m := range o.Servers { // each part is off by at most one
				if n := owned[k][int32(m)]; n < parts*(total[k]/all) || n > parts*(total[k]/all+1) {
					t.Fatalf("group %v: server %d has %d of %d over %d servers with %d parts each", k, m, n, total[k], o.Servers, parts)
				}
			}
			if len(by) > all {
				t.Fatalf("group %v: %d parts, and %d servers of %d each", k, len(by), o.Servers, parts)
			}
		}
	})
}

func TestMatchAgreesWithARegularExpression(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		glob := rapid.StringMatching(`[ab.*?]{0,7}`).Draw(t, "glob")
		name := rapid.StringMatching(`[ab.]{0,8}`).Draw(t, "name")
		expr := strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(glob))
		if want := regexp.MustCompile("^" + expr + "$").MatchString(name); Match(glob, name) != want {
			t.Fatalf("Match(%q, %q) = %v", glob, name, !want)
		}
	})
}

// The keys of PS-Lite are tensors: each is a shard, and no piece is cut below it.
func TestKeysAreShardsOfTheirOwn(t *testing.T) {
	for slice, want := range map[string]string{
		"range": "*/fc1.weight s0; */fc1.bias s0; */fc2.weight s0; */fc2.bias s0; */fc3.weight s0; */fc3.bias s0",
		"layer": "*/fc1.weight s0; */fc1.bias s1; */fc2.weight s1; */fc2.bias s1; */fc3.weight s1; */fc3.bias s1",
		"even": "*/fc1.weight/0 s0; */fc1.weight/1 s1; */fc1.bias/0 s0; */fc1.bias/1 s1; */fc2.weight/0 s0; " +
			"*/fc2.weight/1 s1; */fc2.bias/0 s0; */fc2.bias/1 s1; */fc3.weight/0 s0; */fc3.weight/1 s1; */fc3.bias/0 s0; */fc3.bias/1 s1",
	} {
		p, err := Cut(mlp(), Options{Slice: slice, MaxBytes: 64 << 20, Servers: 2, Rules: []string{"*"}, Keys: KeysTensor})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range p.Shards {
			got = append(got, fmt.Sprintf("%s s%d", s.Name, s.Server))
			if len(s.Segs) != 1 || len(s.Pieces) != 1 {
				t.Errorf("%s: shard %s has %d parameters in %d pieces", slice, s.Name, len(s.Segs), len(s.Pieces))
			}
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("%s:\ngot  %s\nwant %s", slice, strings.Join(got, "; "), want)
		}
	}
}
