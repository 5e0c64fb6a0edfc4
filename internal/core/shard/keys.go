package shard

import "math"

// Values of Options.Keys: what has a key of its own in the messages of PS-Lite, and what one message holds.
const (
	KeysList   = "list"   // a tensor has a key; a message lists everything that a server holds
	KeysTensor = "tensor" // a tensor has a key and a message, whose header names the tensor
	KeysScalar = "scalar" // every number has a key; a message lists everything that a server holds
)

// KeyForms lists the values of Options.Keys.
func KeyForms() []string { return []string{KeysList, KeysTensor, KeysScalar} }

// Bytes that a key takes in a message: for the key itself, and in a list of tensors for the number of its values.
const (
	KeyBytes    = 8
	LengthBytes = 4
)

// listed says whether messages have lists of keys. Such messages are as large as messages may be, and may hold any
// layers.
func (o *Options) listed() bool { return o.Keys == KeysList || o.Keys == KeysScalar }

// keyWidth is the number of 64-bit keys that PS-Lite's slicer gives each server: server m owns [m*width, (m+1)*width)
// [C].
func keyWidth(servers int) uint64 { return math.MaxUint64 / uint64(servers) }

// ScalarKey is the key of the first element of a piece where every scalar has a key; the others follow. With slice
// range the elements are numbered from 0, and all keys are server 0's. Elsewhere the application moves each server's
// keys into that server's range.
func (p *Plan) ScalarKey(q *Piece) uint64 { return p.firstKey(q) + uint64(q.Lo) }

// TensorKeys are the keys of a piece where every tensor has a key, ascending, and the number of elements of each tensor
// in the piece.
func (p *Plan) TensorKeys(q *Piece) (keys []uint64, lengths []int) {
	from := p.firstKey(q)
	for _, g := range p.Shards[q.Shard].Segs {
		if n := g.within(q.Lo, q.Hi); n > 0 {
			keys, lengths = append(keys, from+uint64(g.Param)), append(lengths, n)
		}
	}
	return keys, lengths
}

func (p *Plan) firstKey(q *Piece) uint64 {
	return uint64(p.Shards[q.Shard].Server) * keyWidth(p.Servers)
}

// within is the number of elements of a segment that lie in a range of the arena.
func (g *Seg) within(lo, hi int) int { return max(0, min(hi, g.At+g.Hi-g.Lo)-max(lo, g.At)) }

// countKeys counts the bytes that the keys of a piece take beside its values.
func (p *Plan) countKeys(s *Shard, q *Piece) {
	each := int64(KeyBytes)
	switch p.options.Keys {
	case KeysScalar:
		q.Keys = q.Hi - q.Lo
	case KeysList:
		each += LengthBytes
		for i := range s.Segs {
			if s.Segs[i].within(q.Lo, q.Hi) > 0 {
				q.Keys++
			}
		}
	}
	q.PushBytes += each * int64(q.Keys)
	q.ReplyBytes += each * int64(q.Keys)
}

// PullBytes is the size of a shard's pull beside its header: the keys that it asks for.
func (s *Shard) PullBytes() (bytes int64) {
	for i := range s.Pieces {
		bytes += s.Pieces[i].PullBytes()
	}
	return bytes
}

// PullBytes is the piece's part of the shard's pull.
func (p *Piece) PullBytes() int64 { return KeyBytes * int64(p.Keys) }
