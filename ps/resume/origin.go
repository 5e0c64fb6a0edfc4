package resume

import (
	"cmp"
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
	"fluentps/ps/serve"
	"fluentps/ps/shard"
	"fluentps/ps/train"
)

// Reading a checkpoint. Each server reads its own file. Where the parameters are cut otherwise now, or over other servers, it
// reads all, one after the other, and takes what lies in its shards: the arena is the same however it is cut. Where there
// are other workers, all go on with the furthest iteration, and what the earlier ones kept goes to those there are.

// readFiles reads what this rank needs of a checkpoint. problem, the same on all ranks, says which files are damaged. With bar this
// rank's host has none that may be read.
func (r *Search) readFiles(dir string, m *checkpoint.Manifest, bar error) (from *Origin, problem string, err error) {
	mine := ""
	failed := bar
	if bar == nil {
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
		return nil, fmt.Errorf("checkpoint %s: its parameters, or their groups by rules of sync, are others than now; go on with the model and the rules of then", dir)
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
		if err := q.forWorkers(int64(n)); err != nil {
			return nil, err
		}
	}
	return q, nil
}

// ArenaOf tells the order of parameters in the arena, which neither servers nor slicing change, from others.
func ArenaOf(p *shard.Plan) string {
	h := sha256.New()
	for k, q := range p.Params {
		fmt.Fprintln(h, q.Name, q.N, q.Stat, p.At[k])
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// readShards reads what the shards of a server were.
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
		if r.sameShards(q, ids) {
			return first(r.wholeShards(q), r.checkMemory(q, e.Name, server))
		}
	}
	return r.cutShards(q, ids)
}

// sameShards says whether a server's file has just its shards.
func (r *Search) sameShards(q *Origin, ids []int32) bool {
	return slices.EqualFunc(q.Server.Shards, ids, func(s serve.ShardState, id int32) bool {
		sh := &r.station.Plan.Shards[id]
		return s.ID == id && s.Lo == sh.Lo && s.Hi == sh.Hi
	})
}

// wholeShards holds the vectors of a file to its shards.
func (r *Search) wholeShards(q *Origin) error {
	left := q.ServerVectors
	for i := range q.Server.Shards {
		s := &q.Server.Shards[i]
		if err := q.holds(s, left, layout.Vectors(r.station.Config, &r.station.Plan.Shards[s.ID])); err != nil {
			return err
		}
		left = left[s.Vectors:]
	}
	return nil
}

// holds says what is wrong with the vectors of a shard, the first of these.
func (q *Origin) holds(s *serve.ShardState, vectors [][]float32, want int) error {
	if s.Vectors != want {
		return fmt.Errorf("checkpoint %s: shard %s has %d vectors, and the optimizer needs %d now; go on with the optimizer of then", q.Dir, s.Name, s.Vectors, want)
	}
	if len(vectors) < want || slices.ContainsFunc(vectors[:want], func(v []float32) bool { return len(v) != s.Hi-s.Lo }) {
		return fmt.Errorf("checkpoint %s: shard %s has %d elements, and its vectors have others", q.Dir, s.Name, s.Hi-s.Lo)
	}
	return nil
}

// cutShards makes the shards of a server from those of all servers of then.
func (r *Search) cutShards(q *Origin, ids []int32) error {
	q.Server, q.ServerVectors = serve.State{}, nil
	missing := 0
	var then []serve.ShardState // all shards that there were
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
			continue // it had no shards; what is missing is found in the end
		}
		var old serve.State
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
		return fmt.Errorf("checkpoint %s: %d elements of this server's shards are in no file", q.Dir, missing)
	}
	return nil
}

// takeFrom copies what of a shard of then lies in this server's of now, and says how many elements that are.
func (r *Search) takeFrom(q *Origin, from *serve.ShardState, vectors [][]float32) (elements int, err error) {
	into := q.ServerVectors
	for i := range q.Server.Shards {
		to := &q.Server.Shards[i]
		lo, hi := max(from.Lo, to.Lo), min(from.Hi, to.Hi)
		if lo < hi {
			if err := q.holds(from, vectors, to.Vectors); err != nil {
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

// readWorker reads what a worker kept. Among other workers than then, worker w of n has the sum of the residuals of workers
// w, w+n, w+2n, ... of then, so that none is lost, and a copy of the optimizer of one of them.
func (r *Search) readWorker(q *Origin, w int) error {
	then, now := q.Manifest.Workers, len(r.station.Roles.Workers)
	var residual []float32
	var own [][]float32
	var state train.State
	for j := range then {
		mine, copied := j%now == w, j == w%then
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
	q.Worker = state
	if state.Residual {
		q.WorkerVectors = append(q.WorkerVectors, residual)
	}
	q.WorkerVectors = append(q.WorkerVectors, own...)
	return nil
}

// forWorkers makes the run go on with n workers: what is counted in pushes becomes what as many iterations of n are.
func (q *Origin) forWorkers(n int64) error {
	then := int64(q.Manifest.Workers)
	q.Starts = slices.Repeat([]int64{slices.Max(q.Starts)}, int(n))
	var bad error
	scale := func(at, field string, pushes *int64) {
		if k := *pushes / then; k >= checkpoint.CountMax/n { // before it is multiplied: then it may be any number
			bad = cmp.Or(bad, q.fieldOf(at, fmt.Errorf("%s is %d, of %d workers; of %d, as many iterations are more than %d pushes: no run goes on from that", field, *pushes, then, n, int64(checkpoint.CountMax))))
			return
		}
		*pushes = *pushes/then*n + *pushes%then*n/then
	}
	scale("manifest.json", "state.accepted", &q.State.Accepted)
	for i := range q.Server.Shards {
		sh := &q.Server.Shards[i]
		sh.Node.Memory = nil // it is of the workers of then
		scale(fmt.Sprintf("shard %q", sh.Name), "node.rated", &sh.Node.Rated)
		scale(fmt.Sprintf("shard %q", sh.Name), "node.accepted", &sh.Node.Accepted)
	}
	return bad
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
