package configs

import (
	"fmt"

	"fluentps/internal/policy/payload"
	"fluentps/internal/show/metrics"
	"fluentps/ps/scheme"
)

// densePayloads are the payloads that can carry parameters. A sparse payload leaves elements out and sends them with the next push, but a
// version is sent only once.
func densePayloads() []string { return payloadNames(false) }

// sparsePayloads are the payloads that keep a residual.
func sparsePayloads() []string { return payloadNames(true) }

func payloadNames(residual bool) (names []string) {
	for _, e := range payload.All {
		if e.Residual == residual {
			names = append(names, e.Name)
		}
	}
	return names
}

// PushCodec makes the codec of pushes; nil if they are sent as float32. Codecs must not be shared.
func (c *Config) PushCodec() payload.Codec { return c.codec(c.Payload.Push) }

// PullCodec makes the codec of replies; nil if they are sent as float32.
func (c *Config) PullCodec() payload.Codec { return c.codec(c.Payload.Pull) }

// PlainCodec makes the codec that changes nothing. Statistics are always sent with it.
func PlainCodec() payload.Codec {
	codec, err := payload.New(payload.All[0].Name, payload.Params{})
	if err != nil {
		panic("configs: the codec that changes nothing: " + err.Error())
	}
	return codec
}

func (c *Config) codec(name string) payload.Codec {
	if isPlain(name) {
		return nil
	}
	codec, err := payload.New(name, c.Payload.Params)
	if err != nil {
		panic(fmt.Sprintf("configs: payload passed the check: %v", err))
	}
	return codec
}

// isPlain reports whether a payload needs no codec.
func isPlain(name string) bool { return name == payload.All[0].Name }

// Encoded reports whether pushes and replies have a codec.
func (p Payload) Encoded() (push, pull bool) { return !isPlain(p.Push), !isPlain(p.Pull) }

// Residual reports whether workers keep the elements that a push leaves out.
func (p Payload) Residual() bool {
	e, _ := payload.All.Lookup(p.Push)
	return e.Residual
}

// Lossy reports whether encoding changes values in pushes or replies.
func (p Payload) Lossy() bool {
	push, _ := payload.All.Lookup(p.Push)
	pull, _ := payload.All.Lookup(p.Pull)
	return push.Lossy || pull.Lossy
}

// PushText returns the codec of pushes with its numbers.
func (p Payload) PushText() string {
	switch {
	case p.Push == "threshold":
		return fmt.Sprintf("threshold (%g, at most %g)", p.Threshold, p.Ratio)
	case p.Push == "topk" && p.Thresholds == "reused":
		return fmt.Sprintf("%s (ratio %g, thresholds reused)", p.Push, p.Ratio)
	case p.Residual():
		return fmt.Sprintf("%s (ratio %g)", p.Push, p.Ratio)
	}
	return p.Push
}

// Summary returns the payload for summary.json.
func (p Payload) Summary() metrics.Payload {
	return metrics.Payload{Push: p.PushText(), Pull: p.Pull, Lossy: p.Lossy()}
}

// crossPayload checks lossy codecs against the requirements of the schemes.
func (w *walker) crossPayload(t *table) {
	push, ratio := t.byPath["payload.push"], t.byPath["payload.ratio"]
	e, _ := payload.All.Lookup(w.cfg.Payload.Push)
	if push.bad || !e.Lossy {
		return
	}
	switch {
	case e.Name == "float16":
		w.report(Warning, push.node, push.path, "bfloat16 has the range of float32",
			"a push is a sum over the samples of a batch, and float16 turns magnitudes from 65520 on into infinity and below 3e-8 into 0")
	case e.Residual && !ratio.bad && w.cfg.Payload.Ratio > 0.5:
		w.report(Warning, w.nodeOf(t, ratio, push.node), ratio.path, "set 0.5 or less, or payload.push: float32",
			"each element takes 8 bytes with its index, so more than half of them take more bytes than float32 for all")
	}
	if t.byPath["sync"].bad {
		return
	}
	for i := range w.rows {
		phases, _ := w.phasesOf(i)
		for _, ph := range phases {
			s, ok := scheme.All.Lookup(ph.Scheme)
			switch rule := w.rows[i].prefix; {
			case !ok:
			case s.CopiesOf(ph.Params) != scheme.Pulled:
				w.fatal(push.node, push.path, "set payload.push: float32, or let workers pull before every iteration",
					"under %s (%s) workers add their own updates to their copies, but with %s the servers would receive different "+
						"ones", rule, s.Name, e.Name)
			case e.Residual && s.Behind:
				w.fatal(push.node, push.path, "use float32, float16 or bfloat16",
					"%s (%s) drops late pushes, and with each of them the elements that earlier pushes of %s left out", rule, s.Name, e.Name)
			case e.Residual && s.DropsStale:
				w.fatal(push.node, push.path, "use float32, float16 or bfloat16",
					"%s (%s) drops stale pushes, and with each of them the elements that earlier pushes of %s left out", rule, s.Name, e.Name)
			case e.Residual && s.OwnUpdate:
				w.fatal(push.node, push.path, "use float32, float16 or bfloat16",
					"%s (%s) bounds the updates in transit, but would not see what %s keeps at the workers", rule, s.Name, e.Name)
			default:
				continue
			}
			return
		}
	}
}
