package network

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fluentps/internal/core/shard"
)

// dumbCards counts the traffic one message at a time, for each piece and each worker.
func dumbCards(p *shard.Plan, roles shard.Roles, hosts []string) map[string][2]int64 {
	got := map[string][2]int64{}
	send := func(from, to int, bytes int64) {
		if hosts[from] == hosts[to] {
			return
		}
		a, b := got[hosts[from]], got[hosts[to]]
		a[0] += bytes
		b[1] += bytes
		got[hosts[from]], got[hosts[to]] = a, b
	}
	for _, q := range p.Pieces {
		server := roles.Servers[p.Shards[q.Shard].Server]
		for _, worker := range roles.Workers {
			send(worker, server, q.PushBytes)
			send(server, worker, q.ReplyBytes)
		}
	}
	return got
}

func TestCardsAreThoseOfEachMessage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var hosts []string
		for range rapid.IntRange(3, 9).Draw(t, "ranks") {
			hosts = append(hosts, fmt.Sprintf("h%d", rapid.IntRange(0, 4).Draw(t, "host")))
		}
		servers := rapid.IntRange(1, 2).Draw(t, "servers")
		placement := rapid.SampledFrom([]string{"spread", "pack", "colocate"}).Draw(t, "placement")
		roles, err := shard.Assign(hosts, servers, placement)
		if err != nil {
			t.Fatal(err)
		}
		var params []shard.Param
		for i := range rapid.IntRange(1, 5).Draw(t, "parameters") {
			params = append(params, shard.Param{Name: fmt.Sprintf("p%d", i), N: rapid.IntRange(1, 3000).Draw(t, "n"), Layer: i})
		}
		p, err := shard.Cut(params, shard.Options{
			Servers: servers, MaxBytes: 1 << rapid.IntRange(6, 12).Draw(t, "piece"),
			Slice: rapid.SampledFrom([]string{"even", "layer"}).Draw(t, "slice"), Rules: []string{"*"},
		})
		if err != nil {
			t.Fatal(err)
		}
		want := dumbCards(p, roles, hosts)
		var out, in int64
		for _, c := range Cards(p, roles, hosts) {
			if want[c.Host] != [2]int64{c.Out, c.In} {
				t.Fatalf("%+v, want %v", c, want[c.Host])
			}
			out, in = out+c.Out, in+c.In
		}
		if out != in {
			t.Fatalf("%d bytes leave and %d arrive", out, in)
		}
	})
}

// The bounds of the BytePS paper for n workers and k servers with equal links: M/B max(1, n/k), and 2 M (n-1)/(n B) with colocated servers.
func TestBoundsOfEqualLinks(t *testing.T) {
	const bytes, rate = 1 << 24, 25e6
	for _, c := range []struct {
		servers, workers int
		placement        string
		times            float64 // of bytes over the rate
	}{
		{2, 2, "spread", 1}, {1, 3, "spread", 3}, {4, 2, "spread", 1}, {4, 0, "colocate", 2 * 3.0 / 4},
	} {
		hosts := make([]string, c.servers+c.workers)
		for i := range hosts {
			hosts[i] = fmt.Sprintf("h%d", i)
		}
		roles, err := shard.Assign(hosts, c.servers, c.placement)
		if err != nil {
			t.Fatal(err)
		}
		p, err := shard.Cut([]shard.Param{{Name: "w", N: bytes / shard.ElemBytes}},
			shard.Options{Servers: c.servers, MaxBytes: 1 << 20, Slice: "even", Rules: []string{"*"}})
		if err != nil {
			t.Fatal(err)
		}
		got := Least(Cards(p, roles, hosts), Rates{All: rate}).Time.Seconds()
		if want := c.times * bytes / (Goodput * rate); math.Abs(got/want-1) > 1e-6 {
			t.Errorf("%d servers, %d workers, %s: %v s, want %v", c.servers, c.workers, c.placement, got, want)
		}
	}
	for _, c := range AllReduce(bytes, []string{"a", "a", "b", "c", "d"}) {
		if c.Out != 2*bytes*3/4 || c.In != c.Out {
			t.Errorf("all-reduce: %+v", c)
		}
	}
}

func TestTheSlowestCardDecides(t *testing.T) {
	cards := []Card{{"a", 100, 10}, {"b", 10, 100}, {"c", 30, 30}, {"d", 0, 0}}
	b := Least(cards, Rates{All: 100, Of: map[string]float64{"c": 10}})
	if b.Card.Host != "c" || b.Rate != 10 || b.Time != seconds(30/(Goodput*10)) {
		t.Errorf("%+v", b)
	}
	if b := Least([]Card{{"d", 0, 0}}, Rates{All: 100}); b.Time != 0 {
		t.Errorf("nothing on the cards: %+v", b)
	}
	if b := Least([]Card{{"d", math.MaxInt64 - 9, 0}}, Rates{All: 1e-9}); b.Time != math.MaxInt64*time.Nanosecond {
		t.Errorf("for ever: %+v", b)
	}
}

func TestRates(t *testing.T) {
	for text, want := range map[string]float64{"200Mbit": 25e6, "10 Gbit/s": 1.25e9, "25MB": 25e6, "12.5MB/s": 12.5e6,
		"8bit": 1, "100kbit": 12500} {
		if got, err := ParseRate(text); err != nil || got != want {
			t.Errorf("%s: %v, %v; want %v", text, got, err, want)
		}
	}
	for rate, want := range map[float64]string{25e6: "200 Mbit/s", 1.25e9: "10 Gbit/s", 1: "8 bit/s",
		12.5e10: "1 Tbit/s", 1.25e8 / 3: "333.33 Mbit/s"} {
		if got := FormatRate(rate); got != want {
			t.Errorf("%v: %s, want %s", rate, got, want)
		}
	}
	hosts := []string{"a", "b", "b", "c"}
	r, err := ParseRates("10Gbit, b=1Gbit", hosts)
	if err != nil || r.Host("a") != 1.25e9 || r.Host("b") != 1.25e8 {
		t.Errorf("%+v, %v", r, err)
	}
	for text, want := range map[string]string{
		"": "is not a rate;", "10": "is not a rate;", "10Gbit,1Gbit": "two rates for all hosts", "a=1Gbit,a=2Gbit,1Gbit": "two rates for host a",
		"1Gbit,d=1Gbit": "there is no host d; the hosts are a, b, c", "a=1Gbit": "need a rate", "9e9Gbit": "is not a rate;",
		"99999999Gbit": "is not a rate from",
	} {
		if _, err := ParseRates(text, hosts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
