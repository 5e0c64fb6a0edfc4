package send

// fifo holds nothing back: pieces leave in the order in which they become ready, last layers first.
type fifo struct{}

func (fifo) Step(ev Event, out []int32) []int32 {
	if ev.Kind == Handed {
		out = append(out, ev.Piece)
	}
	return out
}

func (fifo) Held() int { return 0 }

func (fifo) String() string { return "fifo held=0" }
