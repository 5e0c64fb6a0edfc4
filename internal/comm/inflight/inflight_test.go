package inflight

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fluentps/internal/comm"
)

// Compares Queues with plain slices: pushes, removals from anywhere, and walks.
func TestQueuesMatchPlainSlices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q Queues
		twin := map[uint64][]uint32{}
		where := map[uint32]uint64{}
		// Few keys, so that queues get long, and such as share a chain.
		keys := rapid.SliceOfN(rapid.Uint64(), 1, 40).Draw(t, "keys")
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			key := rapid.SampledFrom(keys).Draw(t, "key")
			n := uint32(rapid.IntRange(0, 99).Draw(t, "number"))
			if at, in := where[n]; in {
				q.Remove(n)
				twin[at] = slices.DeleteFunc(twin[at], func(m uint32) bool { return m == n })
				delete(where, n)
			} else {
				q.Push(key, n)
				twin[key] = append(twin[key], n)
				where[n] = key
			}
			for _, key := range keys {
				var got []uint32
				for n := q.First(key); n != None; n = q.Next(n) {
					got = append(got, n)
				}
				var back []uint32
				for n := q.Last(key); n != None; n = q.Prev(n) {
					back = append(back, n)
				}
				if slices.Reverse(back); !slices.Equal(back, twin[key]) {
					t.Fatalf("queue %d from behind holds %v, want %v", key, back, twin[key])
				}
				if !slices.Equal(got, twin[key]) {
					t.Fatalf("queue %d holds %v, want %v", key, got, twin[key])
				}
			}
			if q.Len() != len(where) {
				t.Fatalf("Len is %d, want %d", q.Len(), len(where))
			}
		}
	})
}

func TestSlotsForgetAndRename(t *testing.T) {
	var s Slots[string]
	a, b := s.Put("a"), s.Put("b")
	first := s.Op(a)
	if slot, ok := s.Find(first); !ok || slot != a || *s.At(a) != "a" || s.Len() != 2 || first == 0 || first == s.Op(b) {
		t.Fatalf("slot %d of %d holds %q", slot, s.Len(), *s.At(a))
	}
	if got := s.Take(a); got != "a" || s.Len() != 1 {
		t.Fatalf("Take returned %q, %d are left", got, s.Len())
	}
	if _, ok := s.Find(first); ok {
		t.Fatal("an operation that is over was found")
	}
	if again := s.Put("c"); again != a || s.Op(again) == first {
		t.Fatalf("slot %d with name %d, want slot %d with another name than %d", again, s.Op(again), a, first)
	}
	if _, ok := s.Find(comm.Op(17)); ok {
		t.Fatal("an operation that never was was found")
	}
	live := 0
	s.Each(func(slot uint32, value *string) { live++ })
	if live != 2 {
		t.Fatalf("Each met %d live slots, want 2", live)
	}
}

func TestSteadyStateDoesNotAllocate(t *testing.T) {
	var s Slots[[6]uint64]
	var q Queues
	next := uint64(0)
	turn := func() {
		for range 50 { // keys that never recur, as tags of pieces may
			slot := s.Put([6]uint64{})
			q.Push(next, slot)
			next++
		}
		for key := next - 50; key < next; key++ {
			slot := q.First(key)
			q.Remove(slot)
			s.Take(slot)
		}
	}
	if n := testing.AllocsPerRun(200, turn); n != 0 {
		t.Fatalf("%v allocations per turn", n)
	}
}
