// Package network computes what crosses the network cards of hosts in one round, and the least time that this takes. In a round each
// worker pushes its gradients once and gets the parameters once.
//
// The bound is that of BytePS (Jiang et al., OSDI 2020, section 4.1) [P], for any placement, slicing and rates in place of equal
// links and even shards: each card carries its bytes at its rate, both ways at once, and no round is faster than its slowest card.
package network

import (
	"math"
	"time"

	"fluentps/ps/shard"
)

// Goodput is the share of a link's rate that is left for the bytes of messages, beside the headers of Ethernet, IP, TCP and MPI.
const Goodput = 0.95

// Card is what crosses the network card of a host in one round, in bytes of messages. What stays on the host crosses none.
type Card struct {
	Host    string
	Out, In int64
}

// Larger is the way that takes longer.
func (c Card) Larger() int64 { return max(c.Out, c.In) }

// Cards counts a round of a parameter server; hosts names the host of each rank. The cards are in the order in which the hosts' first
// ranks come. Headers of ours are not counted.
func Cards(p *shard.Plan, roles shard.Roles, hosts []string) []Card {
	cards, index := newCards(hosts)
	push, reply := make([]int64, len(cards)), make([]int64, len(cards)) // by host: of the shards that its servers own, for one worker
	for i := range p.Shards {
		up, down := p.Shards[i].WireBytes()
		at := index[hosts[roles.Servers[p.Shards[i].Server]]]
		push[at], reply[at] = push[at]+up, reply[at]+down
	}
	allPush, allReply := sum(push), sum(reply)
	workers := make([]int64, len(cards)) // by host
	for _, worker := range roles.Workers {
		workers[index[hosts[worker]]]++
	}
	for i := range cards {
		far := sum(workers) - workers[i] // workers on other hosts
		cards[i].Out = workers[i]*(allPush-push[i]) + far*reply[i]
		cards[i].In = workers[i]*(allReply-reply[i]) + far*push[i]
	}
	return cards
}

func sum(list []int64) (all int64) {
	for _, n := range list {
		all += n
	}
	return all
}

// AllReduce counts an all-reduce of so many bytes whose ranks on one host add up first: of H hosts each sends and receives at least
// 2 (H-1)/H of the bytes (Patarasuk and Yuan, JPDC 2009) [A].
func AllReduce(bytes int64, hosts []string) []Card {
	cards, _ := newCards(hosts)
	h := int64(len(cards))
	for i := range cards {
		cards[i].Out = (2*bytes*(h-1) + h - 1) / h
		cards[i].In = cards[i].Out
	}
	return cards
}

// newCards has a card for each host, and the index of each.
func newCards(hosts []string) (cards []Card, index map[string]int) {
	index = map[string]int{}
	for _, host := range hosts {
		if _, known := index[host]; !known {
			index[host] = len(cards)
			cards = append(cards, Card{Host: host})
		}
	}
	return cards, index
}

// Rates are bytes per second that a card carries, each way, headers included.
type Rates struct {
	All float64            // of each card
	Of  map[string]float64 // of the hosts whose card has another rate
}

// Host is the rate of a host's card.
func (r Rates) Host(name string) float64 {
	if rate, other := r.Of[name]; other {
		return rate
	}
	return r.All
}

// Bound is the least time of a round, and the card that decides it.
type Bound struct {
	Time time.Duration
	Card Card
	Rate float64
}

// Least is the bound of a round: the time of the slowest card. Without a byte on any card the time is 0.
func Least(cards []Card, rates Rates) (b Bound) {
	for _, c := range cards {
		rate := rates.Host(c.Host)
		if c.Larger() == 0 || rate <= 0 {
			continue
		}
		if d := seconds(float64(c.Larger()) / (Goodput * rate)); b.Rate == 0 || d > b.Time {
			b = Bound{Time: d, Card: c, Rate: rate}
		}
	}
	return b
}

// seconds is a duration that is too long for a time.Duration cut to the longest one.
func seconds(s float64) time.Duration {
	if ns := s * 1e9; ns < math.MaxInt64 {
		return time.Duration(ns)
	}
	return math.MaxInt64
}
