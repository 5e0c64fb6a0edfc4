package servernode

import (
	"fmt"
	"math"
	"slices"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/core/shard"
	"fluentps/internal/policy/optim"
)

// With train.clip of: mean the norm of an iteration's mean is taken over the trained shards of all servers. A server asks its driver for
// the squares of each of its pending sums, tells them to the other servers, and holds the version back until it knows those of all:
//
//	scheme: Commit, Reply ... Close ─► Norm ─► Normed ─► wire.Normed to the other servers
//	            held back ........................... ─► all are in: Commit with a smaller weight, Reply ...
//
// The shards agree on contributors, so each of them closes the same iterations, with pushes of the same workers. A shard that closes an
// iteration without a commit has squares of 0. Waiting stays free of cycles: a worker pushes all shards before it waits for any, so what a
// shard waits for never depends on its own replies.

// clipping is what a server knows of norms; nil: means are not clipped.
type clipping struct {
	spec    optim.Clip
	trained []int32             // the trained shards of all servers, ascending
	others  []int32             // the other servers that own some of them, ascending
	upTo    []int64             // by shard: all iterations up to this one are known to be closed, and their squares are; -1: none
	squares []map[int64]float64 // by shard and iteration; 0 if missing
	held    []*heldVersion      // by shard of this server; nil: nothing is held back
	clipped Clipped
}

// Clipped counts iterations whose mean was clipped, among all.
type Clipped struct{ Clipped, Of int64 }

// heldVersion is a commit that waits for the norm, and what follows it in its shard.
type heldVersion struct {
	iter     int64 // that the commit closes; -1: the shard has not said
	squares  float64
	measured bool
	effects  []core.Effect // the commit, and copies of its version
	empty    []int64       // iterations that the shard has closed since, without a commit
	replies  []heldReply
}

// heldReply is a reply that its scheme has decided.
type heldReply struct {
	worker     int32
	life, iter int64
}

func newClipping(spec optim.Clip, p *shard.Plan, me int32) *clipping {
	if !spec.OfMean() {
		return nil
	}
	k := &clipping{spec: spec, upTo: make([]int64, len(p.Shards)), squares: make([]map[int64]float64, len(p.Shards)),
		held: make([]*heldVersion, len(p.Shards))}
	for i := range p.Shards {
		sh := &p.Shards[i]
		if sh.Stat {
			continue
		}
		k.trained = append(k.trained, sh.ID)
		k.upTo[i], k.squares[i] = -1, map[int64]float64{}
		if sh.Server != me && !slices.Contains(k.others, sh.Server) {
			k.others = append(k.others, sh.Server)
		}
	}
	slices.Sort(k.others)
	return k
}

// hold begins to hold a version back, whose commit is an effect of this step.
func (s *Server) hold(sh *ownShard) {
	if s.clip == nil || s.plan.Shards[sh.id].Stat {
		return
	}
	if h := s.clip.held[sh.id]; h != nil { // nobody pushes the next iteration before this shard has answered
		panic(fmt.Sprintf("core: server %d: shard %d makes version %d while an earlier one waits for the norm of iteration %d", s.me, sh.id,
			sh.versions.version, h.iter))
	}
	s.clip.held[sh.id] = &heldVersion{iter: -1}
}

// holdReply says whether a reply waits for its version.
func (s *Server) holdReply(sh *ownShard, w int32, iter int64) bool {
	if s.clip == nil || s.clip.held[sh.id] == nil {
		return false
	}
	h := s.clip.held[sh.id]
	h.replies = append(h.replies, heldReply{worker: w, life: s.members.life[w], iter: iter})
	return true
}

// Clipped counts the iterations whose mean this server has clipped, since it was made.
func (s *Server) Clipped() Clipped {
	if s.clip == nil {
		return Clipped{}
	}
	return s.clip.clipped
}

// holdBack takes the effects of a step from the n-th on that must wait for a norm out of it.
func (s *Server) holdBack(n int, out []core.Effect) []core.Effect {
	if s.clip == nil {
		return out
	}
	return s.sift(slices.Clone(out[n:]), out[:n])
}

// sift appends the effects that need not wait.
func (s *Server) sift(fresh, out []core.Effect) []core.Effect {
	k := s.clip
	for i := range fresh {
		e := &fresh[i]
		if !ofVersion(e.Kind) || s.plan.Shards[e.Shard].Stat {
			out = append(out, *e)
			continue
		}
		h := k.held[e.Shard]
		if e.Kind == core.Close {
			out = s.closedAt(h, e, append(out, *e))
			continue
		}
		if h == nil || e.Kind == core.Fold && len(h.effects) == 0 { // a fold of the version itself
			out = append(out, *e)
			continue
		}
		if h.effects = append(h.effects, *e); e.Kind == core.Commit {
			out = append(out, core.Effect{Kind: core.Norm, Shard: e.Shard, Weight: e.Weight})
		}
	}
	return out
}

// closedAt notes that a shard has closed an iteration, with the commit that it holds back, or with none.
func (s *Server) closedAt(h *heldVersion, e *core.Effect, out []core.Effect) []core.Effect {
	switch {
	case h == nil:
		return s.tellSquares(e.Shard, e.Iter, 0, out)
	case h.iter >= 0:
		h.empty = append(h.empty, e.Iter)
		return out
	}
	if h.iter = e.Iter; h.measured {
		return s.tellSquares(e.Shard, h.iter, h.squares, out)
	}
	return out
}

// ofVersion says whether an effect belongs to the versions of its shard, and so must not overtake a commit that is held back. Receives of
// pushes need not wait: the pending sums were folded when their squares were taken. Replies wait before they are effects (holdReply),
// because their workers may be lost.
func ofVersion(k core.EffectKind) bool {
	switch k {
	case core.Fold, core.Commit, core.Close, core.Snapshot, core.Save:
		return true
	}
	return false
}

// normed notes squares, of a shard of this server or of another one. What it lets go has waited already.
func (s *Server) normed(in core.Input, out []core.Effect) []core.Effect {
	s.must(s.clip != nil, in)
	if in.Kind == core.Arrived {
		s.must(in.Msg.Shard >= 0 && slices.Contains(s.clip.trained, in.Msg.Shard), in)
		return s.noteSquares(in.Msg, out)
	}
	h := s.clip.held[in.Shard]
	s.must(h != nil && !h.measured, in)
	if h.squares, h.measured = in.Squares, true; h.iter < 0 {
		return out
	}
	return s.tellSquares(in.Shard, h.iter, h.squares, out)
}

// tellSquares tells the other servers the squares of a shard of this server.
func (s *Server) tellSquares(id int32, iter int64, squares float64, out []core.Effect) []core.Effect {
	m := wire.Header{Kind: wire.Normed, Shard: id, Iter: iter, Samples: int64(math.Float64bits(squares))}
	for _, to := range s.clip.others {
		out = append(out, core.Effect{Kind: core.SendServer, To: to, Msg: m})
	}
	return s.noteSquares(m, out)
}

// noteSquares notes the squares of a shard of any server, and lets versions go whose norm is known then.
func (s *Server) noteSquares(m wire.Header, out []core.Effect) []core.Effect {
	k := s.clip
	k.squares[m.Shard][m.Iter] = math.Float64frombits(uint64(m.Samples))
	k.upTo[m.Shard] = max(k.upTo[m.Shard], m.Iter)
	known := k.upTo[k.trained[0]]
	for _, id := range k.trained {
		known = min(known, k.upTo[id])
	}
	for _, id := range s.owned {
		if h := k.held[id]; h != nil && h.measured && h.iter >= 0 && h.iter <= known {
			out = s.letGo(id, out)
		}
	}
	for _, id := range k.trained {
		for iter := range k.squares[id] {
			if iter <= known && !s.awaits(iter) {
				delete(k.squares[id], iter)
			}
		}
	}
	return out
}

// awaits says whether a version of that iteration is held back here.
func (s *Server) awaits(iter int64) bool {
	return slices.ContainsFunc(s.clip.held, func(h *heldVersion) bool { return h != nil && (h.iter < 0 || h.iter == iter) })
}

// letGo emits a commit that was held back, with the weight that clips it, and what waits behind it.
func (s *Server) letGo(id int32, out []core.Effect) []core.Effect {
	k := s.clip
	h := k.held[id]
	k.held[id] = nil
	var total float64
	for _, other := range k.trained {
		total += k.squares[other][h.iter]
	}
	commit := h.effects[0]
	by := k.spec.Scale(total, 1)
	if id == s.firstTrained() {
		if k.clipped.Of++; by < 1 {
			k.clipped.Clipped++
		}
	}
	commit.Weight *= float64(by)
	out = append(append(out, commit), h.effects[1:]...)
	for _, r := range h.replies {
		if !s.members.left[r.worker] && s.members.life[r.worker] == r.life {
			out = s.send(s.shards[id], r.worker, r.iter, out)
		}
	}
	for _, iter := range h.empty {
		out = s.tellSquares(id, iter, 0, out)
	}
	return out
}

// firstTrained is the first trained shard of this server, which counts.
func (s *Server) firstTrained() int32 {
	for _, id := range s.owned {
		if !s.plan.Shards[id].Stat {
			return id
		}
	}
	return -1
}

// holdsBack says whether some version waits for a norm.
func (s *Server) holdsBack() bool {
	return s.clip != nil && slices.ContainsFunc(s.clip.held, func(h *heldVersion) bool { return h != nil })
}

// textClip names the shards whose version waits, and for whom; "": there are none.
func (s *Server) textClip() (text string) {
	if s.clip == nil {
		return ""
	}
	for id, h := range s.clip.held {
		if h == nil {
			continue
		}
		text += fmt.Sprintf(" shard%d waits for the norm of iteration %d, without", id, h.iter)
		for _, other := range s.clip.trained {
			if s.clip.upTo[other] < h.iter {
				text += fmt.Sprintf(" shard%d", other)
			}
		}
	}
	return text
}
