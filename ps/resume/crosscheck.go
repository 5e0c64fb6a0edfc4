package resume

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"fluentps/configs"
	"fluentps/ps/build"
	"fluentps/ps/checkpoint"
	"fluentps/ps/core"
	"fluentps/ps/optim"
	"fluentps/ps/serve"
	"fluentps/ps/train"
)

// A checksum says that a file is as it was written, not that this program wrote it. So what a checkpoint says is held to its
// limits, to what it says elsewhere, and to this run, before anything goes on from it.

// fieldOf names the file that the field with this error stands in.
func (q *Origin) fieldOf(file string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("checkpoint %s: %s: %w", q.Dir, file, err)
}

// equal says which of two fields that a run writes alike are not.
func equal(field string, value int64, other string, there int64) error {
	if value == there {
		return nil
	}
	return fmt.Errorf("%s is %d, and %s is %d: one of the two was changed", field, value, other, there)
}

// first is the first error.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// checkLead holds the manifest to itself and to the configuration.
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
			errs = append(errs, equal(fmt.Sprintf("starts[%d]", w), start, "starts[0], with which it is in step,", m.Starts[0]))
		}
	}
	errs = append(errs, checkServers(m), equal("iteration", m.Iteration, fmt.Sprintf("state.accepted for each of %d workers", m.Workers), s.Accepted/int64(m.Workers)))
	return q.fieldOf("manifest.json", first(errs...))
}

// clockMost is the last iteration whose samples can be counted.
func (r *Search) clockMost() int64 {
	return checkpoint.CountMax / int64(max(1, r.station.Config.Train.BatchPerWorker, r.station.Config.Train.BatchGlobal))
}

// otherSchemes says whether the run had other rules of synchronization before the checkpoint than it has now.
func (r *Search) otherSchemes(m *checkpoint.Manifest) bool {
	return r.others(m, "sync", "baseline")
}

// others says whether a key that begins so had another value before the checkpoint than it has now.
func (r *Search) others(m *checkpoint.Manifest, begins ...string) bool {
	return slices.ContainsFunc(configs.Changed(m.Config, r.station.Config), func(key string) bool {
		return slices.ContainsFunc(begins, func(begin string) bool { return strings.HasPrefix(key, begin) })
	})
}

// checkServers holds the number of servers to the configuration of then.
func checkServers(m *checkpoint.Manifest) error {
	n, err := strconv.ParseInt(m.Config["cluster.servers"], 10, 32)
	switch {
	case err != nil: // of a program that wrote it otherwise
		return nil
	case m.Config["cluster.placement"] == "mixed": // where those that compute serve, too
		return checkpoint.Within("servers", int64(m.Servers), n, n+int64(max(m.Computing, m.Workers)))
	}
	return equal("servers", int64(m.Servers), "config.cluster.servers", n)
}

// checkServer holds what the file of a server says of its shards to its limits, to the manifest and to its own vectors.
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
			return q.fieldOf(file, fmt.Errorf("shards[%d] has %d vectors of %d elements, and the file has others", i, sh.Vectors, sh.Hi-sh.Lo))
		}
		if k, at, bad := optim.Unfit(rule, left[:sh.Vectors], true); bad {
			return q.fieldOf(file, fmt.Errorf("shards[%d] (%q): element %d of %s is %v; training cannot go on from that", i, sh.Name, sh.Lo+at, vectorName(k), left[k][at]))
		}
		left = left[sh.Vectors:]
	}
	if len(left) > 0 {
		return q.fieldOf(file, fmt.Errorf("there are %d vectors behind those of its %d shards", len(left), len(s.Shards)))
	}
	return nil
}

// checkMemory makes the schemes of a server with what the file has of them, where they are those of then.
func (r *Search) checkMemory(q *Origin, file string, server int) error {
	m := q.Manifest
	if m.Workers != len(r.station.Roles.Workers) || m.Servers != len(r.station.Roles.Servers) || r.others(m, "sync", "baseline", "cluster", "shards") {
		return nil
	}
	_, err := r.station.Build().Schemes(int32(server), q.Start())
	if err == nil {
		return nil
	}
	for i, sh := range q.Server.Shards { // which of them it is
		alone := &build.Start{Clocks: q.Starts, Shards: map[int32]core.Saved{sh.ID: sh.Node}}
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

// rule is the optimizer of then as far as it can be known: that of now, with which the number of vectors must agree.
func (r *Search) rule() (optim.Rule, error) {
	u, err := r.station.Config.Update()
	return u.Rule, err
}

func (r *Search) checkShard(q *Origin, sh *serve.ShardState, at string) error {
	node := &sh.Node
	var errs []error
	for _, c := range []struct {
		field             string
		value, least, top int64
	}{
		{"id", int64(sh.ID), 0, math.MaxInt32}, {"lo", int64(sh.Lo), 0, int64(r.station.Plan.Arena)}, {"hi", int64(sh.Hi), int64(sh.Lo), int64(r.station.Plan.Arena)},
		{"vectors", int64(sh.Vectors), 1, vectorsMax}, {"steps", sh.Steps, 0, checkpoint.CountMax},
		{"node.version", node.Version, 0, checkpoint.CountMax}, {"node.rated", node.Rated, 0, checkpoint.CountMax},
		{"node.accepted", node.Accepted, 0, checkpoint.CountMax}, {"node.samples", node.Samples, 0, checkpoint.CountMax},
		{"node.closed", node.Closed, 0, slices.Max(q.Manifest.Starts)}, {"node.until", node.Until, 0, checkpoint.CountMax},
	} {
		errs = append(errs, checkpoint.Within(at+c.field, c.value, c.least, c.top))
	}
	if sh.ID == 0 { // the lead shard counts for the run
		errs = append(errs, equal(at+"node.version", node.Version, "state.version of manifest.json", q.State.Version),
			equal(at+"node.samples", node.Samples, "samples of manifest.json", q.Manifest.Samples),
			equal(at+"node.accepted", node.Accepted, "state.accepted of manifest.json", q.State.Accepted))
	}
	errs = append(errs, checkpoint.Within(at+"steps", sh.Steps, 0, node.Version)) // each step makes a version
	return first(errs...)
}

// vectorsMax is more vectors than any optimizer has beside the parameters.
const vectorsMax = 16

// checkWorker holds what the file of a worker says to its limits, to the manifest and to its own vectors.
func (r *Search) checkWorker(q *Origin, worker int, s *train.State, vectors [][]float32) error {
	file := checkpoint.WorkerFile(worker)
	rule, err := r.rule()
	if err != nil {
		return err
	}
	err = first(equal("next", s.Next, fmt.Sprintf("starts[%d] of manifest.json", worker), q.Manifest.Starts[worker]), checkpoint.Within("steps", s.Steps, 0, checkpoint.CountMax))
	if err == nil && s.Residual && len(vectors) == 0 {
		err = errors.New("it has no residual, though it says so")
	}
	if err == nil && !r.others(q.Manifest, "payload", "sync", "baseline", "train.optimizer") { // else it may keep other vectors
		err = r.checkKept(s, len(vectors))
	}
	if err != nil {
		return q.fieldOf(file, err)
	}
	for k, v := range vectors {
		if len(v) != r.station.Plan.Arena {
			return q.fieldOf(file, fmt.Errorf("vector %d has %d elements, and the model has %d", k, len(v), r.station.Plan.Arena))
		}
	}
	if s.Residual {
		if _, at, bad := optim.Unfit(nil, vectors[:1], false); bad {
			return q.fieldOf(file, fmt.Errorf("element %d of its residual is %v; training cannot go on from that", at, vectors[0][at]))
		}
		vectors = vectors[1:]
	}
	if k, at, bad := optim.Unfit(rule, vectors, false); bad {
		return q.fieldOf(file, fmt.Errorf("element %d of %s is %v; training cannot go on from that", at, vectorName(k+1), vectors[k][at]))
	}
	return nil
}

// checkKept holds what a worker kept to what one of this configuration keeps.
func (r *Search) checkKept(s *train.State, vectors int) error {
	n, residual, err := train.Vectors(r.station.Config, r.station.Plan)
	switch {
	case err != nil:
		return err
	case s.Residual != residual:
		return fmt.Errorf("residual is %v, and with payload.push %q it is %v: one of the two was changed", s.Residual, r.station.Config.Payload.Push, residual)
	case vectors != n:
		return fmt.Errorf("it has %d vectors, and a worker of its configuration keeps %d: one of the two was changed", vectors, n)
	}
	return nil
}

// apart says which two shards of then have elements in common, so that one would be read twice, and others not at all.
func (q *Origin) apart(shards []serve.ShardState) error {
	slices.SortFunc(shards, func(a, b serve.ShardState) int { return cmp.Compare(a.Lo, b.Lo) })
	for i := 1; i < len(shards); i++ {
		if a, b := &shards[i-1], &shards[i]; b.Lo < a.Hi {
			return fmt.Errorf("checkpoint %s: shards %q and %q both have the elements %d to %d", q.Dir, a.Name, b.Name, b.Lo, min(a.Hi, b.Hi)-1)
		}
	}
	return nil
}

// readFile reads a file of the checkpoint, which must be one that a run of this memory can have written.
func (r *Search) readFile(q *Origin, e checkpoint.Entry, state any) ([][]float32, error) {
	if e.Bytes > r.station.Config.Cluster.MemoryMax {
		return nil, q.fieldOf(e.Name, fmt.Errorf("it has %d bytes, which is more than cluster.memory_max, %d; raise it if the hosts have the memory", e.Bytes, r.station.Config.Cluster.MemoryMax))
	}
	return checkpoint.ReadFile(q.Dir, e, state)
}
