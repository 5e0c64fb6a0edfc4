package verbs

import (
	"context"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"fluentps/internal/plan/slurm"
	ps "fluentps/internal/rank/runtime"
	"fluentps/internal/rank/supervise"
)

// requestSignals are the signals that ask a run to stop or to print its state. SIGHUP stays ignored if it was ignored at the
// start, as under nohup: the user wants the run to survive the end of its terminal.
func requestSignals() []os.Signal {
	all := []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

// catchEarlySignals keeps SIGUSR1 from ending a process that cannot handle it yet, and queues it for interrupts. A batch system
// may warn a job that has just begun, and MPI takes some time to start.
func catchEarlySignals() chan os.Signal {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGUSR1)
	return signals
}

// setupGrace is how long a request to stop waits for set-up to end, so that the run stops in order. A rank that reads or deals large
// data, or gets large memory, would answer much later. Nothing that was trained is lost if it ends at once.
const setupGrace = 600 * time.Millisecond

// endings are what ends this process out of order.
type endings struct {
	trains *atomic.Bool      // set-up is over; nil: it always is
	now    func(name string) // at the third request to stop
	setup  func(name string) // at the first, if set-up does not end within setupGrace
}

// duringSetup ends the process if set-up does not end soon.
func (e *endings) duringSetup(name string) {
	if e.trains == nil || e.trains.Load() {
		return
	}
	trains, setup := e.trains, e.setup
	e.trains = nil // the timer runs once
	time.AfterFunc(setupGrace, func() {
		if !trains.Load() {
			setup(name)
		}
	})
}

// interrupts forwards the names of signals to the ranks of this process, those that arrived early included. Requests to stop go
// to the first rank, which tells the others. SIGUSR2 goes to all of them.
func interrupts(signals chan os.Signal, ranks int, end endings) []<-chan string {
	signal.Notify(signals, requestSignals()...)
	names, readers := make([]chan string, ranks), make([]<-chan string, ranks)
	for i := range names {
		names[i] = make(chan string, 8)
		readers[i] = names[i]
	}
	go func() {
		var asked supervise.Stages
		for s := range signals {
			name, to := "SIGTERM", names[:1]
			switch s {
			case syscall.SIGUSR1:
				name = "SIGUSR1"
			case syscall.SIGHUP: // the system and the shell both send it, so a second one is not a second stage
				name = "SIGHUP"
			case outputClosed:
				name = outputClosed.String()
			case syscall.SIGUSR2:
				name, to = ps.SignalState, names
			case syscall.SIGINT:
				name = "SIGINT"
				fallthrough
			default:
				switch asked.Next(time.Now()) {
				case 0:
					continue
				case 1:
				case 2:
					name += ps.SignalAgain
				default:
					end.now(name)
				}
			}
			if s != syscall.SIGUSR2 {
				end.duringSetup(name)
			}
			for _, c := range to {
				select {
				case c <- name:
				default: // a launcher may repeat a signal, and the queued ones are enough
				}
			}
		}
	}()
	return readers
}

// maxTimeAuto is the value of --max-time that asks Slurm for the end of the job.
const maxTimeAuto = "auto"

// timeLimit reads --max-time. It returns 0 without the flag and for auto.
func timeLimit(c *cli.Context) (time.Duration, error) {
	word := c.String("max-time")
	if !c.IsSet("max-time") || word == maxTimeAuto {
		return 0, nil
	}
	limit, err := time.ParseDuration(word)
	if err != nil || limit <= 0 {
		return 0, usagef("run: --max-time is %q, must be a time with its unit that is more than 0, as in 3h50m, or auto", word)
	}
	return limit, nil
}

// askTime bounds how long a run waits for the controller of Slurm. Without an answer the run is refused.
const askTime = 30 * time.Second

// whyTime bounds how long the controller of Slurm may take to say why it ends a job: by default all is killed 30 s after the signal.
const whyTime = 4 * time.Second

// whyStopped says what Slurm knows of a signal that has stopped a run.
func whyStopped(job *slurm.Job) string {
	ctx, cancel := context.WithTimeout(context.Background(), whyTime)
	defer cancel()
	return job.WhyStopped(ctx, time.Now(), slurm.Ask)
}

// maxTime is how long after the start of the program the run stops with a checkpoint; 0 is no limit. Only one rank may call it,
// because all users of a cluster share the controller of Slurm.
func (j *job) maxTime() (time.Duration, error) {
	if j.c.String("max-time") != maxTimeAuto {
		return timeLimit(j.c)
	}
	job, err := slurm.FromEnv(os.Getenv) // with a job, the error is about variables that are not needed here
	if job == nil && err != nil {
		return 0, usagef("run: %v", err)
	}
	if job == nil {
		return 0, usagef("run: --max-time auto asks Slurm, but SLURM_JOB_ID is not set, so this is not a Slurm job; give " +
			"the time, as in --max-time 3h50m")
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	now := time.Now()
	left, limited, err := job.Remaining(ctx, now, slurm.Ask)
	if err != nil {
		return 0, usagef("run: --max-time auto: %v", err)
	}
	if !limited {
		return 0, nil
	}
	return autoTime(now.Sub(j.start), left), nil
}

// checkpointMax is the time reserved for the final checkpoint, but never more than a tenth of the time that is left.
const checkpointMax = time.Minute

// autoTime is the limit since the start of the program, if so much time has passed and so much is left of the job. It is at
// least a second, because 0 would be no limit: a run with too little time left stops at once.
func autoTime(passed, left time.Duration) time.Duration {
	more := slurm.MaxTime(left, min(checkpointMax, max(0, left/10)))
	return max(time.Second, (passed + more).Truncate(time.Second))
}
