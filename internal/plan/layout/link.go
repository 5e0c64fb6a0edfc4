package layout

import (
	"math"
	"slices"

	"fluentps/internal/configs"
	"fluentps/internal/core/shard"
	"fluentps/internal/plan/network"
	"fluentps/internal/policy/local"
)

// Link is what the network between the hosts of a run can do.
type Link struct {
	Rate  float64 // of the slowest card, in bytes per second, each way, headers included; 0: all ranks are on one host, or nobody knows
	Given bool    // the configuration says the rate. Else it was measured, and another run of the same configuration may measure another
}

// A server's part of the parameters is cut into shards, so that replies of the first shards travel while the others
// are pushed. With k shards a round takes 1 + 1/k of the time that the link needs in one direction. A shard costs
// headers and calls, too, which thin links hide.
const (
	partsMax = 32
	partTime = 0.0005 // seconds: the least time of a shard on the link
)

// thinPiece is the length of a piece over a thin link, in bytes. Open MPI and MPICH send that much over TCP without
// asking the receiver first (btl_tcp_eager_limit: 64 KiB): where both directions of a link are busy, a question and
// its answer wait behind what is queued. Measured with 2 servers and 2 workers over 200 Mbit/s, 16 MiB, bsp: pieces
// of 32 KiB reach 0.97 of the limit of the link, of 60 KiB 0.95, of 1 MiB 0.5.
const thinPiece = 32 << 10

// thinRate is the rate, in bytes per second, up to which a link takes so long for thinPiece bytes that shorter
// messages cost nothing: 0.16 ms.
const thinRate = 2e8

// windowTime, in seconds, is how long the link needs for the bytes in flight between a worker and a server: some
// times as long as a message and the news that it was received take on their way. More fills queues in switches,
// which drop messages and let senders at the far end wait. Measured over 200 Mbit/s: with 32 KiB in flight rounds
// reach 0.97 of the limit, with 64 KiB 0.92, with 96 KiB 0.88. Over 1 Gbit/s 64 KiB reach 0.98 and 128 KiB 0.94.
const windowTime = 0.0005

// windowsMax bounds how much more may be in flight to a server that owns more than others.
const windowsMax = 4

// Apart says whether ranks are on several hosts.
func Apart(hosts []string) bool {
	return slices.ContainsFunc(hosts, func(h string) bool { return h != hosts[0] })
}

// LinkOf is the link that a configuration gives to these hosts.
func LinkOf(c *configs.Config, hosts []string) (Link, error) {
	rates, err := Rates(c, hosts)
	if err != nil || rates == nil || !Apart(hosts) {
		return Link{}, err
	}
	l := Link{Rate: math.Inf(1), Given: true}
	for _, h := range hosts {
		l.Rate = min(l.Rate, rates.Host(h))
	}
	return l, nil
}

// IsThin says whether messages as short as MPI sends at once cost no time on the link.
func (l Link) IsThin() bool { return l.Rate > 0 && l.Rate <= thinRate }

// cut sets how the link wants parameters to be cut, where the configuration says nothing.
func (l Link) cut(c *configs.Config, o *shard.Options) {
	if c.InRounds() || Reduces(c) { // a baseline has messages of its own
		return
	}
	o.Parts = c.Shards.Parts
	if e, _ := local.All.Lookup(c.Local.Policy); e.Fragments && o.Parts == 0 { // each server has a part of each fragment
		o.Parts = int(c.Local.Fragments)
	}
	if !l.counts(c) {
		return
	}
	if o.Parts == 0 {
		o.Parts, o.PartMin = partsMax, l.partMin()
	}
	if l.IsThin() {
		o.PieceMax = thinPiece
	}
}

// counts says whether the cut depends on the link. With a codec, which works on pieces, it does not depend on what
// was measured, and so no bits do.
func (l Link) counts(c *configs.Config) bool {
	return l.Rate > 0 && !c.InRounds() && !Reduces(c) && (l.Given || !c.Payload.Lossy())
}

// windows is by server how many bytes may be in flight between it and a worker over a thin link; nil elsewhere. All
// messages to a rank share its card, in proportion to what is in flight. So a server that owns twice as much has
// twice the window: else its worker's other pushes, and the replies of servers that work, too, would leave it
// waiting.
func (l Link) windows(c *configs.Config, p *shard.Plan) []int64 {
	if !l.IsThin() || !l.counts(c) {
		return nil
	}
	bytes := make([]int64, p.Servers)
	for i := range p.Shards {
		bytes[p.Shards[i].Server] += p.Shards[i].Bytes()
	}
	least := int64(math.MaxInt64)
	for _, n := range bytes {
		if n > 0 {
			least = min(least, n)
		}
	}
	base := thinPiece * max(1, int64(math.Round(l.Rate*windowTime/thinPiece)))
	for server, n := range bytes {
		bytes[server] = base * min(windowsMax, max(1, (n+least/2)/least))
	}
	return bytes
}

// partMin is the least size of a shard, in bytes. It is rounded to powers of two, so that two measurements of a link rarely disagree.
func (l Link) partMin() int64 {
	const least = float64(thinPiece)
	return int64(least * math.Exp2(max(0, math.Round(math.Log2(l.Rate*partTime/least)))))
}

// AsksForLink says whether something depends on a link that the configuration does not give.
func AsksForLink(c *configs.Config) bool {
	return !c.InRounds() && !Reduces(c) && !c.Payload.Lossy()
}

// Rates are the rates of the network cards: those of the configuration, else what was measured; nil: neither is known.
func (l Link) Rates(c *configs.Config, hosts []string) *network.Rates {
	rates, _ := Rates(c, hosts) // setup has refused an error
	if rates == nil && l.Rate > 0 {
		rates = &network.Rates{All: l.Rate}
	}
	return rates
}
