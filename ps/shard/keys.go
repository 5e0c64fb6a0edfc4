package shard

import "math"

// Values of Options.Keys: what has a key of its own in the messages of a server as PS-Lite has it, and what is a message.
const (
	KeysList   = "list"   // a tensor has a key, and a message the list of all that a server holds
	KeysTensor = "tensor" // a tensor has a key and a message, whose header says which it is
	KeysScalar = "scalar" // every number has a key, and a message the list of all that a server holds
)

// KeyForms lists them.
func KeyForms() []string { return []string{KeysList, KeysTensor, KeysScalar} }

// What a key takes in a message: itself, and in a list of tensors how many values it has.
const (
	KeyBytes    = 8
	LengthBytes = 4
)

// listed says whether messages have lists of keys: then they are as large as messages may be, whatever layers are in them.
func (o *Options) listed() bool { return o.Keys == KeysList || o.Keys == KeysScalar }

// keyWidth is how many of the 64-bit keys PS-Lite's slicer gives each server: server m owns [m*width, (m+1)*width) [C].
func keyWidth(servers int) uint64 { return math.MaxUint64 / uint64(servers) }

// ScalarKey is the key of the first element of a piece where every scalar has one; the others follow. With slice range the
// elements are numbered from 0, and all keys are server 0's. Elsewhere the application moves each server's keys into its
// range.
func (p *Plan) ScalarKey(q *Piece) uint64 { return p.keysFrom(q) + uint64(q.Lo) }

// TensorKeys are the keys of a piece where every tensor has one, ascending, and how many elements of each are in it.
func (p *Plan) TensorKeys(q *Piece) (keys []uint64, lengths []int) {
	from := p.keysFrom(q)
	for _, g := range p.Shards[q.Shard].Segs {
		if n := g.within(q.Lo, q.Hi); n > 0 {
			keys, lengths = append(keys, from+uint64(g.Param)), append(lengths, n)
		}
	}
	return keys, lengths
}

func (p *Plan) keysFrom(q *Piece) uint64 {
	return uint64(p.Shards[q.Shard].Server) * keyWidth(p.Servers)
}

// within is how many elements of a segment lie in a range of the arena.
func (g *Seg) within(lo, hi int) int { return max(0, min(hi, g.At+g.Hi-g.Lo)-max(lo, g.At)) }

// addKeys counts what the keys of a piece take beside its values.
func (p *Plan) addKeys(s *Shard, q *Piece) {
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

// PullBytes is what the pull of a shard takes beside its header: the keys that it asks for.
func (s *Shard) PullBytes() (bytes int64) {
	for i := range s.Pieces {
		bytes += s.Pieces[i].PullBytes()
	}
	return bytes
}

// PullBytes is the piece's part of that.
func (p *Piece) PullBytes() int64 { return KeyBytes * int64(p.Keys) }
