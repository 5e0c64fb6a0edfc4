package configs

import (
	"fmt"

	"fluentps/comm/payload"
	"fluentps/ps/metrics"
	"fluentps/ps/scheme"
)

// densePayloads can carry parameters: a sparse one leaves elements out, and of a version there is no next time.
func densePayloads() []string { return payloadNames(false) }

// sparsePayloads keep a residual.
func sparsePayloads() []string { return payloadNames(true) }

func payloadNames(residual bool) (names []string) {
	for _, e := range payload.All {
		if e.Residual == residual {
			names = append(names, e.Name)
		}
	}
	return names
}

// PushCodec makes the codec of pushes, nil where they travel as they are. Each user has its own.
func (c *Config) PushCodec() payload.Codec { return c.codec(c.Payload.Push) }

// PullCodec makes the codec of replies, nil where they travel as they are.
func (c *Config) PullCodec() payload.Codec { return c.codec(c.Payload.Pull) }

// PlainCodec changes nothing: what statistics travel by, whatever the payload.
func PlainCodec() payload.Codec {
	codec, err := payload.New(payload.All[0].Name, payload.Params{})
	if err != nil {
		panic("configs: the codec that changes nothing: " + err.Error())
	}
	return codec
}

func (c *Config) codec(name string) payload.Codec {
	if asItIs(name) {
		return nil
	}
	codec, err := payload.New(name, c.Payload.Params)
	if err != nil {
		panic(fmt.Sprintf("configs: payload passed the check: %v", err))
	}
	return codec
}

// asItIs says whether a payload needs no codec.
func asItIs(name string) bool { return name == payload.All[0].Name }

// Encoded says whether pushes and replies have a codec.
func (p Payload) Encoded() (push, pull bool) { return !asItIs(p.Push), !asItIs(p.Pull) }

// Residual says whether workers keep what a push leaves out.
func (p Payload) Residual() bool {
	e, _ := payload.Lookup(p.Push)
	return e.Residual
}

// Lossy says whether what arrives is not exactly what was sent.
func (p Payload) Lossy() bool {
	push, _ := payload.Lookup(p.Push)
	pull, _ := payload.Lookup(p.Pull)
	return push.Lossy || pull.Lossy
}

// PushText is the codec of pushes with its numbers.
func (p Payload) PushText() string {
	switch {
	case p.Push == "threshold":
		return fmt.Sprintf("threshold (%g, at most %g)", p.Threshold, p.Ratio)
	case p.Residual():
		return fmt.Sprintf("%s (ratio %g)", p.Push, p.Ratio)
	}
	return p.Push
}

// Summary is what the summary says of how vectors travelled.
func (p Payload) Summary() metrics.Payload {
	return metrics.Payload{Push: p.PushText(), Pull: p.Pull, Lossy: p.Lossy()}
}

// crossPayload holds codecs that lose something to what schemes need of pushes.
func (w *walker) crossPayload(t *table) {
	push, ratio := t.byPath["payload.push"], t.byPath["payload.ratio"]
	e, _ := payload.Lookup(w.cfg.Payload.Push)
	if push.bad || !e.Lossy {
		return
	}
	switch {
	case e.Name == "float16":
		w.report(Warning, push.node, push.path, "bfloat16 has the range of float32",
			"a push is a sum over the samples of a batch, and float16 turns magnitudes from 65520 on into infinity and below 3e-8 into 0")
	case e.Residual && !ratio.bad && w.cfg.Payload.Ratio > 0.5:
		w.report(Warning, w.nodeOf(t, ratio, push.node), ratio.path, "set 0.5 or less, or payload.push: float32",
			"an element that is sent takes 8 bytes with its index, so that more than half of them take more than float32 for all")
	}
	if t.byPath["sync"].bad {
		return
	}
	for i := range w.rows {
		phases, _ := w.phasesOf(i)
		for _, ph := range phases {
			s, ok := scheme.Lookup(ph.Scheme)
			switch rule := w.rows[i].prefix; {
			case !ok:
			case s.CopiesOf(ph.Params) != scheme.Pulled:
				w.fatal(push.node, push.path, "set payload.push: float32, or let workers pull before every iteration",
					"under %s (%s) workers add their own updates to their copies, and the servers would get others by %s", rule, s.Name, e.Name)
			case e.Residual && s.Behind:
				w.fatal(push.node, push.path, "use float32, float16 or bfloat16",
					"%s (%s) drops late pushes, and with each what earlier pushes of %s had left out", rule, s.Name, e.Name)
			case e.Residual && s.OwnUpdate:
				w.fatal(push.node, push.path, "use float32, float16 or bfloat16",
					"%s (%s) bounds what is on its way, and would not know what %s keeps back at the workers", rule, s.Name, e.Name)
			default:
				continue
			}
			return
		}
	}
}
