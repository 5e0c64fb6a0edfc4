// Package send is the send axis: when and in what order the pieces of a worker's pushes leave.
//
// A Policy is a pure state machine with the Step shape of the schemes. It is told what the worker has
// ready and what has left, and answers with the pieces that may go now. Whatever it holds back must
// never depend on the reply for another shard (the law "push all, then wait").
package send

import "fmt"

// EventKind says what happened to a piece.
type EventKind uint8

const (
	Handed EventKind = iota // the piece's gradient is final: it may leave when the policy lets it
	Sent                    // the piece has left: its buffer is free again
)

// Event is one input. Piece is an index into the plan's pieces; Bytes its length.
type Event struct {
	Kind  EventKind
	Piece int32
	Bytes int64
}

// Policy decides for one worker.
type Policy interface {
	Step(ev Event, out []int32) []int32 // appends the pieces that leave now, in order
	Held() int                          // pieces handed that have not been let go
	fmt.Stringer
}

// Entry is one row of the table.
type Entry struct {
	Name  string
	Rule  string // one line
	Paper string // source with its evidence tag
	New   func() Policy
}

// All lists the policies of this version.
var All = []Entry{
	{Name: "fifo", Rule: "a piece leaves the moment its gradient is ready", Paper: "FluentPS (Cluster 2019), sPush as released [C]", New: func() Policy { return fifo{} }},
}

// Lookup finds a policy by its name in the YAML.
func Lookup(name string) (Entry, bool) {
	for _, e := range All {
		if e.Name == name {
			return e, true
		}
	}
	return Entry{}, false
}

// Names lists the policies in the order of the table.
func Names() []string {
	names := make([]string, len(All))
	for i, e := range All {
		names[i] = e.Name
	}
	return names
}
