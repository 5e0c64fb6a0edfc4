package verbs

import (
	"errors"
	"fmt"
	"os"

	"fluentps/internal/comm/mpi"
	"fluentps/internal/comm/shm"
	"fluentps/internal/disk/lock"
)

// world runs the rank of this process under MPI. Once MPI is initialised the process ends only after Close or through Abort:
// a launcher takes any other end for a crash, or worse, for success.
func (j *job) world(file string) error {
	if hint := withoutPMI(os.Getenv); hint != "" && speaks(os.Getenv) {
		printError(j.warn, hint)
	}
	t, err := mpi.Init(mpi.Options{PoolMax: poolMax, Scratch: j.scratch()})
	if err != nil {
		return usagef("%v", err)
	}
	defer func() {
		if p := recover(); p != nil {
			j.abort(t, crash(p))
		}
	}()
	j.input = readInput(j.c, file, shorthands(j.c)...)
	o, err := j.options(t, "mpi", mpi.Library())
	if err != nil { // the other ranks must not wait for this one
		j.abort(t, err)
	}
	if t.Rank() == 0 {
		j.warnings()
	}
	o.Interrupt = interrupts(j.signals, 1, endings{
		trains: &j.trains,
		now:    func(name string) { j.abort(t, errors.New("third signal, "+name+": ending at once")) },
		setup: func(name string) {
			printError(j.warn, fmt.Sprintf("rank %d: %s", t.Rank(), endsSetup(name)))
			t.Abort(exitCodeFor(j.setupCode(), os.Args))
		},
	})[0]
	end := j.drive(t, o)
	if j.scratchDir != "" {
		_ = os.Remove(j.scratchDir) // the last rank of the host finds it empty
	}
	return &exitError{code: end.code}
}

// scratch makes the folder for Open MPI's files on this host, and removes those that earlier starts of this run have left. It
// returns "" if this start has no token, or if there is no place for it: Open MPI then makes its files where it always does.
func (j *job) scratch() string {
	start := j.c.String(startFlag)
	if start == "" {
		return ""
	}
	_ = shm.RemoveScratch(shm.Dir, func(left string) bool { return lock.IsEarlier(left, start) }) // best effort, as what follows
	j.scratchDir, _ = shm.MakeScratch(shm.Dir, start)
	return j.scratchDir
}
