package sim

import (
	"errors"
	"fmt"

	"fluentps/internal/configs"
	"fluentps/internal/core"
	"fluentps/internal/core/shard"
)

// Baseline pslite in virtual time: the nodes work in rounds, with the scheduler at rank 0, as under the runtime. Lists of keys make
// pushes and replies larger, and give a pull a size, too: the server gets the pull when the last of its keys has landed.

// baselineOf names the baseline in a summary; "" if there is none.
func baselineOf(c *configs.Config) string {
	if c.Baseline == configs.BaselineNone {
		return ""
	}
	return c.Baseline
}

// refuseBaseline fails for options that are not modelled with the baseline.
func refuseBaseline(o *Options) error {
	switch c := o.Config; {
	case c.Baseline == configs.BaselineNone:
	case len(o.Losses)+len(o.Joins) > 0:
		return fmt.Errorf("baseline %s waits for all workers, so it would never end after a loss: losses and joins are "+
			"not modelled with it; leave them out, or set baseline: none", c.Baseline)
	case c.Baseline == configs.BaselineAllreduce && o.Values != nil:
		return errors.New("baseline allreduce is modelled without gradients; leave out simulate.gradients, or set " +
			"baseline: none, whose bsp trains like allreduce within the tolerance of floats")
	}
	return nil
}

// roundsText describes the model of baseline pslite.
func roundsText(c *configs.Config) string {
	text := fmt.Sprintf("rounds   baseline pslite (keys: %s): pushes, each acknowledged, a barrier at rank 0, then pulls", c.BaselineKeys)
	switch c.BaselineKeys {
	case shard.KeysTensor:
		return text
	case shard.KeysList:
		return text + "; 12 bytes a tensor besides the values, 8 in a pull; looking up keys costs nothing"
	}
	return text + "; 12 bytes a parameter, 8 in a pull; looking up keys costs nothing"
}

// rank0 is the node of the scheduler, which receives the messages of barriers. It is not a server, but shares the host of the first.
func (s *Simulation) rank0() int32 { return int32(len(s.workers) + len(s.servers)) }

// atBarrier delivers a message to the scheduler, and sends its answers.
func (s *Simulation) atBarrier(m message) {
	in := core.Input{Kind: core.Arrived, Msg: m.head}
	s.out = s.policies.scheduler.Step(in, s.out[:0])
	s.count(s.rank0(), &in, s.policies.scheduler)
	for _, e := range s.out {
		w := &s.workers[e.To]
		s.control(e.To, message{e.Msg, w.life}, w.host == 0)
	}
}

// ask sends a pull that has a list of keys.
func (s *Simulation) ask(me int32, e *core.Effect) {
	w := &s.workers[me]
	s.move(Transfer{Asks: true, Life: w.life, Worker: me, Server: e.To, Shard: e.Msg.Shard,
		Piece: s.traffic.messages.put(message{e.Msg, w.life}), Bytes: s.plan.Shards[e.Msg.Shard].PullBytes()})
}
