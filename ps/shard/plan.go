// Package shard says who serves, who works, and which server owns which parameters.
//
// Parameters are grouped by (the sync rule that took them, trained or statistic), in model order inside
// a group. Groups lie one after another in one arena of float32; every shard is a range of the arena, with
// one rule, one kind and one server. Workers keep their parameters and gradients in arenas of this layout,
// so that shards and pieces are (offset, length) in them and no byte is moved between layouts.
package shard

import (
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"
)

// ElemBytes is the size of one parameter in memory, and on the wire where it travels as it is.
const ElemBytes = 4

// Param is one named tensor, flat, in model order.
type Param struct {
	Name  string
	Layer int
	N     int  // elements, at least 1
	Stat  bool // a statistic (batch norm): averaged, not trained
}

// Options say how to cut.
type Options struct {
	Slice    string   // even, layer, slices, range
	MaxBytes int64    // no piece is longer; at least ElemBytes
	Servers  int      // at least 1
	Rules    []string // globs; the first that fits a parameter's name takes it
	Shares   []int    // what each server holds of every group, by their sum, with slice even; nil: all the same
	Keys     string   // list, tensor, scalar: what has a key of its own, as with PS-Lite; with tensor no shard holds parts of two. "": messages have none

	// Bytes that so many elements of a push or a reply take on the wire, at most; nil: ElemBytes each. Statistics travel as
	// they are: ElemBytes.
	PushBytes, ReplyBytes func(elements int) int
}

// Slices lists the values of Options.Slice.
func Slices() []string { return []string{"even", "layer", "slices", "range"} }

// Seg maps a run of a parameter to the arena: elements [Lo, Hi) of Param lie at [At, At+Hi-Lo).
type Seg struct {
	Param      int
	Lo, Hi, At int
}

// Piece is the part of a layer that lies in a shard, cut at Options.MaxBytes: the unit that travels.
type Piece struct {
	ID     int32 // index in Plan.Pieces
	Shard  int32
	Layer  int32
	Lo, Hi int // elements of the arena

	PushBytes, ReplyBytes int64 // on the wire, at most, with its keys
	Keys                  int   // that travel with its values, and with the pull of them; 0: its number says which it is
}

// Bytes is the piece's size in memory.
func (p *Piece) Bytes() int64 { return int64(p.Hi-p.Lo) * ElemBytes }

// Shard is a range of the arena with one rule, one kind and one server.
type Shard struct {
	ID     int32 // index in Plan.Shards
	Name   string
	Rule   int // index in Options.Rules
	Stat   bool
	Server int32
	Lo, Hi int   // elements of the arena, Lo < Hi
	Segs   []Seg // the parameters in it, in arena order
	Pieces []Piece
}

// Bytes is the shard's size in memory.
func (s *Shard) Bytes() int64 { return int64(s.Hi-s.Lo) * ElemBytes }

// Plan is the whole map. It is the same on every rank: a pure function of its inputs.
type Plan struct {
	Params  []Param
	At      []int // arena offset of each parameter; a parameter is contiguous in the arena
	Arena   int   // elements
	Shards  []Shard
	Pieces  []Piece
	Servers int
	Epoch   int32 // counts the cuts: a map with another epoch has other shards

	options Options
}

// Views cuts an arena into one slice per parameter, in model order.
func (p *Plan) Views(arena []float32) [][]float32 {
	v := make([][]float32, len(p.Params))
	for k, q := range p.Params {
		v[k] = arena[p.At[k] : p.At[k]+q.N : p.At[k]+q.N]
	}
	return v
}

// Cut makes the plan. It fails when no rule takes a parameter, or on options out of range.
// Slicing: even and layer are FluentPS's elastic parameter slicing as reconstructed [R]; slices is P3's [A]; range is the
// key ranges of PS-Lite [C], kept as a baseline: small consecutive keys all land on server 0.
func Cut(params []Param, o Options) (*Plan, error) {
	if o.Servers < 1 {
		return nil, fmt.Errorf("shard: cluster.servers is %d; at least 1 rank must serve", o.Servers)
	}
	if o.MaxBytes < ElemBytes {
		return nil, fmt.Errorf("shard: shards.max_bytes is %d; a piece holds at least one parameter of %d bytes", o.MaxBytes, ElemBytes)
	}
	if o.Shares != nil && (len(o.Shares) != o.Servers || o.Slice != "even") {
		return nil, fmt.Errorf("shard: cluster.placement: mixed gives %d servers shares of their own (%d servers, shards.slice %s): it needs shards.slice: even", len(o.Shares), o.Servers, o.Slice)
	}
	groups, err := group(params, o.Rules)
	if err != nil {
		return nil, err
	}
	p := &Plan{Params: params, At: make([]int, len(params)), Servers: o.Servers, options: o}
	for i := range groups {
		g := &groups[i]
		g.lo = p.Arena
		for _, k := range g.params {
			p.At[k] = p.Arena
			p.Arena += params[k].N
		}
		g.hi = p.Arena
	}
	if o.Keys == KeysTensor {
		groups = keys(p, groups)
	}
	switch o.Slice {
	case "even":
		if o.Shares != nil {
			cutShares(p, groups, o.Shares)
			break
		}
		cutEven(p, groups, o.Servers)
	case "layer":
		cutLayer(p, groups, o.Servers)
	case "slices":
		cutSlices(p, groups, o.Servers, int(o.MaxBytes/ElemBytes))
	case "range":
		cutRange(p, groups, o.Servers)
	default:
		return nil, fmt.Errorf("shard: shards.slice is %q; it is one of %v", o.Slice, Slices())
	}
	for i := range p.Shards {
		p.fillSegs(&p.Shards[i])
		p.fillPieces(&p.Shards[i], int(o.MaxBytes/ElemBytes))
	}
	return p, nil
}

type groupOf struct {
	rule   int
	stat   bool
	key    string // the one parameter's name, with Options.Keys tensor
	params []int  // in model order
	lo, hi int    // arena
}

func group(params []Param, rules []string) ([]groupOf, error) {
	index := map[groupKey]int{}
	var groups []groupOf
	for k, q := range params {
		rule := RuleOf(rules, q.Name)
		if rule < 0 {
			return nil, fmt.Errorf("shard: no sync rule takes parameter %q; end the list with match: \"*\"", q.Name)
		}
		key := groupKey{rule, q.Stat}
		i, ok := index[key]
		if !ok {
			i = len(groups)
			index[key] = i
			groups = append(groups, groupOf{rule: rule, stat: q.Stat})
		}
		groups[i].params = append(groups[i].params, k)
	}
	sort.SliceStable(groups, func(a, b int) bool {
		if groups[a].rule != groups[b].rule {
			return groups[a].rule < groups[b].rule
		}
		return !groups[a].stat && groups[b].stat
	})
	return groups, nil
}

// keys makes every parameter a group of its own, at the same place in the arena.
func keys(p *Plan, groups []groupOf) []groupOf {
	var all []groupOf
	for _, g := range groups {
		for _, k := range g.params {
			q := p.Params[k]
			all = append(all, groupOf{rule: g.rule, stat: g.stat, key: q.Name, params: []int{k}, lo: p.At[k], hi: p.At[k] + q.N})
		}
	}
	return all
}

type groupKey struct {
	rule int
	stat bool
}

// RuleOf is the index of the first glob that takes the name, or -1.
func RuleOf(rules []string, name string) int {
	for i, glob := range rules {
		if Match(glob, name) {
			return i
		}
	}
	return -1
}

// add appends a shard named after its rule and its place in the group. Empty ranges make no shard: a group of
// two parameters has at most two shards, however many servers there are.
func (p *Plan) add(g *groupOf, place string, server, lo, hi int) {
	if lo == hi {
		return
	}
	switch {
	case g.key != "" && p.options.Slice == "even":
		place = g.key + "/" + place
	case g.key != "":
		place = g.key
	}
	name := p.options.Rules[g.rule] + "/" + place
	if g.stat {
		name += "/stat"
	}
	p.Shards = append(p.Shards, Shard{ID: int32(len(p.Shards)), Name: name, Rule: g.rule, Stat: g.stat, Server: int32(server), Lo: lo, Hi: hi})
}

// cutEven gives every server an equal part of every group: cut m lies at round(n*m/M).
func cutEven(p *Plan, groups []groupOf, servers int) {
	for i := range groups {
		g := &groups[i]
		n := g.hi - g.lo
		cut := func(m int) int { return g.lo + int(math.Round(float64(n)*float64(m)/float64(servers))) }
		for m := range servers {
			p.add(g, strconv.Itoa(m), m, cut(m), cut(m+1))
		}
	}
	p.leadOnServer0()
}

// runs calls visit with the range of the arena of each layer in each group.
func runs(p *Plan, groups []groupOf, visit func(g *groupOf, name string, lo, hi int)) {
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

// cutSlices makes a shard of every elems elements of a layer and group, and deals them in turn, the turn going on from
// layer to layer: P3's slices and upstream servers [A], where a tensor is what a layer is here. Each is answered by itself.
func cutSlices(p *Plan, groups []groupOf, servers, elems int) {
	runs(p, groups, func(g *groupOf, name string, lo, hi int) {
		for k := 0; lo < hi; k++ {
			p.add(g, fmt.Sprintf("%s.%d", name, k), len(p.Shards)%servers, lo, min(hi, lo+elems))
			lo += elems
		}
	})
}

// cutLayer makes one shard per layer and group, and deals them largest first to the emptiest server.
func cutLayer(p *Plan, groups []groupOf, servers int) {
	runs(p, groups, func(g *groupOf, name string, lo, hi int) { p.add(g, name, 0, lo, hi) })
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

// cutRange is PS-Lite's slicer: server m owns the keys [K/M*m, K/M*(m+1)) of the 64-bit key space, and the
// keys are the indices of the parameters. So all of them land on server 0, as they do there.
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

// fillPieces cuts the shard where the layer changes and at most elems elements long, in arena order: first
// layers first, the order in which replies travel. Where messages have lists of keys, layers make no cut, and a piece is
// of the last layer that it has a part of: it is complete when that is.
func (p *Plan) fillPieces(s *Shard, elems int) {
	layerOf := func(seg int) int { return p.Params[s.Segs[seg].Param].Layer }
	for a := 0; a < len(s.Segs); {
		b := a
		for b < len(s.Segs) && (layerOf(b) == layerOf(a) || p.options.listed()) {
			b++
		}
		end := s.Segs[b-1].At + s.Segs[b-1].Hi - s.Segs[b-1].Lo
		for lo := s.Segs[a].At; lo < end; lo += elems {
			piece := Piece{ID: int32(len(p.Pieces)), Shard: s.ID, Layer: int32(layerOf(a)), Lo: lo, Hi: min(end, lo+elems)}
			for k := a; k < b; k++ {
				if s.Segs[k].within(piece.Lo, piece.Hi) > 0 {
					piece.Layer = max(piece.Layer, int32(layerOf(k)))
				}
			}
			piece.PushBytes, piece.ReplyBytes = piece.Bytes(), piece.Bytes()
			if !s.Stat {
				piece.PushBytes, piece.ReplyBytes = wireBytes(p.options.PushBytes, &piece), wireBytes(p.options.ReplyBytes, &piece)
			}
			p.addKeys(s, &piece)
			s.Pieces = append(s.Pieces, piece)
			p.Pieces = append(p.Pieces, piece)
		}
		a = b
	}
}

// OfServer lists the shards that a server owns, in order of their IDs.
func (p *Plan) OfServer(server int32) []int32 {
	var ids []int32
	for i := range p.Shards {
		if p.Shards[i].Server == server {
			ids = append(ids, p.Shards[i].ID)
		}
	}
	return ids
}
