// Package network computes how many bytes cross the network card of each host in one round, and the least time of a round. In a round, each
// worker pushes its gradients once and receives the parameters once.
//
// The bound is that of BytePS (Jiang et al., OSDI 2020, section 4.1) [P]: each card carries its bytes at its rate,
// both ways at once, and no round is faster than the slowest card. BytePS has equal links and even shards; here
// placement, slicing and rates may be any.
package network

import (
	"math"
	"time"

	"fluentps/internal/core/shard"
)

// Goodput is the share of a link's rate that carries the bytes of messages. The rest is headers of Ethernet, IP, TCP and MPI.
const Goodput = 0.95

// Card is the traffic of a host's network card in one round, in bytes of messages. Messages inside the host do not count.
type Card struct {
	Host    string
	Out, In int64
}

// Larger returns the bytes of the direction that takes longer.
func (c Card) Larger() int64 { return max(c.Out, c.In) }

// Cards counts a round of a parameter server. hosts names the host of each rank. The cards are in the order of the first ranks of the
// hosts. The headers of our messages do not count.
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
	allWorkers := sum(workers)
	for i := range cards {
		far := allWorkers - workers[i] // workers on other hosts
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

// Rates are the rates of the cards in bytes per second, each way, headers included.
type Rates struct {
	All float64            // of every card that Of does not name
	Of  map[string]float64 // by host
}

// Host returns the rate of a host's card.
func (r Rates) Host(name string) float64 {
	if rate, other := r.Of[name]; other {
		return rate
	}
	return r.All
}

// Bound is the least time of a round, and the card that determines it.
type Bound struct {
	Time time.Duration
	Card Card
	Rate float64
}

// Least returns the bound of a round: the time of the slowest card, or 0 if no card carries a byte.
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

// seconds converts seconds to a duration. It returns the longest time.Duration for a time that does not fit.
func seconds(s float64) time.Duration {
	if ns := s * 1e9; ns < math.MaxInt64 {
		return time.Duration(ns)
	}
	return math.MaxInt64
}
