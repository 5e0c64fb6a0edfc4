package sums

import (
	"fmt"
	"math"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"fluentps/internal/comm"
	"fluentps/internal/comm/commtest"
	"fluentps/internal/comm/inproc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// reducing is a transport with sums of its own.
type reducing struct {
	comm.Transport
	sums *Reducer
}

func (r reducing) Iallreduce(b *comm.Buf, off, n int, h comm.Handler) comm.Op {
	return r.sums.Iallreduce(b, off, n, h)
}

func (r reducing) Close() error {
	r.sums.Close()
	return r.Transport.Close()
}

// The algorithms are Reducers as the transports' own are.
func TestConformance(t *testing.T) {
	for _, algorithm := range Algorithms() {
		t.Run(algorithm, func(t *testing.T) {
			commtest.Run(t, commtest.Sums(), func(t *testing.T, n int) (world []comm.Transport) {
				for _, tr := range inproc.New(n, inproc.Options{}) {
					sums, err := New(tr, algorithm, 77<<8)
					if err != nil {
						t.Fatal(err)
					}
					world = append(world, reducing{tr, sums})
				}
				return world
			}, 1, 2, 3, 4, 5, 6, 8)
		})
	}
}

// play runs the phases of all ranks on vectors of integers, in rounds: a rank that receives waits until its sender
// has come to the same phase of the pair. It fails if the ranks wait for each other for good.
func play(t *rapid.T, phases func(me, n, elements int) []phase, n, elements int) {
	type message struct {
		from int
		data []int64
		at   span
	}
	values, plans, at := make([][]int64, n), make([][]phase, n), make([]int, n)
	inbox, wasSent := make([][]message, n), make([]bool, n)
	for me := range n {
		values[me] = make([]int64, elements)
		for i := range values[me] {
			values[me][i] = int64(me+1) * int64(i+1)
		}
		plans[me] = phases(me, n, elements)
	}
	for moved := true; moved; {
		moved = false
		for me := range n {
			if at[me] == len(plans[me]) {
				continue
			}
			p := plans[me][at[me]]
			if !wasSent[me] {
				wasSent[me], moved = true, true
				if p.to >= 0 && p.out.hi > p.out.lo {
					inbox[p.to] = append(inbox[p.to], message{me, append([]int64(nil), values[me][p.out.lo:p.out.hi]...), p.out})
				}
			}
			if p.from >= 0 && p.in.hi > p.in.lo {
				k := -1
				for i, m := range inbox[me] {
					if m.from == p.from {
						k = i
						break
					}
				}
				if k < 0 {
					continue
				}
				m := inbox[me][k]
				inbox[me] = append(inbox[me][:k:k], inbox[me][k+1:]...)
				if m.at != p.in {
					t.Fatalf("rank %d expects %v of rank %d, which sends %v", me, p.in, p.from, m.at)
				}
				for i, v := range m.data {
					if p.add {
						values[me][p.in.lo+i] += v
					} else {
						values[me][p.in.lo+i] = v
					}
				}
			}
			at[me]++
			wasSent[me], moved = false, true
		}
	}
	for me := range n {
		if at[me] < len(plans[me]) || len(inbox[me]) > 0 {
			t.Fatalf("rank %d of %d stands at phase %d of %d, with %d messages unread", me, n, at[me], len(plans[me]), len(inbox[me]))
		}
		for i, v := range values[me] {
			if want := int64(i+1) * int64(n) * int64(n+1) / 2; v != want {
				t.Fatalf("rank %d of %d: element %d of %d is %d, want %d", me, n, i, elements, v, want)
			}
		}
	}
}

// For any number of ranks and elements, both algorithms add up everything once, and no rank waits for ever.
func TestPhasesAddUpEverything(t *testing.T) {
	for name, phases := range map[string]func(me, n, elements int) []phase{"ring": ring, "halving": halving} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				play(t, phases, rapid.IntRange(1, 20).Draw(t, "ranks"), rapid.IntRange(1, 50).Draw(t, "elements"))
			})
		})
	}
}

// A rank sends and receives 2 (N-1)/N of the vector; recursive halving does so where N is a power of two.
func TestPhasesMoveTheLeast(t *testing.T) {
	const elements = 1 << 12
	for _, n := range []int{2, 4, 8, 16} {
		for name, phases := range map[string]func(me, n, elements int) []phase{"ring": ring, "halving": halving} {
			for me := range n {
				sent, received := 0, 0
				for _, p := range phases(me, n, elements) {
					sent, received = sent+p.out.hi-p.out.lo, received+p.in.hi-p.in.lo
				}
				if want := 2 * elements * (n - 1) / n; sent != want || received != want {
					t.Errorf("%s: rank %d of %d sends %d elements and receives %d, want %d", name, me, n, sent, received, want)
				}
			}
		}
	}
	for n, want := range map[int][2]int{2: {2, 2}, 4: {6, 4}, 8: {14, 6}, 16: {30, 8}} {
		if r, h := len(ring(0, n, elements)), len(halving(0, n, elements)); r != want[0] || h != want[1] {
			t.Errorf("%d ranks: %d steps of the ring and %d of halving, want %v", n, r, h, want)
		}
	}
}

func TestAnUnknownAlgorithmIsRefused(t *testing.T) {
	if _, err := New(inproc.New(1, inproc.Options{})[0], "star", 1); err == nil ||
		err.Error() != `sums: algorithm "star"; it is one of [ring halving]` {
		t.Errorf("%v", err)
	}
}

// NaN and infinities travel like other values.
func TestAdd(t *testing.T) {
	a, b := []float32{1, 2, float32(math.Inf(1))}, []float32{3, -2, 1}
	add(a, b)
	if fmt.Sprint(a) != "[4 0 +Inf]" {
		t.Errorf("%v", a)
	}
}
