package runtime

import (
	"fmt"

	"fluentps/configs"
	"fluentps/ps/shard"
	"fluentps/ps/workload"
)

// Prepared is what every rank knows before it takes memory for training.
type Prepared struct {
	Model     workload.Model   // unbound: the architecture
	Params    []workload.Param // in model order, as in the plan
	Plan      *shard.Plan
	Snapshots int64 // of a shard kept at once
}

// Prepare cuts the shards, or says why these ranks cannot train on the set: what it refuses no run begins with, so whoever
// plans a run asks it too.
func Prepare(c *configs.Config, roles shard.Roles, set *workload.Set) (q Prepared, err error) {
	computes := len(roles.Computing())
	if err := Check(c, set, computes); err != nil {
		return q, err
	}
	if q.Model, err = modelOf(c, set); err != nil {
		return q, err
	}
	q.Params = workload.Params(q.Model)
	if q.Plan, err = Plan(c, q.Params, len(roles.Servers)); err != nil {
		return q, err
	}
	if len(q.Plan.Pieces) > piecesMax {
		return q, fmt.Errorf("shards.max_bytes: %d cuts the model into %d pieces; the limit is %d", c.Shards.MaxBytes, len(q.Plan.Pieces), piecesMax)
	}
	q.Snapshots, err = Limits(c, q.Plan, roles, ScratchOf(c, set.Samples(), computes))
	return q, err
}
