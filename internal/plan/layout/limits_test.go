package layout

import (
	"strings"
	"testing"

	"fluentps/internal/comm"
	"fluentps/internal/configs"
	"fluentps/internal/core/shard"
	"fluentps/internal/policy/optim"
	"fluentps/ps/workload"
)

func paramsOf(n int) []workload.Param { return []workload.Param{{Name: "w", Shape: []int{n}}} }

// plan counts the memory of encoded pieces, once for each worker or version, and the residual.
func TestEncodedBytesAreInTheLimits(t *testing.T) {
	plain, coded := load(t), load(t, "payload={push: topk, ratio: 0.1, pull: float16}")
	bytes := func(cfg *configs.Config) (worker, server int64) {
		p, err := Plan(cfg, paramsOf(100), 1, Link{})
		if err != nil {
			t.Fatal(err)
		}
		server, err = routesOf(cfg, p, 4).ServerBytes(0)
		if err != nil {
			t.Fatal(err)
		}
		return WorkerBytes(cfg, p, 4), server
	}
	w0, s0 := bytes(plain)
	w1, s1 := bytes(coded)
	if got, want := w1-w0, int64(84+400+200); got != want {
		t.Errorf("a worker takes %d bytes more, want %d: 10 pairs and a count, the residual, a received version", got, want)
	}
	if got, want := s1-s0, int64(4*84+6*200); got != want {
		t.Errorf("a server takes %d bytes more, want %d: a push of each worker, all versions", got, want)
	}
	w1, s1 = bytes(load(t, "baseline={name: pslite, keys: scalar}"))
	if got, want := w1-w0, int64(1200+1200+800); got != want {
		t.Errorf("with keys a worker takes %d bytes more, want %d: a push, a received version, the keys of a pull", got, want)
	}
	if got, want := s1-s0, int64(4*1200+6*1200); got != want {
		t.Errorf("with keys a server takes %d bytes more, want %d: a push of each worker, all versions", got, want)
	}
}

// The memory limits count a worker's copies: for published shards a version beside the arena and s+1 pushes.
func TestCopiesAreCountedAsMemory(t *testing.T) {
	bytes := func(sync string) (n, arena int64) {
		c := load(t, "train.optimizer={name: sgd, lr: 0.1}", "sync="+sync)
		p, err := shard.Cut([]shard.Param{{Name: "a", N: 100}, {Name: "b", N: 50}},
			shard.Options{Slice: "even", MaxBytes: 1 << 20, Servers: 2, Rules: []string{"a", "*"}})
		if err != nil {
			t.Fatal(err)
		}
		return WorkerBytes(c, p, 4), int64(p.Arena) * shard.ElemBytes
	}
	for sync, want := range map[string]int64{
		"[{match: a, scheme: asp}, {match: '*', scheme: asp}]":                               0,
		"[{match: a, scheme: ssp, push: delta, cache: true}, {match: '*', scheme: asp}]":     0,
		"[{match: a, scheme: essp, staleness: 3}, {match: '*', scheme: asp}]":                5 * 400,
		"[{match: a, scheme: essp, staleness: 3}, {match: '*', scheme: essp, staleness: 0}]": 5*400 + 2*200,
	} {
		if n, arena := bytes(sync); n != 2*arena+want {
			t.Errorf("%s: %d bytes, want %d beside 2 of %d", sync, n, want, arena)
		}
	}
}

// A piece with its keys is never longer than a message, and no shorter than it need be.
func TestMessagesWithKeysFit(t *testing.T) {
	params := []workload.Param{{Name: "a.weight", Shape: []int{5000, 4000}}, {Name: "a.bias", Shape: []int{5000}},
		{Name: "b.weight", Layer: 1, Shape: []int{1000, 5000}}}
	for keys, pieces := range map[string]int{shard.KeysTensor: 4, shard.KeysList: 2, shard.KeysScalar: 5} {
		p, err := Plan(load(t, "baseline={name: pslite, keys: "+keys+"}"), params, 2, Link{})
		if err != nil {
			t.Fatal(err)
		}
		if push, _ := p.Largest(); push > comm.MessageMax || len(p.Pieces) != pieces {
			t.Errorf("%s: %d pieces of at most %d bytes, want %d of at most %d", keys, len(p.Pieces), push, pieces, comm.MessageMax)
		}
	}
}

// A model with more pieces than allowed, or than memory allows, is refused before the pieces are listed.
func TestPiecesAreCountedBeforeTheyAreListed(t *testing.T) {
	for _, c := range []struct {
		set    string
		params int
		want   string
	}{
		{"shards={max_bytes: 1MiB}", 1 << 43, "into 33554432 pieces or more; the limit is 16777216"},
		{"shards={max_bytes: 4B}", 9_000_000, "into 9000000 pieces or more, whose list alone takes"},
		{"shards={max_bytes: 4B}", 1000, ""},
	} {
		_, err := Plan(load(t, c.set, "cluster.memory_max=64MiB"), paramsOf(c.params), 1, Link{})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %d parameters: %v, want %q", c.set, c.params, err, c.want)
		}
	}
}

// The limit that plan prints for a server is what its shards may take: versions, slots, sums, optimizer.
func TestServerBytesIsWhatTheNodeMayAskFor(t *testing.T) {
	c := load(t, "sync=[{match: '*', scheme: ssp, staleness: 2, fold: rank}]")
	p, err := Plan(c, []workload.Param{{Name: "w", Shape: []int{100}}}, 1, Link{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := routesOf(c, p, 4).ServerBytes(0)
	if want := int64(448*(4+2) + 400*(4*3+1+1) + 400); err != nil || got != want {
		t.Errorf("ServerBytes = %d, %v; want %d: 6 versions 64 bytes aligned, 12 slots, sums, momentum, room of the commit", got, err, want)
	}
	adam := load(t, "train.optimizer={name: adam, lr: 0.1}", "sync=[{match: '*', scheme: ssp, staleness: 2, fold: rank}]")
	if more, err := routesOf(adam, p, 4).ServerBytes(0); err != nil || more != got+400 {
		t.Errorf("ServerBytes = %d, %v with adam; want %d, a second moment more", more, err, got+400)
	}
	saving := load(t, "checkpoint.every_updates=5", "sync=[{match: '*', scheme: ssp, staleness: 2, fold: rank}]")
	if more, err := routesOf(saving, p, 4).ServerBytes(0); err != nil || more != got+448+400 {
		t.Errorf("ServerBytes = %d, %v with checkpoints during training; want %d, a version in writing and a copy of the "+
			"momentum", more, err, got+448+400)
	}
	two := load(t, "sync=[{match: '*', schemes: [{scheme: asp, until: 5}, {scheme: ssp, staleness: 2, fold: rank, until: 9}, {scheme: bsp}]}]")
	if again, err := routesOf(two, p, 4).ServerBytes(0); err != nil || again != got {
		t.Errorf("ServerBytes = %d, %v with schemes in turn; want %d, the most that any of them needs", again, err, got)
	}
}

func TestAPieceThatGrowsPastAMessageIsRefused(t *testing.T) {
	cfg := load(t, "payload={push: topk, ratio: 1}", "shards.max_bytes=48MiB")
	if _, err := Plan(cfg, paramsOf(12<<20), 1, Link{}); err == nil ||
		!strings.Contains(err.Error(), "shards.max_bytes 48.00 MiB may take 96.00 MiB as topk (ratio 1)") {
		t.Errorf("error %v", err)
	}
	if _, err := Plan(load(t, "shards.max_bytes=48MiB"), paramsOf(12<<20), 1, Link{}); err != nil {
		t.Error(err)
	}
}

// routesOf are the routes of a run with one server and so many workers that share no memory.
func routesOf(c *configs.Config, p *shard.Plan, workers int) *Routes {
	roles := shard.Roles{Servers: []int{0}}
	for w := range workers {
		roles.Workers = append(roles.Workers, 1+w)
	}
	return NewRoutes(c, p, roles, nil, Thresholds{})
}

func TestHierarchyTakesTheMemoryThatThePlanStates(t *testing.T) {
	c := load(t, "cluster={servers: 1, hierarchy: node}")
	roles, err := Roles(c, []string{"a", "a", "a"})
	if err != nil {
		t.Fatal(err)
	}
	p, err := Plan(c, []workload.Param{{Name: "w", Shape: []int{1 << 20}}}, 1, Link{})
	if err != nil {
		t.Fatal(err)
	}
	const arena = 4 << 20
	if got := sumBytes(p, roles, 0); got != arena {
		t.Errorf("%d bytes for sums, want %d", got, arena)
	}
	// Rank 0 needs room for the parameters, gradients and sums of the leader, and for the versions and sums of its server.
	c.Cluster.MemoryMax = ProgramBytes + 3*arena + arena + 1<<20
	set, err := cached(DataSpec(c))
	if err != nil {
		t.Fatal(err)
	}
	_, err = NewLedger(NewRoutes(c, p, roles, nil, Thresholds{}), []string{"a", "a", "a"}, set)
	if err == nil || !strings.Contains(err.Error(), "rank 0 (s0)") {
		t.Errorf("limits: %v", err)
	}
}

// muonParams are those of two layers, and a convolution, whose filters are rows.
var muonParams = []workload.Param{{Name: "conv.weight", Layer: 0, Shape: []int{6, 2, 3, 3}}, {Name: "conv.bias", Layer: 0, Shape: []int{6}},
	{Name: "fc.weight", Layer: 1, Shape: []int{40, 30}}, {Name: "fc.bias", Layer: 1, Shape: []int{40}}}

// TestMatricesThatAreCutAreRefused: where a server takes the step of a matrix, and not where workers do.
func TestMatricesThatAreCutAreRefused(t *testing.T) {
	for _, c := range []struct {
		set  []string
		want string // "": accepted
	}{
		{nil, "train.optimizer.name: muon takes steps of whole matrices, but fc.weight (40 x 30) is cut over the shards 0, 1 " +
			"(shards.slice: even); set shards.slice: layer, or name it in train.optimizer.others.match, and adamw trains it"},
		{[]string{"shards.slice=layer"}, ""},
		{[]string{"shards={slice: slices, max_bytes: 400B}"}, "conv.weight (6 x 2 x 3 x 3) is cut over the shards 0, 1 (shards.slice: slices)"},
		{[]string{"shards={slice: slices, max_bytes: 600B}", "train.optimizer.others.match=[fc.*]"}, ""},
		{[]string{"train.optimizer.name=adamw"}, ""},
		{[]string{"baseline=allreduce"}, ""},
		{[]string{`sync=[{match: "*", scheme: bsp, push: delta}]`}, ""},
		{[]string{"local={policy: averaging, steps: 2}"}, ""},
	} {
		cfg := load(t, append([]string{"train.optimizer={name: muon, lr: 0.02}"}, c.set...)...)
		_, err := Plan(cfg, muonParams, 2, Link{})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v: %v, want %q", c.set, err, c.want)
		}
	}
}

// TestStepsOfMatricesTakeMemory: once for the largest matrix, on the server that has it, or on workers that take the steps.
func TestStepsOfMatricesTakeMemory(t *testing.T) {
	bytes := func(set ...string) (all [3]int64) {
		cfg := load(t, append([]string{"shards.slice=layer"}, set...)...)
		p, err := Plan(cfg, muonParams, 2, Link{})
		if err != nil {
			t.Fatal(err)
		}
		for k := range 2 {
			if all[k], err = routesOf(cfg, p, 2).ServerBytes(int32(k)); err != nil {
				t.Fatal(err)
			}
		}
		all[2] = WorkerBytes(cfg, p, 2)
		return all
	}
	conv, fc := optim.MatrixBytes(6, 18), optim.MatrixBytes(40, 30)
	for _, c := range []struct {
		set  []string
		want [3]int64
	}{
		{nil, [3]int64{conv, fc, 0}},
		{[]string{"train.optimizer.others.match=[fc.weight]"}, [3]int64{conv, 0, 0}},
		{[]string{`sync=[{match: "*", scheme: bsp, push: delta}]`}, [3]int64{0, 0, fc}},
		{[]string{"local={policy: averaging, steps: 2}"}, [3]int64{0, 0, fc}},
	} {
		got := bytes(append([]string{"train.optimizer={name: muon, lr: 0.02}"}, c.set...)...)
		rest := c.set
		if len(rest) > 0 && strings.HasPrefix(rest[0], "train.optimizer") {
			rest = nil
		}
		than := bytes(append([]string{"train.optimizer={name: adamw, lr: 0.02}"}, rest...)...)
		if more := [3]int64{got[0] - than[0], got[1] - than[1], got[2] - than[2]}; more != c.want {
			t.Errorf("%v: %v bytes more than adamw takes, want %v", c.set, more, c.want)
		}
	}
}
