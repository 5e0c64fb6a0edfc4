package verbs

import (
	"bytes"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"fluentps/internal/rank/supervise"
)

func TestAutoTimeEndsBeforeTheJob(t *testing.T) {
	for _, c := range []struct{ passed, left, want time.Duration }{
		{0, 4 * time.Hour, 4*time.Hour - 2*time.Minute},
		{90 * time.Second, 4 * time.Hour, 4*time.Hour - 30*time.Second},
		{0, 10 * time.Minute, 8 * time.Minute},
		{time.Second, 100 * time.Second, 81 * time.Second},
		{5 * time.Second, 0, 5 * time.Second},
		{5 * time.Second, -time.Hour, 5 * time.Second},
		{time.Millisecond, -time.Hour, time.Second}, // never 0, which is no limit
	} {
		if got := autoTime(c.passed, c.left); got != c.want {
			t.Errorf("after %v with %v left: %v, want %v", c.passed, c.left, got, c.want)
		}
	}
}

// A signal counts as the next stage if it arrives at least a second after the previous stage. Signals at once count as one.
func TestSignalsComeInThreeStages(t *testing.T) {
	var s supervise.Stages
	start := time.Now()
	for _, c := range []struct {
		after time.Duration
		want  int
	}{
		{0, 1}, {0, 0}, {999 * time.Millisecond, 0}, {time.Second, 2}, {1500 * time.Millisecond, 0}, {time.Hour, 3}, {2 * time.Hour, 4},
	} {
		if got := s.Next(start.Add(c.after)); got != c.want {
			t.Errorf("after %v: stage %d, want %d", c.after, got, c.want)
		}
	}
}

// A signal that arrives while the program starts neither ends the program nor is lost.
func TestASignalBeforeTheRunIsReadyIsKept(t *testing.T) {
	signals := catchEarlySignals()
	if err := syscall.Kill(os.Getpid(), syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	for len(signals) == 0 { // a goroutine of the Go runtime delivers it; go test bounds the wait
		time.Sleep(time.Millisecond)
	}
	defer signal.Reset()
	if got := <-interrupts(signals, 1, endings{})[0]; got != "SIGUSR1" {
		t.Errorf("the run hears of %q, want SIGUSR1", got)
	}
}

// The end of the terminal or of the reader of the output is a request to stop. A second one makes it no more urgent.
func TestWishesThatMayComeTwice(t *testing.T) {
	defer signal.Reset()
	signals := make(chan os.Signal, 8)
	for range 2 {
		signals <- syscall.SIGHUP
		signals <- outputClosed
	}
	heard := interrupts(signals, 1, endings{now: func(name string) { t.Errorf("%s ends the run at once", name) }})[0]
	for _, want := range []string{"SIGHUP", outputClosed.String(), "SIGHUP", outputClosed.String()} {
		if got := <-heard; got != want {
			t.Errorf("the run hears of %q, want %q", got, want)
		}
	}
}

// A request to stop ends a process whose set-up goes on, within a second, and leaves alone one that trains by then.
func TestARequestToStopEndsSetup(t *testing.T) {
	defer signal.Reset()
	for _, trains := range []bool{false, true} {
		signals, ended := make(chan os.Signal, 8), make(chan string, 1)
		var over atomic.Bool
		heard := interrupts(signals, 1, endings{trains: &over, setup: func(name string) { ended <- name }})[0]
		asked := time.Now()
		signals <- syscall.SIGTERM
		if got := <-heard; got != "SIGTERM" {
			t.Errorf("the run hears of %q", got)
		}
		over.Store(trains)
		select {
		case name := <-ended:
			if trains || name != "SIGTERM" || time.Since(asked) < setupGrace {
				t.Errorf("%s ends it after %s, although it trains: %v", name, time.Since(asked), trains)
			}
		case <-time.After(setupGrace + 200*time.Millisecond):
			if !trains {
				<-ended // go test bounds the wait: the machine may be busy
			}
		}
	}
}

// A program that was started with SIGHUP ignored keeps ignoring it, and so survives the end of its terminal.
func TestAnIgnoredHangupStaysIgnored(t *testing.T) {
	defer signal.Reset()
	if ignored := signal.Ignored(syscall.SIGHUP); slices.Contains(requestSignals(), os.Signal(syscall.SIGHUP)) == ignored { // as under nohup
		t.Errorf("SIGHUP is ignored: %v, but the run listens to it, or the other way round", ignored)
	}
	signal.Ignore(syscall.SIGHUP)
	if slices.Contains(requestSignals(), os.Signal(syscall.SIGHUP)) {
		t.Error("the run listens to SIGHUP, which was ignored")
	}
}

// The first write to a closed pipe is a request to stop. Later writes do nothing. Other errors are returned.
func TestOutletOfAClosedPipe(t *testing.T) {
	defer signal.Reset()
	keepPipes()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	signals := make(chan os.Signal, 8)
	o := newOutlet(writer, signals)
	if n, err := o.Write([]byte("read")); n != 4 || err != nil || len(signals) > 0 {
		t.Fatalf("wrote %d bytes, %v, %d signals", n, err, len(signals))
	}
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if n, err := o.Write([]byte("lost")); n != 4 || err != nil {
			t.Errorf("wrote %d bytes, %v", n, err)
		}
	}
	if len(signals) != 1 || <-signals != os.Signal(outputClosed) {
		t.Errorf("%d signals more", len(signals))
	}
	full := newOutlet(failing{syscall.ENOSPC}, signals)
	if _, err := full.Write([]byte("x")); !errors.Is(err, syscall.ENOSPC) || len(signals) > 0 {
		t.Errorf("%v, %d signals", err, len(signals))
	}
	disk := newOutlet(failing{syscall.EIO}, signals) // which is no terminal
	if _, err := disk.Write([]byte("x")); !errors.Is(err, syscall.EIO) || len(signals) > 0 {
		t.Errorf("%v, %d signals", err, len(signals))
	}
	var text bytes.Buffer
	if _, err := newOutlet(&text, signals).Write([]byte("x")); err != nil || text.String() != "x" {
		t.Errorf("%q, %v", text.String(), err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// A run with ranks as goroutines that was over in set-up does not end a process that goes on, whatever it is asked after that.
func TestARunThatIsOverEndsNoProcess(t *testing.T) {
	defer signal.Reset()
	dir := t.TempDir()
	file := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(file, []byte("data: {set: generated}\nmodel: {name: softmax}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var out, errOut bytes.Buffer
	code := report(&errOut, newApp(&out, &errOut).Run([]string{"fluentps", "run", "--local", "3", "--out", dir, file}))
	if code != codeUsage {
		t.Fatalf("a run in a folder that is not empty ends with %d: %s%s", code, out.String(), errOut.String())
	}
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGUSR1)
	if err := syscall.Kill(os.Getpid(), syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	<-heard
	time.Sleep(setupGrace + 100*time.Millisecond) // else this process has ended
}
