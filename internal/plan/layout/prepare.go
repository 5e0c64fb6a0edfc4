package layout

import (
	"errors"
	"fmt"
	"strings"

	"fluentps/internal/configs"
	"fluentps/internal/core/shard"
	"fluentps/internal/policy/optim"
	"fluentps/internal/show/metrics"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
)

// Prepared is what every rank knows before it allocates memory for training.
type Prepared struct {
	Architecture *workload.Architecture
	Plan         *shard.Plan
	Ledger       *Ledger
}

// Prepare cuts the shards for ranks on these hosts, which have this link. It fails if these ranks cannot train on the set. No run
// begins with a configuration that Prepare refuses, so plan calls it too.
func Prepare(c *configs.Config, roles shard.Roles, hosts []string, set *dataset.Set, link Link) (q Prepared, err error) {
	computes := roles.Computes()
	if err := Check(c, set, computes); err != nil {
		return q, err
	}
	if err := c.CheckAwaits(len(roles.Workers)); err != nil { // with a hierarchy fewer than compute
		return q, err
	}
	if q.Architecture, err = Architecture(c, set); err != nil {
		return q, err
	}
	if q.Plan, err = Plan(c, q.Architecture.Params(), len(roles.Servers), link); err != nil {
		return q, err
	}
	if len(q.Plan.Pieces) > PiecesMax {
		return q, fmt.Errorf("shards.max_bytes: %d cuts the model into %d pieces; the limit is %d", c.Shards.MaxBytes,
			len(q.Plan.Pieces), PiecesMax)
	}
	q.Ledger, err = NewLedger(NewRoutes(c, q.Plan, roles, nodesOf(hosts), Thresholds{}), hosts, set)
	return q, err
}

// checkPieces refuses a model with more pieces than a plan may have, or than memory allows, before the pieces are listed.
func checkPieces(c *configs.Config, params []workload.Param) error {
	elements := int64(0)
	for _, p := range params {
		elements += int64(p.N())
	}
	piecesMin := elements / max(1, c.Shards.MaxBytes/shard.ElemBytes)
	if piecesMin > PiecesMax {
		return fmt.Errorf("shards.max_bytes: %d cuts the %d parameters of the model into %d pieces or more; the limit is "+
			"%d: raise it, or take a smaller model", c.Shards.MaxBytes, elements, piecesMin, PiecesMax)
	}
	const lists = 2 // a piece is in the list of the plan and in that of its shard
	if bytes := piecesMin * lists * shard.PieceSize; bytes > c.Cluster.MemoryMax {
		return fmt.Errorf("shards.max_bytes: %d cuts the %d parameters of the model into %d pieces or more, whose list "+
			"alone takes %s; cluster.memory_max is %s: raise shards.max_bytes",
			c.Shards.MaxBytes, elements, piecesMin, metrics.Size(bytes), metrics.Size(c.Cluster.MemoryMax))
	}
	return nil
}

// Check finds errors that depend on the data and the ranks. It returns nil if this many workers, or ranks that compute for
// them, can train on the set.
func Check(c *configs.Config, set *dataset.Set, workers int) error {
	if err := c.CheckWork(workers, set.Train.Rows()); err != nil {
		return err
	}
	if err := c.CheckFaults(workers); err != nil {
		return err
	}
	if err := c.CheckAwaits(workers); err != nil {
		return err
	}
	if rows := set.Train.Rows(); rows < workers {
		return fmt.Errorf("the training set has %d rows for %d workers; every worker needs at least 1", rows, workers)
	}
	if c.Data.Skew != (dataset.Skew{}) {
		if _, err := set.Shares(c.Data.Skew, workers, c.Seed); err != nil {
			return err
		}
	}
	if err := c.Data.Augment.Check(set.Image); err != nil {
		return err
	}
	for i := range c.Sync {
		if _, err := c.PhasesOf(i, workers, set.Train.Rows()); err != nil {
			return err
		}
	}
	if c.Train.Stop.Target > 0 && set.Test.Rows() == 0 {
		return errors.New("train.stop.target needs test data, and the data set has none; name data.test")
	}
	return nil
}

// Architecture is that of the configured model for the rows of a set.
func Architecture(c *configs.Config, set *dataset.Set) (*workload.Architecture, error) {
	return workload.NewArchitecture(c.ModelSpec(), set.Samples())
}

// Roles returns which ranks serve, which work, and which compute for a worker. With baseline: allreduce no rank serves.
func Roles(c *configs.Config, hosts []string) (shard.Roles, error) {
	if Reduces(c) {
		return shard.AllWork(len(hosts)), nil
	}
	roles, err := shard.Assign(hosts, c.Cluster.Servers, c.Cluster.Placement)
	if err == nil && Teams(c) {
		roles = roles.ByNode(hosts)
	}
	return roles, err
}

// Reduces says whether the ranks add their gradients up with a collective, without servers.
func Reduces(c *configs.Config) bool { return c.Baseline == configs.BaselineAllreduce }

// Teams says whether the ranks of a host compute as one worker.
func Teams(c *configs.Config) bool { return c.Cluster.Hierarchy == configs.HierarchyNode }

// matrixRows are the rows of a matrix, or of the filters of a convolution, each of which is a row; 0: the tensor is neither.
func matrixRows(shape []int) int {
	if len(shape) == 2 || len(shape) == 4 {
		return shape[0]
	}
	return 0
}

// CutMatrix says that a matrix is cut whose step on a server needs all of it.
type CutMatrix struct{ Why string }

func (e *CutMatrix) Error() string { return "train.optimizer.name: " + e.Why }

// checkMatrices fails if a matrix is cut whose step on a server needs all of it.
func checkMatrices(c *configs.Config, params []workload.Param, p *shard.Plan) error {
	for i := range p.Shards {
		sh := &p.Shards[i]
		for _, g := range sh.Segs {
			q := &p.Params[g.Param]
			if g.Hi-g.Lo == q.N || !c.StepsWhole(sh, q) {
				continue
			}
			out := "set shards.slice: layer"
			if c.Cluster.Placement == "mixed" {
				out = "choose another cluster.placement, and shards.slice: layer"
			}
			var in []string
			for k := range p.Shards {
				if s := &p.Shards[k]; s.Lo < p.At[g.Param]+q.N && s.Hi > p.At[g.Param] {
					in = append(in, fmt.Sprint(k))
				}
			}
			return &CutMatrix{fmt.Sprintf("muon takes steps of whole matrices, but %s (%s) is cut over the shards %s (shards.slice: %s); "+
				"%s, or name it in train.optimizer.others.match, and adamw trains it", q.Name, shapeText(params[g.Param].Shape),
				strings.Join(in, ", "), c.Shards.Slice, out)}
		}
	}
	return nil
}

func shapeText(shape []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(shape), " ", " x "), "[]")
}

// matrixBytes is the memory that a server takes for steps of whole matrices.
func matrixBytes(c *configs.Config, p *shard.Plan, server int32) int64 {
	return matrixBytesOf(p, func(sh *shard.Shard, q *shard.Param) bool { return sh.Server == server && c.StepsWhole(sh, q) })
}

// ownMatrixBytes is the same of a worker that takes steps itself.
func ownMatrixBytes(c *configs.Config, p *shard.Plan) int64 {
	return matrixBytesOf(p, func(sh *shard.Shard, q *shard.Param) bool {
		return (Reduces(c) || !c.StepsWhole(sh, q)) && !sh.Stat && c.TakesWhole(q)
	})
}

func matrixBytesOf(p *shard.Plan, steps func(sh *shard.Shard, q *shard.Param) bool) (bytes int64) {
	for i := range p.Shards {
		for _, g := range p.Shards[i].Segs {
			if q := &p.Params[g.Param]; steps(&p.Shards[i], q) {
				bytes = max(bytes, optim.MatrixBytes(q.Rows, q.N/q.Rows))
			}
		}
	}
	return bytes
}
