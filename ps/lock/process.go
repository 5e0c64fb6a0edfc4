package lock

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// machine names where numbers of processes and times since the boot count: a boot of a host, and namespaces of processes and of
// time on it. Names of hosts do not: containers share them.
func machine() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	space, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	clock, err := os.Readlink("/proc/self/ns/time")
	if err != nil {
		clock = "" // before Linux 5.6 there is one for all
	}
	return strings.TrimSpace(strings.TrimSpace(string(boot)) + " " + space + " " + clock)
}

// stat gives the state of a process and when it started, in ticks since the boot; ok says whether it may be seen.
func stat(pid int) (state, started string, ok bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", "", false
	}
	end := strings.LastIndexByte(string(text), ')') // of the name, which may hold anything
	fields := strings.Fields(string(text[end+1:]))
	const startTime = 22 - 3 // proc(5) counts from 1, and the state is the third
	if len(fields) <= startTime {
		return "", "", false
	}
	return fields[0], fields[startTime], true
}

func started(pid int) string {
	_, at, _ := stat(pid)
	return at
}

// lives says whether the process with that number is the one that started then. One that was killed and that nobody has
// waited for is dead.
func lives(pid int, at string) bool {
	if pid <= 0 || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	state, now, ok := stat(pid)
	if !ok { // there, and another user's
		return true
	}
	return state != "Z" && state != "X" && (at == "" || now == at)
}
