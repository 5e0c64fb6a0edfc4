package main

import (
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"
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

// A signal counts as the next stage if it comes a second after the last one; what is said twice at once counts once.
func TestSignalsComeInThreeStages(t *testing.T) {
	var s stages
	start := time.Now()
	for _, c := range []struct {
		after time.Duration
		want  int
	}{
		{0, 1}, {0, 0}, {999 * time.Millisecond, 0}, {time.Second, 2}, {1500 * time.Millisecond, 0}, {time.Hour, 3}, {2 * time.Hour, 4},
	} {
		if got := s.next(start.Add(c.after)); got != c.want {
			t.Errorf("after %v: stage %d, want %d", c.after, got, c.want)
		}
	}
}

// A warning that comes while the program starts neither ends it nor is lost.
func TestASignalBeforeTheRunIsReadyIsKept(t *testing.T) {
	signals := early()
	if err := syscall.Kill(os.Getpid(), syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	for len(signals) == 0 { // it comes by a goroutine of the Go runtime; the deadline is that of go test
		time.Sleep(time.Millisecond)
	}
	defer signal.Reset()
	if got := <-interrupts(signals, 1, nil)[0]; got != "SIGUSR1" {
		t.Errorf("the run hears of %q, want SIGUSR1", got)
	}
}
