package build

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"fluentps/internal/comm/wire"
	"fluentps/internal/configs/configstest"
	"fluentps/internal/core"
	"fluentps/internal/core/servernode"
	"fluentps/internal/plan/layout"
	"fluentps/ps/scheme"
	"fluentps/ps/workload"
)

// layers is a model of six parameters.
const layers = "model={name: mlp, layers: [16, 8]}"

// of is the maker of the nodes of a run on these hosts, one letter for each rank, with its model.
func of(t testing.TB, hosts string, set ...string) (*Run, *workload.Architecture) {
	t.Helper()
	c := configstest.Load(t, set...)
	names := strings.Split(hosts, "")
	roles, err := layout.Roles(c, names)
	if err != nil {
		t.Fatal(err)
	}
	data, err := configstest.Data(layout.DataSpec(c))
	if err != nil {
		t.Fatal(err)
	}
	q, err := layout.Prepare(c, roles, names, data, layout.Link{})
	if err != nil {
		t.Fatal(err)
	}
	return &Run{Config: c, Plan: q.Plan, Roles: roles, Hosts: names, Rows: data.Train.Rows()}, q.Architecture
}

// Shards of a server that take part in one rotation share one instance of the scheme. Each other shard has its own, and a server has
// those of its own shards alone.
func TestShardsOfARotationShareTheirScheme(t *testing.T) {
	b, _ := of(t, "aaaaaa", layers, "shards.slice=layer", `sync=[{match: "*.bias", scheme: asp}, {match: "*", scheme: r2sp}]`)
	shared := 0
	for me := range int32(2) {
		schemes, err := b.Schemes(me, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(schemes) != len(b.Plan.OfServer(me)) {
			t.Errorf("server %d has schemes of %d shards and owns %d", me, len(schemes), len(b.Plan.OfServer(me)))
		}
		for id, ss := range schemes {
			for other, so := range schemes {
				rotates := b.Scheme(b.Plan.Shards[id].Rule) == "r2sp" && b.Scheme(b.Plan.Shards[other].Rule) == "r2sp"
				if same := ss.Scheme == so.Scheme; same != (rotates || id == other) {
					t.Errorf("shards %d and %d of server %d have one scheme: %v", id, other, me, same)
				} else if same && id != other {
					shared++
				}
			}
		}
	}
	if shared == 0 {
		t.Error("no server has two shards of the rotation: the test compares nothing")
	}
}

// A scheme that resumes has the memory that it left. The memory of a scheme that has ended by then is for nobody, and workers resume at
// their clocks.
func TestASchemeResumesWithItsOwnMemoryAlone(t *testing.T) {
	b, _ := of(t, "aaaaa", "cluster.servers=1",
		"sync=[{match: '*', schemes: [{scheme: dssp, s_l: 2, s_u: 4, until: 9}, {scheme: dssp, s_l: 2, s_u: 5}]}]")
	schemeOf := func(from *Start) scheme.Scheme {
		t.Helper()
		schemes, err := b.Schemes(0, from)
		if err != nil {
			t.Fatal(err)
		}
		return schemes[0].Scheme
	}
	memoryOf := func(s scheme.Scheme) string { return string(s.(scheme.Learning).Memory()) }
	first := schemeOf(nil)
	for i := range int64(3) {
		for w := range int32(4) {
			first.Step(scheme.Event{Kind: scheme.Pushed, Worker: w, Owner: w, Iter: i, Parts: 1, Samples: 8,
				At: time.Duration(i+1) * time.Duration(w+1) * time.Second}, nil)
		}
	}
	memory := []byte(memoryOf(first))
	if string(memory) == memoryOf(schemeOf(nil)) {
		t.Fatal("the scheme has learnt nothing: the test compares nothing")
	}
	at := func(clock, until int64) *Start {
		return &Start{Clocks: slices.Repeat([]int64{clock}, 4),
			Shards: map[int32]servernode.Saved{0: {Version: 4 * clock, Until: until, Memory: memory}}}
	}
	if got := memoryOf(schemeOf(at(3, 9))); got != string(memory) {
		t.Errorf("in the middle of its phase it remembers %q, want %q", got, memory)
	}
	if got := memoryOf(schemeOf(at(9, 9))); got == string(memory) {
		t.Errorf("the scheme after it remembers what it has learnt, %q", got)
	}
	if a, c := schemeOf(at(3, 9)).String(), schemeOf(at(4, 9)).String(); a == c {
		t.Errorf("at clocks 3 and 4 the scheme is %s", a)
	}
}

// The clock of a worker is that of the start; a run that begins has none.
func TestWorkersBeginAtTheClockOfTheStart(t *testing.T) {
	var none *Start
	s := &Start{Clocks: []int64{4, 7}}
	if none.Clock(1) != 0 || s.Clock(0) != 4 || s.Clock(1) != 7 {
		t.Errorf("clocks %d, %d, %d", none.Clock(1), s.Clock(0), s.Clock(1))
	}
}

// A server's node has the budget of the configuration: it tells the workers to stop with the version that uses it up.
func TestAServerStopsWithTheBudget(t *testing.T) {
	for _, stop := range []string{"{updates: 2}", "{samples: 64}"} {
		b, _ := of(t, "aaaaa", "cluster.servers=1", "train.stop="+stop)
		schemes, err := b.Schemes(0, nil)
		if err != nil {
			t.Fatal(err)
		}
		node := b.Server(0, Server{Schemes: schemes})
		var stopped []bool
		for i := range int64(2) {
			for w := range int32(4) {
				push := wire.Header{Kind: wire.Push, Worker: w, Owner: w, Parts: 1, Iter: i, Samples: 8}
				feed(node, core.Input{Kind: core.Arrived, Msg: push})
				feed(node, core.Input{Kind: core.Arrived, Msg: wire.Header{Kind: wire.Pull, Worker: w, Iter: i + 1, Clock: i + 1}})
			}
			stopped = append(stopped, node.Stopping())
		}
		if got := node.Shard(0); fmt.Sprint(stopped) != "[false true]" || got.Version != 2 || got.Samples != 64 {
			t.Errorf("%s: stops %v after the versions 1 and 2, and has version %d with %d samples", stop, stopped, got.Version, got.Samples)
		}
	}
}

// feed gives a node an input, and lands what it asks for.
func feed(node *servernode.Server, in core.Input) {
	for _, e := range node.Step(in, nil) {
		switch e.Kind {
		case core.Stage:
			feed(node, core.Input{Kind: core.PieceLanded, Slot: e.Slot, Worker: e.To, Shard: e.Shard, Piece: e.Piece})
		case core.Reply:
			feed(node, core.Input{Kind: core.ReplySent, Buf: e.Src, Worker: e.To, Shard: e.Shard})
		}
	}
}

// The policies of nodes are those of the configuration: how many parts an iteration has, who may push for whom, and whether pushes stay
// apart. Policies that are given come before those.
func TestAxesAreThoseOfTheConfiguration(t *testing.T) {
	const ssp = "sync=[{match: '*', scheme: ssp, staleness: 1}]"
	for _, c := range []struct {
		set    []string
		tasks  bool
		parts  int
		owners [][]int32
		ahead  bool
		apart  bool
	}{
		{set: nil},
		{set: []string{"work={policy: flexrr}", ssp}, tasks: true, parts: 8},
		{set: []string{"work={policy: anytime, time: 1h}"}, tasks: true, parts: 1},
		{set: []string{"work={policy: partial, load: 2}", "sync=[{match: '*', scheme: drop}]"}, tasks: true, parts: 1, ahead: true,
			owners: [][]int32{{0, 1}, {1, 2}, {2, 3}, {3, 0}}},
		{set: []string{"work={policy: coded, micro: 3, code: {stragglers: 1}}", "sync=[{match: '*', scheme: coded}]"},
			tasks: true, parts: 1, ahead: true},
		{set: []string{"work={policy: coded, micro: 3, code: {stragglers: 1, alpha: 1.5}}", "sync=[{match: '*', scheme: coded}]"},
			tasks: true, parts: 1, ahead: true, apart: true},
	} {
		b, _ := of(t, "aaaaaa", c.set...)
		a := b.AxesInUse()
		if b.HasTasks() != c.tasks || a.Parts != c.parts || (a.Ahead != nil) != c.ahead {
			t.Errorf("%v: tasks %v, %d parts, ahead %+v", c.set, b.HasTasks(), a.Parts, a.Ahead)
			continue
		}
		if c.ahead && (a.Ahead.Apart != c.apart || c.owners != nil && !reflect.DeepEqual(a.Ahead.Owners, c.owners)) {
			t.Errorf("%v: %+v, want owners %v, apart %v", c.set, a.Ahead, c.owners, c.apart)
		}
		given := Axes{Work: func(int) core.Work { return nil }, Parts: 17}
		b.Axes = given
		if got := b.AxesInUse(); got.Parts != 17 || got.Ahead != nil {
			t.Errorf("%v: the policy that was given is not used: %+v", c.set, got)
		}
	}
}

// Workers on one host have one number, those of two hosts have two; where hosts are unknown there are none.
func TestTheHostsOfWorkers(t *testing.T) {
	b, _ := of(t, "xxabab")
	got, apart := b.hostsOfWorkers(), false
	for i, rank := range b.Roles.Workers {
		for j, other := range b.Roles.Workers {
			same := b.Hosts[rank] == b.Hosts[other]
			if apart = apart || !same; (got[i] == got[j]) != same {
				t.Errorf("workers %d and %d are on one host: %v; they have the numbers %d and %d", i, j, same, got[i], got[j])
			}
		}
	}
	if len(got) != 4 || !apart {
		t.Errorf("hosts %v: the test compares nothing", got)
	}
	if b.Hosts = nil; b.hostsOfWorkers() != nil {
		t.Errorf("unknown hosts are %v", b.hostsOfWorkers())
	}
}

// A code counts the samples of all batches, and has the deadline and the private parts of the configuration. A run without codes
// has none.
func TestTheCodeOfARun(t *testing.T) {
	b, _ := of(t, "aaaaaa")
	if d, err := b.Decoder(); d != nil || err != nil {
		t.Errorf("%v, %v without codes", d, err)
	}
	for alpha, private := range map[string]bool{"0": false, "1.5": true} {
		b, _ = of(t, "aaaaaa", "work={policy: coded, micro: 3, code: {stragglers: 1, deadline: 7s, alpha: "+alpha+"}}",
			"sync=[{match: '*', scheme: coded}]")
		var samples int64
		for _, n := range b.Config.Batches(4) {
			samples += int64(n)
		}
		d, err := b.Decoder()
		if err != nil || samples < 32 || d.Samples() != samples || d.Deadline() != 7*time.Second || d.Private() != private {
			t.Errorf("alpha %s: %+v, %v, want %d samples", alpha, d, err, samples)
		}
	}
}

// The first values do not depend on how the parameters are cut: they follow from the seed, or are those that are given.
func TestTheFirstValuesDoNotDependOnTheCut(t *testing.T) {
	for _, cut := range []string{"shards.slice=layer", "shards={slice: slices, max_bytes: 64B}", "shards.slice=even"} {
		for _, given := range []workload.Initial{nil, numbers{}} {
			b, a := of(t, "aaaaaa", layers, cut)
			b.Initial = given
			arena := make([]float32, b.Plan.Arena)
			for i := range b.Plan.Shards {
				sh := &b.Plan.Shards[i]
				if err := b.Fill(arena[sh.Lo:sh.Hi], sh, a); err != nil {
					t.Fatal(err)
				}
			}
			for k, got := range b.Plan.Views(arena) {
				want := make([]float32, len(got))
				if given == nil {
					workload.Fill(want, b.Config.Seed, a.Params()[k], 0)
				} else {
					_ = given.Fill(want, k, 0)
				}
				if !slices.Equal(got, want) {
					t.Errorf("%s, given %v: parameter %d is %v, want %v", cut, given, k, got, want)
				}
			}
		}
	}
	b, a := of(t, "aaaaaa", layers)
	b.Initial = unreadable{}
	sh := &b.Plan.Shards[0]
	if err := b.Fill(make([]float32, sh.Hi-sh.Lo), sh, a); err == nil {
		t.Error("values that cannot be read are filled in")
	}
}

// numbers tells all elements apart.
type numbers struct{}

func (numbers) Fill(dst []float32, k, lo int) error {
	for i := range dst {
		dst[i] = float32(1000*k + lo + i)
	}
	return nil
}

type unreadable struct{}

func (unreadable) Fill([]float32, int, int) error { return errors.New("no") }

// The clocks of shards that are exchanged in some iterations cannot be restored yet, so a worker that resumes with them is a bug of the
// caller.
func TestExchangeClocksOfACallerDoNotResume(t *testing.T) {
	b, _ := of(t, "aaaaaa")
	b.Axes.Due = func(int32, int64) bool { return true }
	panics := func(do func()) (did bool) {
		defer func() { did = recover() != nil }()
		do()
		return
	}
	if panics(func() { b.Worker(0, 0, nil) }) || !panics(func() { b.Worker(0, 1, nil) }) || !panics(func() { b.Joining(0, 1, 0) }) {
		t.Error("a worker that begins must be made, and one that resumes or comes back must not")
	}
}
