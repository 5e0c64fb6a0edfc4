package straggler

import "time"

// fluentPS is the sleep of the workers that FluentPS's authors slow down.
type fluentPS struct{ normal }

func newFluentPS(s Spec, e Env) Injector {
	return fluentPS{normal{Amount{Sleep: s.Sleep}, s.Spread, newDraws(e)}}
}

func (f fluentPS) Draw(iter int64) Amount {
	return Amount{Sleep: f.normal.Draw(iter).Sleep.Truncate(time.Millisecond)}
}
