package metrics

import "time"

// Span is an activity that a rank spends time on. A driver is in at most one span at a time, so the spans of a rank add up to at
// most its wall time.
type Span uint8

const (
	Compute Span = iota // forward, backward and local updates
	Push                // handing gradients to the transport
	Blocked             // waiting for a reply that a scheme holds back or that has not arrived
	Pull                // reading replies
	Fold                // summing pushes and committing versions
	Idle                // a server with nothing to do
	SpanCount
)

// Rest is the key of the time that no span covers, in maps by the name of the span.
const Rest = "rest"

var spanNames = [SpanCount]string{"compute", "push", "blocked", "pull", "fold", "idle"}

// String is the name of the span in summary.json.
func (s Span) String() string { return spanNames[s] }

// Spans are the times of one rank. The zero value is ready; it belongs to one goroutine at a time.
type Spans struct {
	Times [SpanCount]time.Duration `json:"times_ns"`
	Wall  time.Duration            `json:"wall_ns"` // training time of the rank; the spans are parts of it
}

// Add counts d to span s.
func (s *Spans) Add(span Span, d time.Duration) { s.Times[span] += d }

// Rest is the part of Wall that no span covers. It is negative only if the driver let spans overlap.
func (s *Spans) Rest() time.Duration {
	rest := s.Wall
	for _, d := range s.Times {
		rest -= d
	}
	return rest
}

// Range is the smallest, mean and largest value over the ranks, in seconds.
type Range struct {
	Min Float `json:"min"`
	Avg Float `json:"avg"`
	Max Float `json:"max"`
}

// RoleTimes holds the times over the ranks of a role, by the name of the span or Rest.
type RoleTimes map[string]Range

// OverRanks returns the Range of every span, and of Rest, over the ranks of one role. Without ranks all are zero.
func OverRanks(ranks []Spans) RoleTimes {
	out := make(RoleTimes, SpanCount+1)
	for span := range SpanCount {
		out[span.String()] = rangeOf(ranks, func(s *Spans) time.Duration { return s.Times[span] })
	}
	out[Rest] = rangeOf(ranks, (*Spans).Rest)
	return out
}

func rangeOf(ranks []Spans, get func(*Spans) time.Duration) Range {
	if len(ranks) == 0 {
		return Range{}
	}
	lo, hi, sum := get(&ranks[0]), get(&ranks[0]), time.Duration(0)
	for i := range ranks {
		d := get(&ranks[i])
		lo, hi, sum = min(lo, d), max(hi, d), sum+d
	}
	avg := sum.Seconds() / float64(len(ranks))
	return Range{Min: Float(lo.Seconds()), Avg: Float(avg), Max: Float(hi.Seconds())}
}
