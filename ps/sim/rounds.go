package sim

import (
	"errors"
	"fmt"

	"fluentps/configs"
	"fluentps/ps/core"
	"fluentps/ps/shard"
)

// Baseline pslite in virtual time: the nodes in rounds, and the scheduler at rank 0, as the runtime drives them. Where
// messages have lists of keys, pushes and replies are so much larger, and a pull has bytes, too: its server hears of it when
// the last of its keys has landed.

// baselineOf names the baseline in a summary; "" if there is none.
func baselineOf(c *configs.Config) string {
	if c.Baseline == configs.BaselineNone {
		return ""
	}
	return c.Baseline
}

// refuseBaseline says what no baseline is modelled with.
func refuseBaseline(o *Options) error {
	switch c := o.Config; {
	case c.Baseline == configs.BaselineNone:
	case len(o.Losses)+len(o.Joins) > 0:
		return fmt.Errorf("baseline %s waits for all workers, and without one of them for ever: losses and joins are not modelled with it; leave them out, or set baseline: none", c.Baseline)
	case c.Baseline == configs.BaselineAllreduce && o.Gradients != nil:
		return errors.New("baseline allreduce is modelled without gradients; leave simulate.gradients out, or set baseline: none, whose bsp trains as it does within the tolerance of floats")
	}
	return nil
}

// roundsText says in words what is modelled.
func roundsText(c *configs.Config) string {
	text := fmt.Sprintf("rounds   baseline pslite (keys: %s): pushes, each acknowledged, a barrier at rank 0, then pulls", c.BaselineKeys)
	switch c.BaselineKeys {
	case shard.KeysTensor:
		return text
	case shard.KeysList:
		return text + "; 12 bytes a tensor beside the values, 8 in a pull; to look keys up costs nothing"
	}
	return text + "; 12 bytes a parameter, 8 in a pull; to look keys up costs nothing"
}

// rank0 is the node that barriers are told: no server, though it shares a host with the first one.
func (s *simulation) rank0() int32 { return int32(len(s.workers) + len(s.servers)) }

// atBarrier gives the scheduler a message, and sends what it answers.
func (s *simulation) atBarrier(m message) {
	in := core.Input{Kind: core.Arrived, Msg: m.head}
	s.out = s.scheduler.Step(in, s.out[:0])
	s.count(s.rank0(), &in, s.scheduler)
	for _, e := range s.out {
		w := &s.workers[e.To]
		s.control(e.To, message{e.Msg, w.life}, w.host == 0)
	}
}

// ask sends a pull with its keys.
func (s *simulation) ask(me int32, e *core.Effect) {
	w := &s.workers[me]
	s.move(transfer{asks: true, life: w.life, worker: me, server: e.To, shard: e.Msg.Shard, piece: s.messages.put(message{e.Msg, w.life}), bytes: s.plan.Shards[e.Msg.Shard].PullBytes()})
}
