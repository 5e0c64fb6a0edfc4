package station

import (
	"fmt"
	"slices"
	"time"

	"fluentps/internal/comm"
	"fluentps/internal/plan/layout"
	"fluentps/internal/plan/network"
	"fluentps/internal/rank/link"
)

// The link is probed by one rank of each host, which sends to that of the next host while it receives from that of
// the one before: messages as training sends them over thin links, some at a time.
const (
	probeBytes  = 32 << 10 // of a message
	probeAtOnce = 4        // messages on their way
)

// probeMessages are the messages of the two rounds. The first opens connections and uses up what a switch lets through without a limit. The
// second counts: 40 ms over 200 Mbit/s.
var probeMessages = []int{8, 32}

// MeasureLink measures the rate of the network between the hosts, if the configuration does not say it and something
// depends on it. It sets the same Link on every rank.
func (s *Station) MeasureLink() error {
	if s.Link.Rate > 0 || !layout.AsksForLink(s.Config) {
		return nil
	}
	firsts := firstOfHosts(s.Hosts)
	if len(firsts) < 2 {
		return nil
	}
	rate := 0.0
	if k := slices.Index(firsts, s.Me); k >= 0 {
		var err error
		if rate, err = s.probe(firsts[(k+1)%len(firsts)], firsts[(k+len(firsts)-1)%len(firsts)]); err != nil {
			return err
		}
	}
	all, err := link.Gather(s.Net, rate)
	if err != nil {
		return err
	}
	for _, rate := range all {
		if rate > 0 && (s.Link.Rate == 0 || rate < s.Link.Rate) {
			s.Link.Rate = rate
		}
	}
	return link.Spread(s.Net, &s.Link)
}

// firstOfHosts is the first rank of each host.
func firstOfHosts(hosts []string) (firsts []int) {
	for rank, host := range hosts {
		if slices.Index(hosts, host) == rank {
			firsts = append(firsts, rank)
		}
	}
	return firsts
}

// probe sends to one rank and receives from another. It returns the rate, headers included, in bytes per second.
func (s *Station) probe(to, from int) (rate float64, err error) {
	out, err := s.Transport.Alloc(probeBytes)
	if err != nil {
		return 0, err
	}
	defer out.Free()
	in, err := s.Transport.Alloc(probeBytes)
	if err != nil {
		return 0, err
	}
	defer in.Free()
	for _, messages := range probeMessages {
		p := probing{s: s, to: to, from: from, out: out, in: in, unsent: messages, unreceived: messages}
		began := s.Transport.Now()
		for range probeAtOnce {
			p.send()
		}
		for range messages {
			p.receive()
		}
		if err := s.Net.Drive(func() bool { return p.open == 0 && p.unreceived == 0 }); err != nil {
			return 0, err
		}
		took := max(s.Transport.Now()-began, time.Microsecond)
		rate = float64(messages) * probeBytes / network.Goodput / took.Seconds()
	}
	return rate, nil
}

// probing is one round of a rank. All messages have one tag, so they are received in order, into the same place: nobody reads them.
type probing struct {
	s                        *Station
	to, from                 int
	out, in                  *comm.Buf
	open, unsent, unreceived int
}

func (p *probing) send() {
	if p.unsent == 0 {
		return
	}
	p.unsent--
	p.open++
	sent := func(d comm.Done) {
		p.open--
		if d.Err != nil {
			p.s.Net.Fail(fmt.Errorf("station: probe of the link to rank %d: %w", p.to, d.Err))
		}
		p.send()
	}
	if t, ok := p.s.Transport.(comm.Matching); ok {
		t.IsendMatched(comm.Peer(p.to), comm.Data, link.TagProbe, p.out, 0, probeBytes, sent)
		return
	}
	p.s.Transport.Isend(comm.Peer(p.to), comm.Data, link.TagProbe, p.out, 0, probeBytes, sent)
}

func (p *probing) receive() {
	p.s.Transport.Irecv(comm.Peer(p.from), comm.Data, link.TagProbe, p.in, 0, probeBytes, func(d comm.Done) {
		p.unreceived--
		p.s.Net.Whole(d, probeBytes, "probe of the link")
	})
}

// Rates are the rates of the network cards, as the configuration gives them or as they were measured; nil: neither.
func (s *Station) Rates() *network.Rates {
	return s.Link.Rates(s.Config, s.Hosts)
}
