//go:build cuda

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"fluentps/kernels/gpucheck"
)

// adopt makes this process the parent of its descendants whose parents have ended, so that endDescendants finds them. torch.compile has
// workers that may begin sessions of their own, which the end of a group does not reach.
func adopt() error {
	const childSubreaper = 36 // PR_SET_CHILD_SUBREAPER
	if _, _, failed := syscall.RawSyscall(syscall.SYS_PRCTL, childSubreaper, 1, 0); failed != 0 {
		return fmt.Errorf("prctl: %w", failed)
	}
	return nil
}

// endDescendants ends all processes that this process has started, and that they have started. The caller waits for one of them.
func endDescendants(waited int) {
	for deadline := time.Now().Add(gpucheck.Grace); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		living := 0
		for pid, zombie := range descendants() {
			if !zombie {
				living++
				_ = syscall.Kill(pid, syscall.SIGKILL)
			} else if pid != waited {
				_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil) // of a child; others fall to this process later
			}
		}
		if living == 0 {
			return
		}
	}
}

// descendants are the processes below this one, and whether they have ended but were not waited for.
func descendants() map[int]bool {
	folders, _ := os.ReadDir("/proc")
	parents, zombies := map[int]int{}, map[int]bool{}
	for _, folder := range folders {
		pid, err := strconv.Atoi(folder.Name())
		if err != nil {
			continue
		}
		parent, zombie, err := parentOf(pid)
		if err == nil {
			parents[pid], zombies[pid] = parent, zombie
		}
	}
	found := map[int]bool{}
	for pid := range parents {
		for above, steps := parents[pid], 0; above > 0 && steps < len(parents); above, steps = parents[above], steps+1 {
			if above == os.Getpid() {
				found[pid] = zombies[pid]
				break
			}
		}
	}
	return found
}

func parentOf(pid int) (parent int, zombie bool, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false, err // it has ended
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // the name before may hold anything
	if len(fields) < 2 {
		return 0, false, errors.New("a short line")
	}
	parent, err = strconv.Atoi(string(fields[1]))
	return parent, string(fields[0]) == "Z", err
}
