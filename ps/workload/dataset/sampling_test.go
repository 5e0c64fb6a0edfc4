package dataset

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestPartitionProperties(t *testing.T) {
	for _, scheme := range PartitionNames() {
		t.Run(scheme, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				workers := rapid.IntRange(1, 20).Draw(t, "workers")
				rows := rapid.IntRange(workers, 300).Draw(t, "rows")
				seed := rapid.Uint64().Draw(t, "seed")
				seen := make([]int, rows)
				smallest, largest := rows, 0
				for w := range workers {
					part, err := Partition(scheme, rows, workers, w, seed)
					if err != nil {
						t.Fatal(err)
					}
					again, _ := Partition(scheme, rows, workers, w, seed)
					if !slices.Equal(part, again) {
						t.Fatal("not a pure function")
					}
					smallest, largest = min(smallest, len(part)), max(largest, len(part))
					for _, r := range part {
						seen[r]++
					}
				}
				times := 1
				if scheme == "overlap_reshuffle" {
					times = workers
				}
				for r, n := range seen {
					if n != times {
						t.Fatalf("row %d occurs %d times, want %d", r, n, times)
					}
				}
				if smallest < 1 || largest-smallest > 1 {
					t.Fatalf("parts of %d to %d rows", smallest, largest)
				}
			})
		})
	}
}

func TestPartitionExamples(t *testing.T) {
	for _, c := range []struct {
		scheme        string
		rows, workers int
		want          string
	}{
		{"disjoint_contiguous", 7, 3, "[0 1] [2 3] [4 5 6]"},       // SystemML loses row 7 of 7
		{"disjoint_contiguous", 9, 4, "[0 1] [2 3] [4 5] [6 7 8]"}, // SystemML makes 3 blocks
		{"disjoint_round_robin", 7, 3, "[0 3 6] [1 4] [2 5]"},
	} {
		var got []string
		for w := range c.workers {
			rows, err := Partition(c.scheme, c.rows, c.workers, w, 1)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprint(rows))
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s of %d rows: %s, want %s", c.scheme, c.rows, s, c.want)
		}
	}
	a, _ := Partition("disjoint_random", 100, 2, 0, 1)
	b, _ := Partition("disjoint_random", 100, 2, 0, 2)
	if slices.Equal(a, b) || slices.IsSorted(a) {
		t.Error("disjoint_random does not depend on the seed, or is not random")
	}
	a, _ = Partition("overlap_reshuffle", 100, 2, 0, 1)
	b, _ = Partition("overlap_reshuffle", 100, 2, 1, 1)
	if slices.Equal(a, b) || slices.IsSorted(a) {
		t.Error("overlap_reshuffle gives workers the same order, or none")
	}
}

func TestPartitionErrors(t *testing.T) {
	for _, c := range []struct {
		scheme                string
		rows, workers, worker int
		want                  string
	}{
		{"disjoint_random", 3, 4, 0, "3 rows for 4 workers"},
		{"overlap_reshuffle", 0, 4, 0, "0 rows"},
		{"disjoint_random", 3, 2, 2, "worker 2 of 2"},
		{"disjoint_random", 3, 0, 0, "worker 0 of 0"},
		{"random", 3, 1, 0, "choose one of: disjoint_contiguous"},
	} {
		if _, err := Partition(c.scheme, c.rows, c.workers, c.worker, 1); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q in it", c.scheme, err, c.want)
		}
	}
	if rows, err := Partition("overlap_reshuffle", 3, 4, 3, 1); err != nil || len(rows) != 3 {
		t.Errorf("overlap_reshuffle with fewer rows than workers: %v, %v", rows, err)
	}
}

func TestSamplerProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(t, "rows")
		batch := rapid.IntRange(1, 100).Draw(t, "batch")
		seed := rapid.Uint64().Draw(t, "seed")
		rows := make([]int32, n)
		for i := range rows {
			rows[i] = int32(10 * i)
		}
		// In order, the batches are one long sequence in which every n rows are an epoch.
		var sequence []int32
		s := NewSampler(rows, batch, seed, 3)
		batches := make([][]int32, 4*n/batch+2)
		for i := range batches {
			batches[i] = s.Batch(int64(i), nil)
			if len(batches[i]) != batch {
				t.Fatalf("batch %d has %d rows, want %d", i, len(batches[i]), batch)
			}
			sequence = append(sequence, batches[i]...)
		}
		for lo := 0; lo+n <= len(sequence); lo += n {
			epoch := slices.Sorted(slices.Values(sequence[lo : lo+n]))
			if !slices.Equal(epoch, rows) {
				t.Fatalf("epoch %d covers %v", lo/n, epoch)
			}
		}
		// Any iteration can be computed at any time, in reused memory.
		used := NewSampler(rows, batch, seed, 3)
		dst := make([]int32, 0, batch)
		for range 10 {
			i := rapid.IntRange(0, len(batches)-1).Draw(t, "iter")
			if dst = used.Batch(int64(i), dst); !slices.Equal(dst, batches[i]) {
				t.Fatalf("iteration %d is %v, was %v", i, dst, batches[i])
			}
		}
	})
}

// The rows and batches of a worker change twice. Every epoch of an assignment has each of its rows once, whatever was dealt before, in
// an order of its own. A worker that resumes from a checkpoint in the middle of an assignment deals the same rows.
func TestAssignments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		var s *Sampler
		from := int64(0)
		for number := range int64(3) {
			n, batch := rapid.IntRange(1, 40).Draw(t, "rows"), rapid.IntRange(1, 60).Draw(t, "batch")
			a := Assignment{Number: number, From: from, Rows: ascending(0, 3*n, 3), Batch: batch}
			if number == 0 {
				s = NewSampler(a.Rows, batch, seed, 3)
			} else {
				s.Assign(a)
			}
			var dealt []int32
			iterations := int64(2*n/batch + rapid.IntRange(1, 3).Draw(t, "more"))
			for iter := from; iter < from+iterations; iter++ {
				rows := s.Batch(iter, nil)
				again := NewSampler([]int32{7}, 1, seed, 3)
				again.Assign(a)
				if got := again.Batch(iter, nil); !slices.Equal(got, rows) || len(rows) != batch {
					t.Fatalf("assignment %d, iteration %d: %v, and %v by a worker that begins there", number, iter, rows, got)
				}
				dealt = append(dealt, rows...)
			}
			for lo := 0; lo+n <= len(dealt); lo += n {
				if epoch := slices.Sorted(slices.Values(dealt[lo : lo+n])); !slices.Equal(epoch, a.Rows) {
					t.Fatalf("assignment %d: epoch %d covers %v", number, lo/n, epoch)
				}
			}
			if got := s.Assigned(); got.Number != number || got.From != from || got.Batch != batch {
				t.Fatalf("assigned %+v, want number %d from iteration %d in batches of %d", got, number, from, batch)
			}
			from += iterations
		}
	})
	rows := ascending(0, 1000, 1)
	s := NewSampler(rows, 1000, 1, 0)
	first := s.Batch(0, nil)
	s.Assign(Assignment{Number: 1, Rows: rows, Batch: 1000})
	if same := slices.Equal(first, s.Batch(0, nil)); same {
		t.Error("the second assignment deals the rows in the order of the first")
	}
	s.Assign(Assignment{Number: 2, From: 5, Rows: rows, Batch: 10})
	defer func() {
		if recover() == nil {
			t.Error("rows for an iteration before the assignment were dealt")
		}
	}()
	s.Batch(4, nil)
}

func TestSamplerSeeds(t *testing.T) {
	rows := ascending(0, 1000, 1)
	first := NewSampler(rows, 1000, 1, 0).Batch(0, nil)
	for name, other := range map[string][]int32{
		"epoch":  NewSampler(rows, 1000, 1, 0).Batch(1, nil),
		"seed":   NewSampler(rows, 1000, 2, 0).Batch(0, nil),
		"worker": NewSampler(rows, 1000, 1, 1).Batch(0, nil),
		"none":   rows,
	} {
		same := 0
		for i := range first {
			if first[i] == other[i] {
				same++
			}
		}
		if same > 20 { // two random permutations agree at 1 place on average
			t.Errorf("another %s: %d of 1000 places agree", name, same)
		}
	}
	late := NewSampler(rows, 32, 1, 0)
	if got := late.Batch(1<<40, nil); len(got) != 32 {
		t.Errorf("iteration 2^40 has %d rows", len(got))
	}
}

// These values may not change: runs and checkpoints of an older version depend on them.
func TestDrawsArePinned(t *testing.T) {
	part, err := Partition("disjoint_random", 12, 2, 1, 7)
	if err != nil {
		t.Fatal(err)
	}
	overlap, _ := Partition("overlap_reshuffle", 6, 2, 1, 7)
	got := fmt.Sprint(part, overlap, NewSampler(part, 4, 7, 1).Batch(2, nil))
	if want := "[5 9 3 11 4 7] [3 2 5 0 4 1] [4 7 3 9]"; got != want {
		t.Errorf("draws are %s, want %s", got, want)
	}
}

// With a window an epoch still has each row once, batches are a function of the iteration alone, and those of a window lie in few parts of
// the rows. A window of all rows is no window.
func TestWindowsOfRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all, workers := rapid.IntRange(8, 4000).Draw(t, "rows"), rapid.IntRange(1, 4).Draw(t, "workers")
		worker := rapid.IntRange(0, workers-1).Draw(t, "worker")
		rows, err := Partition(rapid.SampledFrom(PartitionNames()).Draw(t, "partition"), all, workers, worker, 3)
		if err != nil {
			t.Fatal(err)
		}
		window, batch := rapid.IntRange(2, all+10).Draw(t, "window"), rapid.IntRange(1, 40).Draw(t, "batch")
		s, full := NewSampler(rows, batch, 9, worker).Within(window), NewSampler(rows, batch, 9, worker)
		epochs := 3
		var order []int32
		for i := range (epochs*len(rows) + batch - 1) / batch {
			order = append(order, s.Batch(int64(i), nil)...)
		}
		for at := 0; at+len(rows) <= len(order); at += len(rows) {
			epoch, want := slices.Clone(order[at:at+len(rows)]), slices.Clone(rows)
			slices.Sort(epoch)
			slices.Sort(want)
			if !slices.Equal(epoch, want) {
				t.Fatalf("epoch %d has not each row once", at/len(rows))
			}
		}
		at := rapid.IntRange(0, len(order)/batch-1).Draw(t, "iteration")
		if got := NewSampler(rows, batch, 9, worker).Within(window).Batch(int64(at), nil); !slices.Equal(got, order[at*batch:(at+1)*batch]) {
			t.Fatalf("iteration %d has other rows for a sampler that begins there", at)
		}
		if window >= len(rows) {
			if !slices.Equal(s.Batch(2, nil), full.Batch(2, nil)) {
				t.Fatal("a window of all rows is not a full shuffle")
			}
			return
		}
		sorted := slices.Clone(rows)
		slices.Sort(sorted)
		size := (window + blocksOfWindow - 1) / blocksOfWindow
		for from := 0; from < len(rows); from += window {
			blocks := map[int]bool{}
			part := order[from:min(from+window, len(rows))]
			for _, r := range part {
				place, _ := slices.BinarySearch(sorted, r)
				blocks[place/size] = true
			}
			if most := (len(part)+size-1)/size + 2; len(blocks) > most {
				t.Fatalf("the window at %d has rows of %d blocks, at most %d", from, len(blocks), most)
			}
		}
	})
}

// Windows mix: a file that is sorted by class has batches of many classes, if a window has rows of many blocks.
func TestWindowsMix(t *testing.T) {
	rows := make([]int32, 10_000)
	for i := range rows {
		rows[i] = int32(i)
	}
	s := NewSampler(rows, 100, 1, 0).Within(3200)
	for i := range int64(100) {
		classes := map[int32]bool{}
		for _, r := range s.Batch(i, nil) {
			classes[r/1000] = true
		}
		if len(classes) < 4 {
			t.Errorf("batch %d has rows of %d of 10 classes", i, len(classes))
		}
	}
}
