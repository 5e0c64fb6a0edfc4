package resume

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"fluentps/internal/configs"
	"fluentps/internal/core/servernode"
	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/plan/build"
	"fluentps/internal/policy/optim"
	"fluentps/internal/policy/payload"
	"fluentps/internal/policy/work"
	"fluentps/internal/rank/serve"
	"fluentps/internal/rank/train"
)

// A checksum proves that a file is as it was written, but not that this program wrote it. So the values of a checkpoint are compared with
// their limits, with each other and with this run before the run resumes.

// fieldOf adds to the error of a field the name of its file.
func (q *Origin) fieldOf(file string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("checkpoint %s: %s: %w", q.Dir, file, err)
}

// equal returns an error if two fields differ which a run always writes with the same value.
func equal(field string, value int64, other string, there int64) error {
	if value == there {
		return nil
	}
	return fmt.Errorf("%s is %d, but %s is %d: one of the two was changed", field, value, other, there)
}

// first returns the first error that is not nil.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// checkLead compares the values of the manifest with each other and with the configuration.
func (r *Search) checkLead(q *Origin) error {
	const most = checkpoint.CountMax
	m, s := q.Manifest, &q.State
	counts := func(field string, value int64) error { return checkpoint.Within("state."+field, value, 0, most) }
	errs := []error{counts("accepted", s.Accepted), counts("version", s.Version), checkpoint.Within("state.lead_max", s.LeadMax, -most, most),
		counts("trained_ns", int64(s.Trained)), counts("standstills", int64(s.Standstills))}
	for name, bytes := range s.Sinks {
		errs = append(errs, counts(fmt.Sprintf("sinks.%q", name), bytes))
	}
	for i, e := range s.Evals {
		errs = append(errs, counts(fmt.Sprintf("Evals[%d].samples", i), e.Samples))
	}
	if s.Target != nil && !(*s.Target >= 0) {
		errs = append(errs, fmt.Errorf("state.target_reached_s is %v, must be 0 or more", *s.Target))
	}
	for w, start := range m.Starts {
		errs = append(errs, checkpoint.Within(fmt.Sprintf("starts[%d]", w), start, 0, r.clockMost()))
		if start != m.Starts[0] && r.station.Config.InStep() && !r.otherSchemes(m) {
			errs = append(errs, equal(fmt.Sprintf("starts[%d]", w), start, "starts[0], whose worker is in step with this one,", m.Starts[0]))
		}
	}
	errs = append(errs, r.checkDealt(q), checkServers(m),
		equal("iteration", m.Iteration, fmt.Sprintf("state.accepted for each of %d workers", m.Workers), s.Accepted/int64(m.Workers)))
	return q.fieldOf("manifest.json", first(errs...))
}

// workEnv is the run for a policy of work.
func (r *Search) workEnv() work.Env {
	return r.station.Config.WorkEnv(r.station.Roles.Computes(), r.station.Set.Train.Rows())
}

// checkDealt compares the assignment of batches with the workers.
func (r *Search) checkDealt(q *Origin) error {
	a, c := q.State.Work, r.station.Config
	if a == nil || !c.DealsBatches() {
		return nil
	}
	if err := checkpoint.Within("state.work.assignment.number", a.Number, 0, checkpoint.CountMax); err != nil ||
		!a.Continues(c.Work, r.workEnv()) {
		return err
	}
	furthest, most := slices.Max(q.Manifest.Starts), int64(work.ProfileMax)
	if a.Epoch { // Check holds its length
		most = checkpoint.CountMax
	}
	errs := []error{checkpoint.Within("state.work.assignment.until", a.Until, furthest, furthest+most), a.Check(a.Env)}
	for w, start := range q.Manifest.Starts {
		errs = append(errs, checkpoint.Within(fmt.Sprintf("starts[%d], whose batch state.work deals,", w), start, a.From, a.Until))
	}
	if err := first(errs...); err != nil {
		return err
	}
	_, err := c.NewDealer(r.station.Roles.Computes(), r.station.Set.Train.Rows(), a, furthest) // it recalls the memory of the policy
	return err
}

// checkLearned fails if the policy of a worker cannot go on with what it has learned.
func (r *Search) checkLearned(s *train.State, worker int) error {
	roles := r.station.Roles
	numbers := s.Learned.Of(r.station.Config.Work.Policy, len(roles.Workers))
	if numbers == nil || worker >= len(roles.Workers) {
		return nil
	}
	if err := r.station.Build().Worker(worker, s.Next, nil).Recall(numbers); err != nil {
		return fmt.Errorf("learned: %w", err)
	}
	return nil
}

// checkTallies compares what the ranks of a worker measured with its limits.
func checkTallies(all []work.Tally) error {
	const most = checkpoint.CountMax
	var errs []error
	for i, t := range all {
		at := fmt.Sprintf("tallies[%d].", i)
		errs = append(errs, checkpoint.Within(at+"until", t.Until, 0, most),
			checkpoint.Within(at+"iterations", t.Iterations, 0, most), checkpoint.Within(at+"samples", t.Samples, 0, most),
			checkpoint.Within(at+"took_ns", int64(t.Took), 0, most),
			checkpoint.Within(at+"number of times_ns", int64(len(t.Times)), 0, work.TimesMax))
		for k, d := range t.Times {
			errs = append(errs, checkpoint.Within(fmt.Sprintf("%stimes_ns[%d]", at, k), int64(d), 0, most))
		}
	}
	return first(errs...)
}

// clockMost returns the last iteration whose samples do not exceed CountMax.
func (r *Search) clockMost() int64 {
	return checkpoint.CountMax / int64(max(1, r.station.Config.Train.BatchPerWorker, r.station.Config.Train.BatchGlobal))
}

// otherSchemes reports whether the rules of synchronization have changed since the checkpoint.
func (r *Search) otherSchemes(m *checkpoint.Manifest) bool {
	return r.changed(m, "sync", "baseline")
}

// changed reports whether a key with one of these prefixes has changed its value since the checkpoint.
func (r *Search) changed(m *checkpoint.Manifest, prefixes ...string) bool {
	return slices.ContainsFunc(configs.Changed(m.Config, r.station.Config), func(key string) bool {
		return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
	})
}

// checkServers compares the number of servers with the configuration in the checkpoint.
func checkServers(m *checkpoint.Manifest) error {
	n, err := strconv.ParseInt(m.Config["cluster.servers"], 10, 32)
	switch {
	case err != nil: // another version of the program wrote the value in another form
		return nil
	case m.Config["cluster.placement"] == "mixed": // ranks that compute serve, too
		return checkpoint.Within("servers", int64(m.Servers), n, n+int64(max(m.Computing, m.Workers)))
	}
	return equal("servers", int64(m.Servers), "config.cluster.servers", n)
}

// checkServer compares the shards in the file of a server with their limits, with the manifest and with the vectors of the file.
func (r *Search) checkServer(q *Origin, file string, s *serve.State, vectors [][]float32) error {
	rule, err := r.rule()
	if err != nil {
		return err
	}
	left := vectors
	for i := range s.Shards {
		sh := &s.Shards[i]
		if err := r.checkShard(q, sh, fmt.Sprintf("shards[%d].", i)); err != nil {
			return q.fieldOf(file, err)
		}
		if sh.Vectors > len(left) || slices.ContainsFunc(left[:sh.Vectors], func(v []float32) bool { return len(v) != sh.Hi-sh.Lo }) {
			return q.fieldOf(file, fmt.Errorf("shards[%d] has %d vectors of %d elements, but the vectors of the file are "+
				"different", i, sh.Vectors, sh.Hi-sh.Lo))
		}
		if k, at, bad := optim.Unfit(rule, left[:sh.Vectors], true); bad {
			return q.fieldOf(file,
				fmt.Errorf("shards[%d] (%q): element %d of %s is %v; training cannot resume with it", i, sh.Name, sh.Lo+at, vectorName(k), left[k][at]))
		}
		left = left[sh.Vectors:]
	}
	if len(left) > 0 {
		return q.fieldOf(file, fmt.Errorf("%d vectors follow those of its %d shards", len(left), len(s.Shards)))
	}
	return nil
}

// settleChanges prepares the changes of scheme that stragglers have caused for another number of workers, and forgets them if the rules are
// others now.
func (r *Search) settleChanges(m *checkpoint.Manifest, s *serve.State) {
	others := r.otherSchemes(m)
	for i := range s.Shards {
		node := &s.Shards[i].Node
		if node.Settle(m.Starts); others {
			node.Changes, node.Began = 0, 0
		}
	}
}

// checkChanges verifies that the shards whose schemes wait for stragglers have changed together, and not beyond the last scheme.
func (r *Search) checkChanges(q *Origin, file string) error {
	awaits := r.station.Config.Awaits()
	if awaits == nil || r.otherSchemes(q.Manifest) {
		return nil
	}
	most, before := int64(len(awaits)-1), ""
	if awaits[most].IsSet() { // the first scheme follows the last
		most = checkpoint.CountMax
	}
	var changes int64
	for i, sh := range q.Server.Shards {
		if !r.station.Config.Sync[r.station.Plan.Shards[sh.ID].Rule].Awaits() {
			continue
		}
		field := fmt.Sprintf("shards[%d].node.changes", i)
		if err := checkpoint.Within(field, sh.Node.Changes, 0, most); err != nil {
			return q.fieldOf(file, err)
		}
		if before != "" && sh.Node.Changes != changes {
			return q.fieldOf(file, equal(field, sh.Node.Changes, before, changes))
		}
		before, changes = field, sh.Node.Changes
	}
	return nil
}

// checkMemory verifies that the schemes of a server accept the memory in the file. It checks nothing if the schemes have changed since.
func (r *Search) checkMemory(q *Origin, file string, server int) error {
	m := q.Manifest
	if m.Workers != len(r.station.Roles.Workers) || m.Servers != len(r.station.Roles.Servers) ||
		r.changed(m, "sync", "baseline", "cluster", "shards") {
		return nil
	}
	_, err := r.station.Build().Schemes(int32(server), q.Start())
	if err == nil {
		return nil
	}
	for i, sh := range q.Server.Shards { // find the shard at fault
		alone := &build.Start{Clocks: q.Starts, Shards: map[int32]servernode.Saved{sh.ID: sh.Node}}
		if _, bad := r.station.Build().Schemes(int32(server), alone); bad != nil {
			return q.fieldOf(file, fmt.Errorf("shards[%d].node.memory: %w", i, bad))
		}
	}
	return q.fieldOf(file, err)
}

func vectorName(k int) string {
	if k == 0 {
		return "its parameters"
	}
	return fmt.Sprintf("vector %d of its optimizer", k)
}

// rule returns the optimizer of this run. It stands for that of the checkpoint too, because the numbers of vectors must agree.
func (r *Search) rule() (optim.Rule, error) {
	u, err := r.station.Config.ServerUpdate(r.station.Roles.Computes())
	return u.Rule, err
}

func (r *Search) checkShard(q *Origin, sh *serve.ShardState, at string) error {
	node := &sh.Node
	var errs []error
	for _, c := range []struct {
		field             string
		value, least, top int64
	}{
		{"id", int64(sh.ID), 0, math.MaxInt32}, {"lo", int64(sh.Lo), 0, int64(r.station.Plan.Arena)},
		{"hi", int64(sh.Hi), int64(sh.Lo), int64(r.station.Plan.Arena)},
		{"vectors", int64(sh.Vectors), 1, vectorsMax}, {"steps", sh.Steps, 0, checkpoint.CountMax},
		{"node.version", node.Version, 0, checkpoint.CountMax}, {"node.rated", node.Rated, 0, checkpoint.CountMax},
		{"node.accepted", node.Accepted, 0, checkpoint.CountMax}, {"node.samples", node.Samples, 0, checkpoint.CountMax},
		{"node.closed", node.Closed, 0, slices.Max(q.Manifest.Starts)}, {"node.until", node.Until, 0, checkpoint.CountMax},
		{"node.changes", node.Changes, 0, checkpoint.CountMax}, {"node.began", node.Began, 0, slices.Max(q.Manifest.Starts)},
	} {
		errs = append(errs, checkpoint.Within(at+c.field, c.value, c.least, c.top))
	}
	if sh.ID == 0 { // the lead shard counts for the run
		errs = append(errs, equal(at+"node.version", node.Version, "state.version of manifest.json", q.State.Version),
			equal(at+"node.samples", node.Samples, "samples of manifest.json", q.Manifest.Samples),
			equal(at+"node.accepted", node.Accepted, "state.accepted of manifest.json", q.State.Accepted))
	}
	errs = append(errs, checkpoint.Within(at+"steps", sh.Steps, 0, node.Version)) // each optimizer step makes a version
	return first(errs...)
}

// vectorsMax is the limit on the vectors of a shard. No optimizer comes near it.
const vectorsMax = 16

// checkWorker compares the state in the file of a worker with its limits, with the manifest and with the vectors of the file.
func (r *Search) checkWorker(q *Origin, worker int, s *train.State, vectors [][]float32) error {
	file := checkpoint.WorkerFile(worker)
	update, err := r.station.Config.Update()
	if err != nil {
		return err
	}
	err = first(equal("next", s.Next, fmt.Sprintf("starts[%d] of manifest.json", worker), q.Manifest.Starts[worker]),
		checkpoint.Within("steps", s.Steps, 0, checkpoint.CountMax), checkTallies(s.Tallies), r.checkLearned(s, worker), r.checkOwn(q, s))
	for i, m := range s.Thresholds {
		if err == nil {
			at := fmt.Sprintf("thresholds[%d].", i)
			err = first(checkpoint.Within(at+"at", int64(m.At), 0, math.MaxInt32),
				checkpoint.Within(at+"reused", int64(m.Reused), 0, payload.ReuseMax-1))
		}
	}
	if err == nil {
		vectors, _, err = s.TakeScript(vectors)
	}
	if err == nil && s.Residual && len(vectors) == 0 {
		err = errors.New("its state says that it has a residual, but it has no vectors")
	}
	// after a change of these keys, the number of vectors may differ
	if err == nil && !r.changed(q.Manifest, "payload", "sync", "baseline", "train.optimizer", "local") {
		err = r.checkVectors(s, len(vectors))
	}
	if err != nil {
		return q.fieldOf(file, err)
	}
	for k, v := range vectors {
		if len(v) != r.station.Plan.Arena {
			return q.fieldOf(file, fmt.Errorf("vector %d has %d elements, but the model has %d", k, len(v), r.station.Plan.Arena))
		}
	}
	if s.Residual {
		if _, at, bad := optim.Unfit(nil, vectors[:1], false); bad {
			return q.fieldOf(file, fmt.Errorf("element %d of its residual is %v; training cannot resume with it", at, vectors[0][at]))
		}
		vectors = vectors[1:]
	}
	if k, at, bad := optim.Unfit(nil, vectors[min(len(vectors), update.Rule.State()):], false); bad {
		return q.fieldOf(file, fmt.Errorf("element %d of vector %d of its own parameters is %v; training cannot resume "+
			"with it", at, k+1, vectors[update.Rule.State()+k][at]))
	}
	vectors = vectors[:min(len(vectors), update.Rule.State())]
	if k, at, bad := optim.Unfit(update.Rule, vectors, false); bad {
		return q.fieldOf(file, fmt.Errorf("element %d of %s is %v; training cannot resume with it", at, vectorName(k+1), vectors[k][at]))
	}
	return nil
}

// checkVectors compares the vectors of a worker with those that this configuration needs.
func (r *Search) checkVectors(s *train.State, vectors int) error {
	n, residual, err := train.Vectors(r.station.Config, r.station.Plan)
	switch {
	case err != nil:
		return err
	case s.Residual != residual:
		return fmt.Errorf("residual is %v, but with payload.push %q it is %v: one of the two was changed", s.Residual,
			r.station.Config.Payload.Push, residual)
	case vectors != n:
		return fmt.Errorf("it has %d vectors, and a worker of its configuration keeps %d: one of the two was changed", vectors, n)
	}
	return nil
}

// checkDisjoint returns an error if two shards of the checkpoint overlap: their common elements would count twice, and others would be
// missing.
func (q *Origin) checkDisjoint(shards []serve.ShardState) error {
	slices.SortFunc(shards, func(a, b serve.ShardState) int { return cmp.Compare(a.Lo, b.Lo) })
	for i := 1; i < len(shards); i++ {
		if a, b := &shards[i-1], &shards[i]; b.Lo < a.Hi {
			return fmt.Errorf("checkpoint %s: shards %q and %q both have the elements %d to %d", q.Dir, a.Name, b.Name, b.Lo, min(a.Hi, b.Hi)-1)
		}
	}
	return nil
}

// readFile reads a file of the checkpoint. It fails if the file is larger than cluster.memory_max.
func (r *Search) readFile(q *Origin, e checkpoint.Entry, state any) ([][]float32, error) {
	if e.Bytes > r.station.Config.Cluster.MemoryMax {
		return nil, q.fieldOf(e.Name, fmt.Errorf("it has %d bytes, which is more than cluster.memory_max (%d); raise "+
			"cluster.memory_max if the hosts have the memory", e.Bytes, r.station.Config.Cluster.MemoryMax))
	}
	return checkpoint.ReadFile(q.Dir, e, state)
}
