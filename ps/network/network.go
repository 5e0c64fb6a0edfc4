// Package network computes what crosses the network cards of hosts in one round, and the least time that this takes. In a round each
// worker pushes its gradients once and gets the parameters once.
//
// The bound is that of BytePS (Jiang et al., OSDI 2020, section 4.1) [P], for any placement, slicing and rates in place of equal
// links and even shards: each card carries its bytes at its rate, both ways at once, and no round is faster than its slowest card.
package network

import (
	"math"
	"slices"
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
	cards := newCards(hosts)
	for i := range p.Shards {
		sh := &p.Shards[i]
		push, reply := sh.WireBytes()
		server := hosts[roles.Servers[sh.Server]]
		for _, worker := range roles.Workers {
			if hosts[worker] != server {
				cards.moved(hosts[worker], server, push)
				cards.moved(server, hosts[worker], reply)
			}
		}
	}
	return cards
}

// AllReduce counts an all-reduce of so many bytes whose ranks on one host add up first: of H hosts each sends and receives at least
// 2 (H-1)/H of the bytes (Patarasuk and Yuan, JPDC 2009) [A].
func AllReduce(bytes int64, hosts []string) []Card {
	cards := newCards(hosts)
	h := int64(len(cards))
	for i := range cards {
		cards[i].Out = (2*bytes*(h-1) + h - 1) / h
		cards[i].In = cards[i].Out
	}
	return cards
}

type cardList []Card

func newCards(hosts []string) (cards cardList) {
	for _, host := range hosts {
		if cards.index(host) < 0 {
			cards = append(cards, Card{Host: host})
		}
	}
	return cards
}

func (l cardList) index(host string) int {
	return slices.IndexFunc(l, func(c Card) bool { return c.Host == host })
}

func (l cardList) moved(from, to string, bytes int64) {
	l[l.index(from)].Out += bytes
	l[l.index(to)].In += bytes
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
