package send

// fifo holds nothing back: order of leaving is order of readiness, last layers first.
type fifo struct{}

func (fifo) Step(ev Event, out []int32) []int32 {
	if ev.Kind == Handed {
		out = append(out, ev.Piece)
	}
	return out
}

func (fifo) Held() int { return 0 }

func (fifo) String() string { return "fifo held=0" }
