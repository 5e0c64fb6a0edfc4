package runtime

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"fluentps/ps/checkpoint"
	"fluentps/ps/layout"
	"fluentps/ps/link"
	"fluentps/ps/optim"
	"fluentps/ps/shard"
)

// Reading a checkpoint. Each server reads its own file. Where the parameters are cut otherwise now, or over other servers, it
// reads all, one after the other, and takes what lies in its shards: the arena is the same however it is cut. Where there
// are other workers, all go on with the furthest iteration, and what the earlier ones kept goes to those there are.

// readFiles reads what this rank needs of a checkpoint into r.from. problem, the same on all ranks, says which files are
// damaged. With bar this rank's host has none that may be read.
func (r *rank) readFiles(dir string, m *checkpoint.Manifest, bar error) (problem string, err error) {
	mine := ""
	var from *origin
	failed := bar
	if bar == nil {
		from, failed = r.readOrigin(dir, m)
	}
	if failed != nil {
		mine = failed.Error()
	}
	all, err := link.Gather(r.net, mine)
	if err != nil {
		return "", err
	}
	if r.me == 0 {
		problem = r.net.Verdict(all)
	}
	if err := link.Spread(r.net, &problem); err != nil {
		return "", err
	}
	if problem == "" {
		r.from = from
	}
	return problem, nil
}

func (r *rank) readOrigin(dir string, m *checkpoint.Manifest) (*origin, error) {
	q := &origin{dir: dir, manifest: m, starts: slices.Clone(m.Starts)}
	if err := checkpoint.Decode(m.State, &q.state); err != nil {
		return nil, fmt.Errorf("checkpoint %s: the state of rank 0: %w", dir, err)
	}
	if q.state.Arena != arenaOf(r.plan) {
		return nil, fmt.Errorf("checkpoint %s: its parameters, or their groups by rules of sync, are others than now; go on with the model and the rules of then", dir)
	}
	if err := r.checkLead(q); err != nil {
		return nil, err
	}
	if s := r.roles.Server(r.me); s >= 0 {
		if err := r.readShards(q, s); err != nil {
			return nil, err
		}
	}
	if w := r.roles.Worker(r.me); w >= 0 {
		if err := r.readWorker(q, w); err != nil {
			return nil, err
		}
	}
	if n := len(r.roles.Workers); n != m.Workers {
		q.forWorkers(int64(n))
	}
	return q, nil
}

// arenaOf tells the order of parameters in the arena, which neither servers nor slicing change, from others.
func arenaOf(p *shard.Plan) string {
	h := sha256.New()
	for k, q := range p.Params {
		fmt.Fprintln(h, q.Name, q.N, q.Stat, p.At[k])
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// readShards reads what the shards of a server were.
func (r *rank) readShards(q *origin, server int) error {
	ids := r.plan.OfServer(int32(server))
	if len(ids) == 0 {
		return nil
	}
	if e, err := q.manifest.File(checkpoint.ServerFile(server)); err == nil {
		if q.serverVectors, err = r.readFile(q, e, &q.server); err != nil {
			return err
		}
		if err := r.checkServer(q, e.Name, &q.server, q.serverVectors); err != nil {
			return err
		}
		if r.sameShards(q, ids) {
			return r.wholeShards(q)
		}
	}
	return r.cutShards(q, ids)
}

// sameShards says whether a server's file has just its shards.
func (r *rank) sameShards(q *origin, ids []int32) bool {
	return slices.EqualFunc(q.server.Shards, ids, func(s shardState, id int32) bool {
		sh := &r.plan.Shards[id]
		return s.ID == id && s.Lo == sh.Lo && s.Hi == sh.Hi
	})
}

// wholeShards holds the vectors of a file to its shards.
func (r *rank) wholeShards(q *origin) error {
	left := q.serverVectors
	for i := range q.server.Shards {
		s := &q.server.Shards[i]
		if err := q.holds(s, left, layout.Vectors(r.cfg, &r.plan.Shards[s.ID])); err != nil {
			return err
		}
		left = left[s.Vectors:]
	}
	return nil
}

// holds says what is wrong with the vectors of a shard, the first of these.
func (q *origin) holds(s *shardState, vectors [][]float32, want int) error {
	if s.Vectors != want {
		return fmt.Errorf("checkpoint %s: shard %s has %d vectors, and the optimizer needs %d now; go on with the optimizer of then", q.dir, s.Name, s.Vectors, want)
	}
	if len(vectors) < want || slices.ContainsFunc(vectors[:want], func(v []float32) bool { return len(v) != s.Hi-s.Lo }) {
		return fmt.Errorf("checkpoint %s: shard %s has %d elements, and its vectors have others", q.dir, s.Name, s.Hi-s.Lo)
	}
	return nil
}

// cutShards makes the shards of a server from those of all servers of then.
func (r *rank) cutShards(q *origin, ids []int32) error {
	q.server, q.serverVectors = serverState{}, nil
	missing := 0
	var then []shardState // all shards that there were
	for _, id := range ids {
		sh := &r.plan.Shards[id]
		n := layout.Vectors(r.cfg, sh)
		q.server.Shards = append(q.server.Shards, shardState{ID: id, Name: sh.Name, Lo: sh.Lo, Hi: sh.Hi, Vectors: n})
		for range n {
			q.serverVectors = append(q.serverVectors, make([]float32, sh.Hi-sh.Lo))
		}
		missing += sh.Hi - sh.Lo
	}
	for server := range q.manifest.Servers {
		e, err := q.manifest.File(checkpoint.ServerFile(server))
		if err != nil {
			continue // it had no shards; what is missing is found in the end
		}
		var old serverState
		vectors, err := r.readFile(q, e, &old)
		if err != nil {
			return err
		}
		if err := r.checkServer(q, e.Name, &old, vectors); err != nil {
			return err
		}
		for i := range old.Shards {
			from := &old.Shards[i]
			then = append(then, *from)
			n, err := r.takeFrom(q, from, vectors)
			if err != nil {
				return err
			}
			missing -= n
			vectors = vectors[from.Vectors:]
		}
	}
	if err := q.apart(then); err != nil {
		return err
	}
	if missing != 0 {
		return fmt.Errorf("checkpoint %s: %d elements of this server's shards are in no file", q.dir, missing)
	}
	return nil
}

// takeFrom copies what of a shard of then lies in this server's of now, and says how many elements that are.
func (r *rank) takeFrom(q *origin, from *shardState, vectors [][]float32) (elements int, err error) {
	into := q.serverVectors
	for i := range q.server.Shards {
		to := &q.server.Shards[i]
		lo, hi := max(from.Lo, to.Lo), min(from.Hi, to.Hi)
		if lo < hi {
			if err := q.holds(from, vectors, to.Vectors); err != nil {
				return 0, err
			}
			for k := range to.Vectors {
				copy(into[k][lo-to.Lo:hi-to.Lo], vectors[k][lo-from.Lo:hi-from.Lo])
			}
			to.join(from)
			if to.ID == 0 { // the lead shard counts for the run
				to.Node.Version, to.Node.Samples = q.state.Version, q.manifest.Samples
			}
			elements += hi - lo
		}
		into = into[to.Vectors:]
	}
	return elements, nil
}

// join takes the counters of a shard that another has a part of: the furthest of all parts. Its scheme remembers
// nothing of any.
func (s *shardState) join(from *shardState) {
	a, b := &s.Node, &from.Node
	a.Version, a.Rated, a.Accepted = max(a.Version, b.Version), max(a.Rated, b.Rated), max(a.Accepted, b.Accepted)
	a.Samples, a.Closed, a.Until = max(a.Samples, b.Samples), max(a.Closed, b.Closed), max(a.Until, b.Until)
	s.Steps = max(s.Steps, from.Steps)
}

// readWorker reads what a worker kept. Among other workers than then, worker w of n has the sum of the residuals of workers
// w, w+n, w+2n, ... of then, so that none is lost, and a copy of the optimizer of one of them.
func (r *rank) readWorker(q *origin, w int) error {
	then, now := q.manifest.Workers, len(r.roles.Workers)
	var residual []float32
	var own [][]float32
	var state workerState
	for j := range then {
		mine, copied := j%now == w, j == w%then
		if !mine && !copied {
			continue
		}
		e, err := q.manifest.File(checkpoint.WorkerFile(j))
		if err != nil {
			return fmt.Errorf("checkpoint %s: %w", q.dir, err)
		}
		var s workerState
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
	q.worker = state
	if state.Residual {
		q.workerVectors = append(q.workerVectors, residual)
	}
	q.workerVectors = append(q.workerVectors, own...)
	return nil
}

// forWorkers makes the run go on with n workers: what is counted in pushes becomes what as many iterations of n are.
func (q *origin) forWorkers(n int64) {
	then := int64(q.manifest.Workers)
	q.starts = slices.Repeat([]int64{slices.Max(q.starts)}, int(n))
	scale := func(pushes *int64) { *pushes = *pushes/then*n + *pushes%then*n/then }
	scale(&q.state.Accepted)
	for i := range q.server.Shards {
		node := &q.server.Shards[i].Node
		node.Memory = nil // it is of the workers of then
		scale(&node.Rated)
		scale(&node.Accepted)
	}
}

// noCheckpoint refuses a --resume that names no run with a checkpoint. What is typed most in its place is something in one.
func noCheckpoint(dir string) error {
	for in, last := filepath.Dir(filepath.Clean(dir)), ""; in != last; in, last = filepath.Dir(in), in {
		if found, err := checkpoint.List(filepath.Join(in, checkpoint.Folder)); err == nil && len(found) > 0 {
			return fmt.Errorf("--resume: %s lies in the folder of a run, %s; name that one, whose newest checkpoint is taken, or one of %s", dir, in, filepath.Join(in, checkpoint.Folder))
		}
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return fmt.Errorf("--resume: %s is a file; name the folder of a run that has a checkpoint, or leave --resume out", dir)
	}
	return fmt.Errorf("--resume: there is no checkpoint in %s; name the folder of a run that has one, or leave --resume out", filepath.Join(dir, checkpoint.Folder))
}
