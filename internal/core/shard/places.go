package shard

// Places are the offsets of pieces in a buffer that holds them one after another.
type Places struct {
	at    []int // by piece, relative to the first
	first int32
	Total int // bytes of all pieces
}

// PushPlaces are the places of pushes of pieces with consecutive IDs.
func PushPlaces(pieces []Piece) Places {
	return placesOf(pieces, func(p *Piece) int64 { return p.PushBytes })
}

// ReplyPlaces are the places of replies.
func ReplyPlaces(pieces []Piece) Places {
	return placesOf(pieces, func(p *Piece) int64 { return p.ReplyBytes })
}

// PullPlaces are the places of the keys of pulls.
func PullPlaces(pieces []Piece) Places { return placesOf(pieces, (*Piece).PullBytes) }

func placesOf(pieces []Piece, bytes func(*Piece) int64) Places {
	p := Places{at: make([]int, len(pieces)), first: pieces[0].ID}
	for i := range pieces {
		p.at[i] = p.Total
		p.Total += int(bytes(&pieces[i]))
	}
	return p
}

// Of is the offset of a piece, in bytes.
func (p *Places) Of(piece int32) int { return p.at[piece-p.first] }
