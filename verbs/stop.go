package verbs

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	ps "fluentps/ps/runtime"
	"fluentps/ps/supervise"
	"fluentps/slurm"
)

// wishes are the signals that ask a run for something: to stop, or to tell where it stands. Whoever started the program so that
// it survives the end of its terminal, with nohup, has SIGHUP ignored, and so it stays.
func wishes() []os.Signal {
	all := []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

// early keeps SIGUSR1 from ending a process that is not ready to act on it, and keeps it for interrupts: a batch system may
// warn a job that has just begun, and MPI takes its time to start.
func early() chan os.Signal {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGUSR1)
	return signals
}

// interrupts names the signals that ask to stop, those that came early too: to the first rank of this process, which tells
// the others. The one that asks for the state goes to all of them. The third stage calls now.
func interrupts(signals chan os.Signal, ranks int, now func(name string)) []<-chan string {
	signal.Notify(signals, wishes()...)
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
			case syscall.SIGHUP: // said by the system and again by the shell: no wish to hurry
				name = "SIGHUP"
			case unread:
				name = unread.String()
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
					now(name)
				}
			}
			for _, c := range to {
				select {
				case c <- name:
				default: // a launcher may repeat itself; one is enough
				}
			}
		}
	}()
	return readers
}

// maxTimeAuto lets Slurm say how long a run may take.
const maxTimeAuto = "auto"

// timeLimit reads --max-time; 0 is none, or auto.
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

// askTime bounds how long a run waits for the answer of Slurm's controller. Without one it is refused.
const askTime = 30 * time.Second

// maxTime is how long after the start of the program the run stops with a checkpoint, 0: never. Only one rank may ask:
// the controller of a cluster is shared by all its users.
func (j *job) maxTime() (time.Duration, error) {
	if j.c.String("max-time") != maxTimeAuto {
		return timeLimit(j.c)
	}
	job, err := slurm.FromEnv(os.Getenv) // what else it cannot read is not what is asked here
	if job == nil && err != nil {
		return 0, usagef("run: %v", err)
	}
	if job == nil {
		return 0, usagef("run: --max-time auto asks Slurm, and SLURM_JOB_ID is not set: this is no job; say the time, as in --max-time 3h50m")
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

// checkpointMax is kept for the checkpoint of the end, but never more than a tenth of what is left.
const checkpointMax = time.Minute

// autoTime is since the start, when so much has passed and so much is left of the job. It is at least a second, for 0
// would be no limit: what has less than it needs shall stop at once.
func autoTime(passed, left time.Duration) time.Duration {
	more := slurm.MaxTime(left, min(checkpointMax, max(0, left/10)))
	return max(time.Second, (passed + more).Truncate(time.Second))
}
