package timings

import "fluentps/internal/policy/straggler"

// Traces returns the computing times of a recorded run, per worker, for a simulation or another run to replay.
func Traces(iterations [][]Iteration) []straggler.Trace {
	all := make([]straggler.Trace, len(iterations))
	for w, of := range iterations {
		all[w] = make(straggler.Trace, len(of))
		for i := range of {
			own := of[i].Own()
			all[w][i] = straggler.Recorded{Own: own, Push: min(own, of[i].Push), Samples: of[i].Samples}
		}
	}
	return all
}
