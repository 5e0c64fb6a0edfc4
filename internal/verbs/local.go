package verbs

import (
	"fmt"
	"os"
	"os/signal"
	"sync"

	"fluentps/internal/comm/inproc"
	"fluentps/internal/plan/layout"
	ps "fluentps/internal/rank/runtime"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
)

// local runs n ranks as goroutines that share one copy of the data.
func (j *job) local(n int) error {
	loadOnce := sync.OnceValues(func() (set *dataset.Set, err error) {
		j.set, err = load(layout.DataSpec(j.cfg))
		return j.set, err
	})
	stop := interrupts(j.signals, n, endings{
		trains: &j.trains,
		now: func(name string) {
			printError(j.warn, "third signal, "+name+": ending at once")
			os.Exit(codeFailed)
		},
		setup: func(name string) {
			printError(j.warn, endsSetup(name))
			os.Exit(exitCodeFor(j.setupCode(), os.Args))
		},
	})
	defer func() { // a process that goes on, as that of a test does, is not this run's to end any more
		signal.Stop(j.signals)
		j.trains.Store(true)
	}()
	text := fmt.Sprintf("none; %d ranks as goroutines of this process", n)
	ranks := inproc.New(n, inproc.Options{PoolMax: poolMax})
	all := make([]ps.Options, n)
	for i, t := range ranks {
		o, err := j.options(t, "local", text)
		if err != nil {
			return err
		}
		o.Load = func(workload.DataSpec) (*dataset.Set, error) { return loadOnce() }
		o.Interrupt = stop[i]
		if i == 0 {
			j.warnings()
		}
		all[i] = o
	}
	ends := make([]outcome, n)
	var done sync.WaitGroup
	for i, t := range ranks {
		done.Go(func() { ends[i] = j.drive(t, all[i]) })
	}
	done.Wait()
	return &exitError{code: verdict(ends)}
}

// verdict is the exit code of the process: the code that the ranks agreed on, or the highest code of a rank that aborted.
func verdict(ends []outcome) int {
	code := ends[0].code
	for _, e := range ends {
		if e.ended && e.code > code {
			code = e.code
		}
	}
	return code
}
