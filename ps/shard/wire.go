package shard

// WireBytes is what its pieces take on the wire, at most: those of a push, and those of a reply.
func (s *Shard) WireBytes() (push, reply int64) {
	for i := range s.Pieces {
		push += s.Pieces[i].PushBytes
		reply += s.Pieces[i].ReplyBytes
	}
	return push, reply
}

// Largest is the size on the wire of the largest piece of a push, and of a reply, in bytes.
func (p *Plan) Largest() (push, reply int64) {
	for i := range p.Pieces {
		push, reply = max(push, p.Pieces[i].PushBytes), max(reply, p.Pieces[i].ReplyBytes)
	}
	return push, reply
}

func wireBytes(of func(elements int) int, p *Piece) int64 {
	if of == nil {
		return p.Bytes()
	}
	return int64(of(p.Hi - p.Lo))
}
