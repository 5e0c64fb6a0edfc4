package shard

import (
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"
)

// cutEven gives every server equal parts of every group. The parts are dealt to the servers in turn, so that every server is
// pushed to as long as backward goes on, and cut k of K lies at round(n*k/K).
func cutEven(p *Plan, groups []groupOf, o Options) {
	for i := range groups {
		g := &groups[i]
		n, all := g.hi-g.lo, o.partsOf(g)*o.Servers
		cut := func(k int) int { return g.lo + int(math.Round(float64(n)*float64(k)/float64(all))) }
		for k := range all {
			p.add(g, strconv.Itoa(k), k%o.Servers, cut(k), cut(k+1))
		}
	}
	p.leadOnServer0()
}

// partsOf is how many shards each server gets of a group.
func (o *Options) partsOf(g *groupOf) int {
	fit := int64(g.hi-g.lo) * ElemBytes / (int64(o.Servers) * max(ElemBytes, o.PartMin))
	return int(max(1, min(int64(o.Parts), fit)))
}

// eachLayer calls visit with the range of the arena of each layer in each group.
func eachLayer(p *Plan, groups []groupOf, visit func(g *groupOf, name string, lo, hi int)) {
	for i := range groups {
		g := &groups[i]
		for a := 0; a < len(g.params); {
			b := a
			for b < len(g.params) && p.Params[g.params[b]].Layer == p.Params[g.params[a]].Layer {
				b++
			}
			first, last := g.params[a], g.params[b-1]
			visit(g, layerName(p.Params[first]), p.At[first], p.At[last]+p.Params[last].N)
			a = b
		}
	}
}

// cutSlices makes a shard of every elems elements of a layer and group, and deals the shards to the servers in turn,
// from layer to layer without a restart: P3's slices and upstream servers [A], where a tensor is what a layer is here.
// Each shard is answered by itself.
func cutSlices(p *Plan, groups []groupOf, servers, elems int) {
	eachLayer(p, groups, func(g *groupOf, name string, lo, hi int) {
		for k := 0; lo < hi; k++ {
			p.add(g, fmt.Sprintf("%s.%d", name, k), len(p.Shards)%servers, lo, min(hi, lo+elems))
			lo += elems
		}
	})
}

// cutLayer makes one shard per layer and group, and deals the shards largest first to the emptiest server.
func cutLayer(p *Plan, groups []groupOf, servers int) {
	eachLayer(p, groups, func(g *groupOf, name string, lo, hi int) { p.add(g, name, 0, lo, hi) })
	order := make([]int, len(p.Shards))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(a, b int) bool { return p.Shards[order[a]].Bytes() > p.Shards[order[b]].Bytes() })
	load := make([]int64, servers)
	for _, i := range order {
		to := 0
		for m := range load {
			if load[m] < load[to] {
				to = m
			}
		}
		p.Shards[i].Server = int32(to)
		load[to] += p.Shards[i].Bytes()
	}
	p.leadOnServer0()
}

// layerName is the parameter's name up to its last dot: fc1 of fc1.weight.
func layerName(q Param) string {
	if i := strings.LastIndexByte(q.Name, '.'); i > 0 {
		return q.Name[:i]
	}
	return q.Name
}

// cutRange is PS-Lite's slicer: server m owns the keys [K/M*m, K/M*(m+1)) of the 64-bit key space, and the keys are the
// indices of the parameters. So all parameters land on server 0, as they do in PS-Lite.
func cutRange(p *Plan, groups []groupOf, servers int) {
	width := keyWidth(servers)
	for i := range groups {
		g := &groups[i]
		for a := 0; a < len(g.params); {
			server := uint64(g.params[a]) / width
			b := a
			for b < len(g.params) && uint64(g.params[b])/width == server {
				b++
			}
			last := g.params[b-1]
			p.add(g, fmt.Sprintf("range%d", server), int(server), p.At[g.params[a]], p.At[last]+p.Params[last].N)
			a = b
		}
	}
}

// leadOnServer0 swaps labels so that shard 0, which counts the budget, lies on server 0, which is rank 0.
func (p *Plan) leadOnServer0() {
	lead := p.Shards[0].Server
	if lead == 0 {
		return
	}
	for i := range p.Shards {
		switch p.Shards[i].Server {
		case lead:
			p.Shards[i].Server = 0
		case 0:
			p.Shards[i].Server = lead
		}
	}
}

func (p *Plan) fillSegs(s *Shard) {
	for k, q := range p.Params {
		lo, hi := max(s.Lo, p.At[k]), min(s.Hi, p.At[k]+q.N)
		if lo < hi {
			s.Segs = append(s.Segs, Seg{Param: k, Lo: lo - p.At[k], Hi: hi - p.At[k], At: lo})
		}
	}
	sort.Slice(s.Segs, func(a, b int) bool { return s.Segs[a].At < s.Segs[b].At })
}

// fillPieces cuts the shard where the layer changes, and into pieces of at most Options.MaxBytes and PieceMax, in arena order: first
// layers first, the order in which replies travel. Where messages have lists of keys, layers make no cut. A piece then
// belongs to the last layer that it has a part of, since it is complete when that layer is.
func (p *Plan) fillPieces(s *Shard) {
	layerOf := func(seg int) int { return p.Params[s.Segs[seg].Param].Layer }
	for a := 0; a < len(s.Segs); {
		b := a
		for b < len(s.Segs) && (layerOf(b) == layerOf(a) || p.options.listed()) {
			b++
		}
		end := s.Segs[b-1].At + s.Segs[b-1].Hi - s.Segs[b-1].Lo
		elems := p.options.pieceElems(end - s.Segs[a].At)
		for lo := s.Segs[a].At; lo < end; lo += elems {
			piece := Piece{ID: int32(len(p.Pieces)), Shard: s.ID, Layer: int32(layerOf(a)), Lo: lo, Hi: min(end, lo+elems)}
			for k := a; k < b; k++ {
				if s.Segs[k].within(piece.Lo, piece.Hi) > 0 {
					piece.Layer = max(piece.Layer, int32(layerOf(k)))
				}
			}
			piece.PushBytes, piece.ReplyBytes = piece.Bytes(), piece.Bytes()
			if !s.Stat {
				piece.PushBytes, piece.ReplyBytes = p.pushBytes(s, &piece), wireBytes(p.options.ReplyBytes, &piece)
			}
			p.countKeys(s, &piece)
			s.Pieces = append(s.Pieces, piece)
			p.Pieces = append(p.Pieces, piece)
		}
		a = b
	}
}

// pieceElems is how long the pieces are into which so many elements of a layer are cut. Pieces that are short because
// of the link between hosts have the same length, since a message costs as much for a few bytes left over.
func (o *Options) pieceElems(n int) int {
	long := int(o.MaxBytes / ElemBytes)
	if short := int(o.PieceMax / ElemBytes); short > 0 && short < long {
		pieces := (n + short - 1) / short
		return (n + pieces - 1) / pieces
	}
	return long
}
