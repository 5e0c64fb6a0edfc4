package shard

// WireBytes is the largest number of bytes of its pieces on the wire, for a push and for a reply.
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

// PieceMax is the length that no piece exceeds, in bytes.
func (p *Plan) PieceMax() int64 {
	if short := p.options.PieceMax; short > 0 {
		return min(short, p.options.MaxBytes)
	}
	return p.options.MaxBytes
}

// Rows says what rows a piece consists of: their width in elements, and how many elements of its first row are in the
// piece before (cut). Width 0: the piece has no rows, or parts of parameters with different widths.
func (p *Plan) Rows(q *Piece) (width, cut int) {
	sh := &p.Shards[q.Shard]
	return p.rows(sh, q)
}

func (p *Plan) rows(sh *Shard, q *Piece) (width, cut int) {
	for k := range sh.Segs {
		g := &sh.Segs[k]
		if g.within(q.Lo, q.Hi) == 0 {
			continue
		}
		row := p.Params[g.Param].Row
		if width == 0 && g.At <= q.Lo && row > 0 {
			width, cut = row, (g.Lo+q.Lo-g.At)%row
		}
		if row != width {
			return 0, 0
		}
	}
	return width, cut
}

// pushBytes is the largest number of bytes of a piece of a push.
func (p *Plan) pushBytes(sh *Shard, q *Piece) int64 {
	if p.options.PushBytes == nil && p.options.RowBytes != nil {
		if width, cut := p.rows(sh, q); width > 0 {
			return int64(p.options.RowBytes(width, cut, q.Hi-q.Lo))
		}
	}
	return wireBytes(p.options.PushBytes, q)
}

func wireBytes(of func(elements int) int, p *Piece) int64 {
	if of == nil {
		return p.Bytes()
	}
	return int64(of(p.Hi - p.Lo))
}
