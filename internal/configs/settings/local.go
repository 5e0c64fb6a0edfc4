package settings

import (
	"fluentps/internal/core/shard"
	"fluentps/internal/policy/local"
	"fluentps/internal/policy/optim"
)

// LocalEnv is the run for the policy of a worker.
func (c *Config) LocalEnv(workers int) (local.Env, error) {
	inner, err := c.Update()
	return local.Env{Workers: workers, Rate: inner.Rate, WarmUp: c.Train.Schedule.WarmUp}, err
}

// InnerRuns returns the runs of a piece in the arena along which a worker takes steps of its own; none for statistics.
func (c *Config) InnerRuns(p *shard.Plan, piece *shard.Piece) []optim.Run {
	if p.Shards[piece.Shard].Stat {
		return nil
	}
	return c.trainedRuns(p, piece)
}
