package resume

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"fluentps/internal/core/shard"
	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/plan/layout"
	"fluentps/internal/policy/optim"
	"fluentps/internal/rank/link"
	"fluentps/internal/rank/serve"
	"fluentps/internal/rank/train"
)

// Reading a checkpoint. Each server reads its own file. If the shards have changed since, it reads the files of all servers, one after the
// other, and copies the elements that lie in its shards: slicing does not change the arena. If the number of workers has changed, all
// workers start at the furthest iteration, and they share the residuals and optimizer states of the earlier workers.

// readFiles reads the part of a checkpoint that this rank needs. problem is the same on all ranks, and says which files are damaged.
// blocked is an error for which this rank must not read: it counts as the problem of this rank.
func (r *Search) readFiles(dir string, m *checkpoint.Manifest, blocked error) (from *Origin, problem string, err error) {
	mine := ""
	failed := blocked
	if blocked == nil {
		from, failed = r.readOrigin(dir, m)
	}
	if failed != nil {
		mine = failed.Error()
	}
	all, err := link.Gather(r.station.Net, mine)
	if err != nil {
		return nil, "", err
	}
	if r.station.Me == 0 {
		problem = r.station.Net.Verdict(all)
	}
	if err := link.Spread(r.station.Net, &problem); err != nil {
		return nil, "", err
	}
	if problem != "" {
		return nil, problem, nil
	}
	return from, "", nil
}

func (r *Search) readOrigin(dir string, m *checkpoint.Manifest) (*Origin, error) {
	q := &Origin{Dir: dir, Manifest: m, Starts: slices.Clone(m.Starts)}
	if err := checkpoint.Decode(m.State, &q.State); err != nil {
		return nil, fmt.Errorf("checkpoint %s: the state of rank 0: %w", dir, err)
	}
	if q.State.Arena != ArenaOf(r.station.Plan) {
		return nil, fmt.Errorf("checkpoint %s: its parameters, or their groups by rules of sync, differ from those of "+
			"this run; resume with the model and the rules of the checkpoint", dir)
	}
	if err := r.checkLead(q); err != nil {
		return nil, err
	}
	if s := r.station.Roles.Server(r.station.Me); s >= 0 {
		if err := r.readShards(q, s); err != nil {
			return nil, err
		}
	}
	if w := r.station.Roles.Worker(r.station.Me); w >= 0 {
		if err := r.readWorker(q, w); err != nil {
			return nil, err
		}
	}
	if n := len(r.station.Roles.Workers); n != m.Workers {
		if err := q.rescale(int64(n)); err != nil {
			return nil, err
		}
	} else if c := r.station.Config; c.DealsBatches() && !q.State.Work.Continues(c.Work, r.workEnv()) {
		// a first plan begins, at the same iteration for all
		q.Starts = slices.Repeat([]int64{slices.Max(q.Starts)}, n)
	}
	return q, nil
}

// ArenaOf returns a hash of the order of parameters in the arena. Neither the number of servers nor slicing changes that order.
func ArenaOf(p *shard.Plan) string {
	h := sha256.New()
	for k, q := range p.Params {
		fmt.Fprintln(h, q.Name, q.N, q.Stat, p.At[k])
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// readShards reads the parameters, the optimizer state and the counters of the shards of a server.
func (r *Search) readShards(q *Origin, server int) error {
	ids := r.station.Plan.OfServer(int32(server))
	if len(ids) == 0 {
		return nil
	}
	if e, err := q.Manifest.File(checkpoint.ServerFile(server)); err == nil {
		if q.ServerVectors, err = r.readFile(q, e, &q.Server); err != nil {
			return err
		}
		if err := r.checkServer(q, e.Name, &q.Server, q.ServerVectors); err != nil {
			return err
		}
		r.settleChanges(q.Manifest, &q.Server)
		if r.sameShards(q, ids) {
			return first(r.checkWholeShards(q), r.checkChanges(q, e.Name), r.checkMemory(q, e.Name, server))
		}
	}
	return r.recutShards(q, ids)
}

// sameShards reports whether the server's file has exactly the shards that the server has now.
func (r *Search) sameShards(q *Origin, ids []int32) bool {
	return slices.EqualFunc(q.Server.Shards, ids, func(s serve.ShardState, id int32) bool {
		sh := &r.station.Plan.Shards[id]
		return s.ID == id && s.Lo == sh.Lo && s.Hi == sh.Hi
	})
}

// checkWholeShards verifies the vectors of each shard in a file that has the server's shards.
func (r *Search) checkWholeShards(q *Origin) error {
	left := q.ServerVectors
	for i := range q.Server.Shards {
		s := &q.Server.Shards[i]
		if err := q.checkShardVectors(s, left, layout.Vectors(r.station.Config, &r.station.Plan.Shards[s.ID])); err != nil {
			return err
		}
		left = left[s.Vectors:]
	}
	return nil
}

// checkShardVectors verifies the vectors of a shard, which come first in vectors.
func (q *Origin) checkShardVectors(s *serve.ShardState, vectors [][]float32, want int) error {
	if s.Vectors != want {
		return fmt.Errorf("checkpoint %s: shard %s has %d vectors, but the optimizer of the servers needs %d now; resume "+
			"with the optimizer and the local.outer of the checkpoint", q.Dir, s.Name, s.Vectors, want)
	}
	if len(vectors) < want || slices.ContainsFunc(vectors[:want], func(v []float32) bool { return len(v) != s.Hi-s.Lo }) {
		return fmt.Errorf("checkpoint %s: shard %s has %d elements, but its vectors have another number", q.Dir, s.Name, s.Hi-s.Lo)
	}
	return nil
}

// recutShards makes the shards of a server from the shards of all servers of the checkpoint.
func (r *Search) recutShards(q *Origin, ids []int32) error {
	q.Server, q.ServerVectors = serve.State{}, nil
	missing := 0
	var saved []serve.ShardState // all shards of the checkpoint
	for _, id := range ids {
		sh := &r.station.Plan.Shards[id]
		n := layout.Vectors(r.station.Config, sh)
		q.Server.Shards = append(q.Server.Shards, serve.ShardState{ID: id, Name: sh.Name, Lo: sh.Lo, Hi: sh.Hi, Vectors: n})
		for range n {
			q.ServerVectors = append(q.ServerVectors, make([]float32, sh.Hi-sh.Lo))
		}
		missing += sh.Hi - sh.Lo
	}
	for server := range q.Manifest.Servers {
		e, err := q.Manifest.File(checkpoint.ServerFile(server))
		if err != nil {
			continue // the server had no shards; the count at the end finds missing elements
		}
		var old serve.State
		vectors, err := r.readFile(q, e, &old)
		if err != nil {
			return err
		}
		if err := r.checkServer(q, e.Name, &old, vectors); err != nil {
			return err
		}
		r.settleChanges(q.Manifest, &old)
		for i := range old.Shards {
			from := &old.Shards[i]
			saved = append(saved, *from)
			n, err := r.copyFrom(q, from, vectors)
			if err != nil {
				return err
			}
			missing -= n
			vectors = vectors[from.Vectors:]
		}
	}
	if err := q.checkDisjoint(saved); err != nil {
		return err
	}
	if missing != 0 {
		return fmt.Errorf("checkpoint %s: %d elements of this server's shards are in no file", q.Dir, missing)
	}
	return nil
}

// copyFrom copies the elements of a checkpoint's shard that lie in shards of this server, and returns how many they are.
func (r *Search) copyFrom(q *Origin, from *serve.ShardState, vectors [][]float32) (elements int, err error) {
	into := q.ServerVectors
	for i := range q.Server.Shards {
		to := &q.Server.Shards[i]
		lo, hi := max(from.Lo, to.Lo), min(from.Hi, to.Hi)
		if lo < hi {
			if err := q.checkShardVectors(from, vectors, to.Vectors); err != nil {
				return 0, err
			}
			for k := range to.Vectors {
				copy(into[k][lo-to.Lo:hi-to.Lo], vectors[k][lo-from.Lo:hi-from.Lo])
			}
			to.Join(from)
			if to.ID == 0 { // the lead shard counts for the run
				to.Node.Version, to.Node.Samples = q.State.Version, q.Manifest.Samples
			}
			elements += hi - lo
		}
		into = into[to.Vectors:]
	}
	return elements, nil
}

// readWorker reads the state of a worker. If the number of workers has changed to n, worker w has the sum of the residuals of the
// checkpoint's workers w, w+n, w+2n, ..., so that no residual is lost, and a copy of the optimizer state of one of the workers.
func (r *Search) readWorker(q *Origin, w int) error {
	saved, now := q.Manifest.Workers, len(r.station.Roles.Workers)
	var residual []float32
	var own [][]float32
	var state train.State
	for j := range saved {
		mine, copied := j%now == w, j == w%saved
		if !mine && !copied {
			continue
		}
		e, err := q.Manifest.File(checkpoint.WorkerFile(j))
		if err != nil {
			return fmt.Errorf("checkpoint %s: %w", q.Dir, err)
		}
		var s train.State
		vectors, err := r.readFile(q, e, &s)
		if err != nil {
			return err
		}
		if err := r.checkWorker(q, j, &s, vectors); err != nil {
			return err
		}
		if s.Residual {
			switch {
			case mine && residual != nil:
				optim.AddDelta(residual, vectors[0], 1)
			case mine:
				residual = vectors[0]
			}
			if residual == nil {
				residual = make([]float32, len(vectors[0]))
			}
			vectors = vectors[1:]
		}
		if copied {
			state, own = s, vectors
		}
	}
	if state.Own != nil && saved != now {
		state.Own.Forget()
	}
	q.Worker = state
	if state.Residual {
		q.WorkerVectors = append(q.WorkerVectors, residual)
	}
	q.WorkerVectors = append(q.WorkerVectors, own...)
	return nil
}

// rescale converts the counters to n workers: a count of pushes becomes that of the same number of iterations of n workers.
func (q *Origin) rescale(n int64) error {
	saved := int64(q.Manifest.Workers)
	q.Starts = slices.Repeat([]int64{slices.Max(q.Starts)}, int(n))
	var bad error
	scale := func(at, field string, pushes *int64) {
		if k := *pushes / saved; k >= checkpoint.CountMax/n { // before the multiplication, which would overflow
			bad = cmp.Or(bad, q.fieldOf(at, fmt.Errorf("%s is %d with %d workers; with %d workers it would be more than %d "+
				"pushes, and no run can resume from that", field, *pushes, saved, n, int64(checkpoint.CountMax))))
			return
		}
		*pushes = *pushes/saved*n + *pushes%saved*n/saved
	}
	scale("manifest.json", "state.accepted", &q.State.Accepted)
	for i := range q.Server.Shards {
		sh := &q.Server.Shards[i]
		sh.Node.Memory = nil // it is about the checkpoint's workers
		scale(fmt.Sprintf("shard %q", sh.Name), "node.rated", &sh.Node.Rated)
		scale(fmt.Sprintf("shard %q", sh.Name), "node.accepted", &sh.Node.Accepted)
	}
	return bad
}

// noCheckpoint returns the error of a --resume that names no run with a checkpoint. The most frequent mistake is a path inside a run.
func noCheckpoint(dir string) error {
	for in, last := filepath.Dir(filepath.Clean(dir)), ""; in != last; in, last = filepath.Dir(in), in {
		if found, err := checkpoint.List(filepath.Join(in, checkpoint.Folder)); err == nil && len(found) > 0 {
			return fmt.Errorf("--resume: %s lies in the folder of a run, %s; name that one, whose newest checkpoint is "+
				"taken, or one of %s", dir, in, filepath.Join(in, checkpoint.Folder))
		}
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return fmt.Errorf("--resume: %s is a file; name the folder of a run that has a checkpoint, or leave --resume out", dir)
	}
	return fmt.Errorf("--resume: there is no checkpoint in %s; name the folder of a run that has one, or leave "+
		"--resume out", filepath.Join(dir, checkpoint.Folder))
}
