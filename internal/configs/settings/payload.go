package settings

import (
	"fmt"

	"fluentps/internal/policy/payload"
	"fluentps/internal/show/metrics"
)

// DensePayloads are the payloads that can carry parameters. A sparse payload leaves elements out and sends them with the next push, but a
// version is sent only once.
func DensePayloads() []string { return payloadNames(false) }

// SparsePayloads are the payloads that keep a residual.
func SparsePayloads() []string { return payloadNames(true) }

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
	case p.Residual() && p.Thresholds == "reused":
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
