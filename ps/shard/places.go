package shard

// Places are where pieces begin in a buffer that has them one behind the other.
type Places struct {
	at    []int // by piece, from the first on
	first int32
	Total int // bytes of all
}

// PushPlaces are those of pushes of pieces whose numbers follow each other.
func PushPlaces(pieces []Piece) Places {
	return placesOf(pieces, func(p *Piece) int64 { return p.PushBytes })
}

// ReplyPlaces are those of replies.
func ReplyPlaces(pieces []Piece) Places {
	return placesOf(pieces, func(p *Piece) int64 { return p.ReplyBytes })
}

// PullPlaces are those of the keys of pulls.
func PullPlaces(pieces []Piece) Places { return placesOf(pieces, (*Piece).PullBytes) }

func placesOf(pieces []Piece, bytes func(*Piece) int64) Places {
	p := Places{at: make([]int, len(pieces)), first: pieces[0].ID}
	for i := range pieces {
		p.at[i] = p.Total
		p.Total += int(bytes(&pieces[i]))
	}
	return p
}

// Of is where a piece begins, in bytes.
func (p *Places) Of(piece int32) int { return p.at[piece-p.first] }
