// Package shard says who serves, who works, and which server owns which parameters.
//
// Parameters are grouped by the sync rules that may take them, and by their kind, trained or statistic. A parameter may
// be taken by one rule for all servers, and before it by rules for some servers only. A group keeps model order. Groups
// lie one after another in one arena of float32. Every shard is a range of the arena, with one rule, one kind and one
// server. Workers keep their parameters and gradients in arenas of this layout, so a shard or piece is (offset, length)
// in them and no byte is moved between layouts.
package shard

import (
	"fmt"
	"slices"
	"sort"
)

// ElemBytes is the size of one parameter in memory, and on the wire where it travels as it is.
const ElemBytes = 4

// Param is one named tensor, flat, in model order.
type Param struct {
	Name  string
	Layer int
	N     int  // elements, at least 1
	Row   int  // elements of a row; a push has the rows that some sample touches. It divides N. 0: a push has all elements
	Stat  bool // a statistic (batch norm): averaged, not trained
	Rows  int  // of a tensor that is a matrix, or is one when its last dimensions count as one. It divides N. 0: it is none
}

// Spec says how parameters are cut.
type Spec struct {
	Slice    string `yaml:"slice" values:"@slices" doc:"how parameters are cut over servers: even parts, a shard per layer, P3's slices of layers, or PS-Lite's key range"`
	Parts    int    `yaml:"parts" min:"0" max:"1024" doc:"with slice: even, shards that each server gets of what one rule takes, dealt in turn: replies to the first begin while the others are pushed; 0: as many as the link between hosts rewards, and 1 within a host"`
	MaxBytes int64  `yaml:"max_bytes" min:"4B" max:"64MiB" unit:"bytes" doc:"a piece is never longer"`
}

// Defaults cuts evenly.
func Defaults() Spec { return Spec{Slice: "even", MaxBytes: 4 << 20} }

// Options say how to cut.
type Options struct {
	Slice    string // even, layer, slices, range
	MaxBytes int64  // upper limit for a piece, and for a shard with slice slices; at least ElemBytes
	// PieceMax is another upper limit for a piece, which does not change shards; 0: none. Else at least ElemBytes.
	PieceMax int64
	// Parts is the number of shards that a server gets of a group with slice even, if these have at least PartMin bytes each;
	// else as many as do, and at least 1. 0 stands for 1.
	Parts   int
	PartMin int64
	Servers int      // at least 1
	Rules   []string // globs; a parameter is taken by the first that fits its name and the server of its shard
	On      [][]int  // by rule: the servers that the rule is for; nil, or no entry: all
	Shares  []int    // each server's share of every group, relative to their sum, with slice even; nil: equal shares
	// What has a key of its own, as in PS-Lite: list, tensor or scalar. With tensor no shard holds parts of two
	// tensors. "": messages have no keys.
	Keys string

	// The largest number of bytes on the wire of so many elements of a push or a reply; nil: ElemBytes each. Statistics
	// always travel uncoded: ElemBytes each.
	PushBytes, ReplyBytes func(elements int) int
	// RowBytes is the same for a push of rows, where PushBytes is nil; nil: rows travel like other elements.
	RowBytes func(width, cut, elements int) int
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

	PushBytes, ReplyBytes int64 // on the wire, at most, keys included
	Keys                  int   // keys that travel with the piece's values, and with its pull; 0: the piece's number identifies it
}

// PieceSize is the memory that a Piece takes, in bytes.
const PieceSize = 56

// Bytes is the size of the piece's values.
func (p *Piece) Bytes() int64 { return int64(p.Hi-p.Lo) * ElemBytes }

// InArena is the piece's place in an arena, in bytes.
func (p *Piece) InArena() (off, n int) { return p.Lo * ElemBytes, (p.Hi - p.Lo) * ElemBytes }

// Shard is a range of the arena with one rule, one kind and one server.
type Shard struct {
	ID     int32 // index in Plan.Shards
	Name   string
	Rule   int // index in Options.Rules; it never decides which server owns the shard
	Stat   bool
	Server int32
	Lo, Hi int   // elements of the arena, Lo < Hi
	Segs   []Seg // the parameters in it, in arena order
	Pieces []Piece

	rules []int // the rules that may take it, in order
}

// Bytes is the shard's size in memory.
func (s *Shard) Bytes() int64 { return int64(s.Hi-s.Lo) * ElemBytes }

// Plan is the whole map. It is a pure function of its inputs, and so the same on every rank.
type Plan struct {
	Params  []Param
	At      []int // arena offset of each parameter; a parameter is contiguous in the arena
	Arena   int   // elements
	Shards  []Shard
	Pieces  []Piece
	Servers int
	// Windows is by server how many bytes may be in flight between it and a worker, each way, where send.window says nothing; nil: the order
	// of sending decides.
	Windows []int64

	options Options
}

// Views cuts an arena into one slice per parameter, in model order. A slice's capacity ends with the arena, so that a
// model can join parameters that lie side by side.
func (p *Plan) Views(arena []float32) [][]float32 {
	v := make([][]float32, len(p.Params))
	for k, q := range p.Params {
		v[k] = arena[p.At[k] : p.At[k]+q.N]
	}
	return v
}

// Cut makes the plan. It fails when no rule takes a parameter, or on options out of range. Slicing: even and layer are
// FluentPS's elastic parameter slicing as reconstructed [R]; slices is P3's [A]; range is the key ranges of PS-Lite
// [C], kept as a baseline: small consecutive keys all land on server 0.
func Cut(params []Param, o Options) (*Plan, error) {
	if o.Servers < 1 {
		return nil, fmt.Errorf("shard: cluster.servers is %d; at least 1 rank must serve", o.Servers)
	}
	if o.MaxBytes < ElemBytes {
		return nil, fmt.Errorf("shard: shards.max_bytes is %d; a piece holds at least one parameter of %d bytes", o.MaxBytes, ElemBytes)
	}
	if o.Shares != nil && (len(o.Shares) != o.Servers || o.Slice != "even") {
		return nil, fmt.Errorf("shard: cluster.placement: mixed gives %d servers shares of their own (%d servers, "+
			"shards.slice %s): it needs shards.slice: even", len(o.Shares), o.Servers, o.Slice)
	}
	for i, on := range o.On {
		for _, m := range on {
			if m < 0 || m >= o.Servers {
				return nil, fmt.Errorf("shard: sync rule %d (match %q) is for server %d, and there are %d, from 0 on; change "+
					"its servers", i, o.Rules[i], m, o.Servers)
			}
		}
	}
	groups, err := groupParams(params, o)
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
		groups = groupPerParam(p, groups)
	}
	switch o.Slice {
	case "even":
		if o.Shares != nil {
			cutShares(p, groups, o)
			break
		}
		cutEven(p, groups, o)
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
		if err := p.fillRule(&p.Shards[i]); err != nil {
			return nil, err
		}
		p.fillSegs(&p.Shards[i])
		p.fillPieces(&p.Shards[i])
	}
	return p, nil
}

type groupOf struct {
	rules  []int
	stat   bool
	key    string // with Options.Keys tensor: the name of the group's one parameter
	params []int  // in model order
	lo, hi int    // arena
}

func groupParams(params []Param, o Options) ([]groupOf, error) {
	index := map[groupKey]int{}
	var groups []groupOf
	for k, q := range params {
		rules := RulesOf(o.Rules, o.On, q.Name)
		if len(rules) == 0 {
			return nil, fmt.Errorf("shard: no sync rule takes parameter %q; end the list with match: \"*\"", q.Name)
		}
		key := groupKey{fmt.Sprint(rules), q.Stat}
		i, ok := index[key]
		if !ok {
			i = len(groups)
			index[key] = i
			groups = append(groups, groupOf{rules: rules, stat: q.Stat})
		}
		groups[i].params = append(groups[i].params, k)
	}
	sort.SliceStable(groups, func(a, b int) bool {
		if c := slices.Compare(groups[a].rules, groups[b].rules); c != 0 {
			return c < 0
		}
		return !groups[a].stat && groups[b].stat
	})
	return groups, nil
}

// groupPerParam makes every parameter a group of its own, at the same place in the arena.
func groupPerParam(p *Plan, groups []groupOf) []groupOf {
	var all []groupOf
	for _, g := range groups {
		for _, k := range g.params {
			q := p.Params[k]
			all = append(all, groupOf{rules: g.rules, stat: g.stat, key: q.Name, params: []int{k}, lo: p.At[k], hi: p.At[k] + q.N})
		}
	}
	return all
}

type groupKey struct {
	rules string
	stat  bool
}

// RulesOf lists the rules that may take the parameter of that name, in order: rules for some servers only, and then the
// first rule for all servers.
func RulesOf(rules []string, on [][]int, name string) (list []int) {
	for i, glob := range rules {
		if Match(glob, name) {
			list = append(list, i)
			if i >= len(on) || on[i] == nil {
				break
			}
		}
	}
	return list
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

// add appends a shard named after its place in the group; fillRule completes the name when its server is known. An
// empty range makes no shard: a group of two parameters has at most two shards, however many servers there are.
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
	if g.stat {
		place += "/stat"
	}
	p.Shards = append(p.Shards,
		Shard{ID: int32(len(p.Shards)), Name: place, rules: g.rules, Stat: g.stat, Server: int32(server), Lo: lo, Hi: hi})
}

// fillRule finds the shard's rule when its server is known, and completes the shard's name.
func (p *Plan) fillRule(s *Shard) error {
	on := p.options.On
	for _, rule := range s.rules {
		if rule >= len(on) || on[rule] == nil || slices.Contains(on[rule], int(s.Server)) {
			s.Rule = rule
			s.Name = p.options.Rules[rule] + "/" + s.Name
			return nil
		}
	}
	return fmt.Errorf("shard: no sync rule takes %q on server %d; end the list with match: \"*\" without servers", s.Name, s.Server)
}

// ElementAt names the parameter that element at of the arena belongs to, its element there, and its layer.
func (p *Plan) ElementAt(at int) (param string, elem, layer int) {
	for k, q := range p.Params {
		if at >= p.At[k] && at < p.At[k]+q.N {
			return q.Name, at - p.At[k], q.Layer
		}
	}
	return "", at, -1
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
