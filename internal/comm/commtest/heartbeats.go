package commtest

import (
	"testing"
	"time"

	"fluentps/internal/comm"
)

// Beats returns the cases of a Transport that implements comm.Heartbeats.
func Beats() []Case {
	return []Case{
		{"a rank that does not drive sends heartbeats", beats},
		{"unheard heartbeats do not pile up", unheard},
		{"heartbeats may be in flight at the end", leftBehind},
	}
}

func heartbeats(t testing.TB, tr comm.Transport) comm.Heartbeats {
	h, ok := tr.(comm.Heartbeats)
	if !ok {
		t.Fatalf("%T is no comm.Heartbeats", tr)
	}
	return h
}

// beats sends words to every rank and hears each rank's words once, in order, while no rank drives.
func beats(t testing.TB, tr comm.Transport) {
	h, r := heartbeats(t, tr), begin(t, tr)
	got := make([][]byte, r.n)
	const rounds = 5
	sent := make([]byte, r.n)
	for open := (r.n - 1) * 2 * rounds; open > 0; time.Sleep(50 * time.Microsecond) {
		for to := range r.n {
			if to != r.me && sent[to] < rounds && h.Beat(comm.Peer(to), 10*byte(r.me)+sent[to]) {
				sent[to]++
				open--
			}
		}
		h.Heard(func(from comm.Peer, word byte) {
			got[from] = append(got[from], word)
			open--
		})
	}
	for from, words := range got {
		for i, word := range words {
			if from == r.me || word != 10*byte(from)+byte(i) {
				t.Errorf("heard %v of rank %d", words, from)
			}
		}
	}
	r.end()
}

// unheard sends words that do not pile up: the receiver hears one of each sender.
func unheard(t testing.TB, tr comm.Transport) {
	h, r := heartbeats(t, tr), begin(t, tr)
	if r.n > 1 && r.me == 0 {
		for try, first := 0, true; try < 100; try++ {
			if h.Beat(1, byte(try)) {
				if !first {
					t.Errorf("beat %d was sent although the first one was not heard", try)
				}
				first = false
			}
			time.Sleep(50 * time.Microsecond)
		}
	}
	r.meet()
	if r.me == 1 {
		for heard := false; !heard; time.Sleep(50 * time.Microsecond) {
			h.Heard(func(from comm.Peer, word byte) {
				heard = true
				if from != 0 || word != 0 {
					t.Errorf("heard %d of rank %d, want 0 of rank 0", word, from)
				}
			})
		}
	}
	r.end()
}

// leftBehind sends a word that is not heard before Close; Close ends all the same.
func leftBehind(t testing.TB, tr comm.Transport) {
	h, r := heartbeats(t, tr), begin(t, tr)
	if r.n > 1 {
		h.Beat(comm.Peer((r.me+1)%r.n), 1)
	}
	r.end()
}
