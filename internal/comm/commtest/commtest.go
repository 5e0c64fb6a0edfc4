// Package commtest holds the cases that every Transport must pass. Each case runs on all ranks, in the same order
// everywhere, and leaves nothing in flight. So one suite serves ranks that are goroutines of one process (Run) and
// ranks that are processes under mpirun (Rank).
package commtest

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"fluentps/internal/comm"
)

// Case is one property of a Transport.
type Case struct {
	Name string
	Run  func(t testing.TB, tr comm.Transport)
}

// hang is the time after which a case counts as hung; only a transport that lost a message takes this long.
const hang = 2 * time.Minute

// Run makes one world of each size and runs the cases on its ranks, each in a goroutine.
func Run(t *testing.T, cases []Case, mk func(t *testing.T, n int) []comm.Transport, sizes ...int) {
	for _, n := range sizes {
		t.Run(fmt.Sprintf("ranks=%d", n), func(t *testing.T) {
			world := mk(t, n)
			for _, c := range cases {
				if !t.Run(c.Name, func(t *testing.T) { onAll(t, world, c.Run) }) {
					world[0].Abort(1)
					break // the state of the world is unknown from here on
				}
			}
			failed := t.Failed()
			onAll(t, world, func(t testing.TB, tr comm.Transport) {
				if err := tr.Close(); err != nil && !failed {
					t.Errorf("Close: %v", err)
				}
			})
		})
	}
}

// onAll runs f on all ranks and waits for them. The first fatal failure aborts the world.
func onAll(t *testing.T, world []comm.Transport, f func(testing.TB, comm.Transport)) {
	watch := time.AfterFunc(hang, func() {
		t.Errorf("hung for %v", hang)
		world[0].Abort(1)
	})
	defer watch.Stop()
	var wg sync.WaitGroup
	for _, tr := range world {
		wg.Add(1)
		go func() {
			defer wg.Done()
			f(&rankTB{TB: t, tr: tr, die: func() { tr.Abort(1) }}, tr)
		}()
	}
	wg.Wait()
}

// Rank runs the cases on this process's rank of a world of processes. A failure is written to standard error and aborts
// the world, because the other ranks would wait for this one.
func Rank(t *testing.T, tr comm.Transport, cases []Case) {
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			watch := time.AfterFunc(hang, func() {
				fmt.Fprintf(os.Stderr, "%s: rank %d hung for %v\n", t.Name(), tr.Rank(), hang)
				tr.Abort(1)
			})
			defer watch.Stop()
			c.Run(&rankTB{TB: t, tr: tr, die: func() {
				fmt.Fprintf(os.Stderr, "%s failed on rank %d of %d\n", t.Name(), tr.Rank(), tr.Size())
				tr.Abort(1)
			}, echo: true}, tr)
		})
	}
}

// rankTB is a testing.TB for one rank: it names the rank, and a fatal failure ends the world.
type rankTB struct {
	testing.TB
	tr   comm.Transport
	die  func()
	echo bool // print failures at once: an aborted process prints no test log
}

func (r *rankTB) Errorf(format string, args ...any) {
	r.TB.Helper()
	line := fmt.Sprintf("rank %d of %d: ", r.tr.Rank(), r.tr.Size()) + fmt.Sprintf(format, args...)
	if r.echo {
		fmt.Fprintln(os.Stderr, r.TB.Name()+": "+line)
	}
	r.TB.Error(line)
}

func (r *rankTB) Fatalf(format string, args ...any) {
	r.TB.Helper()
	r.Errorf(format, args...)
	r.die()
	runtime.Goexit() // only the test's own goroutine may call FailNow
}

func (r *rankTB) Fatal(args ...any) { r.TB.Helper(); r.Fatalf("%s", fmt.Sprint(args...)) }
func (r *rankTB) Error(args ...any) { r.TB.Helper(); r.Errorf("%s", fmt.Sprint(args...)) }
