package mapped

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Ahead asks in the background for all parts that it is given, one batch of them at a time, and asking changes nothing that is read.
func TestAhead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	content := make([]byte, 3<<20)
	for i := range content {
		content[i] = byte(i % 251)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, near := range []bool{false, true} {
		waits := int64(0)
		a := &Ahead{Near: near, count: func() int64 { waits++; return waits }}
		var asked sync.WaitGroup
		rows := make([]int, 0, 8)
		for at := range 40 {
			if !a.Wants() {
				continue // it still asks for the rows of before
			}
			rows = append(rows[:0], at, (at*7919)%3000, 3071)
			asked.Add(1)
			a.Ask(func(part func(b []byte)) {
				defer asked.Done()
				for _, r := range rows {
					part(f.Bytes[r<<10 : (r+1)<<10])
				}
				part(nil)
			})
			if f.Bytes[at<<10] != content[at<<10] {
				t.Fatalf("byte %d has changed", at<<10)
			}
			if at == 0 {
				asked.Wait()
			}
		}
		asked.Wait()
	}
}

// Without a wait for a disk it stops asking after a while, and begins again with the next one, for longer.
func TestAheadStops(t *testing.T) {
	waits := int64(0)
	a := &Ahead{count: func() int64 { return waits }}
	times := func() (n int) {
		for range 3 * spanMost {
			if a.Wants() {
				n++
			}
		}
		return n
	}
	if n := times(); n != 0 {
		t.Errorf("without a wait it asks %d times", n)
	}
	for want := spanFirst; want <= spanMost; want *= 2 {
		waits++
		if n := times(); n != want-1 {
			t.Errorf("after a wait it asks %d times, want %d", n, want-1)
		}
	}
	if waits++; times() != spanMost-1 {
		t.Errorf("it asks more than %d times", spanMost)
	}
}
