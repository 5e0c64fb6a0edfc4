package lock

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// machine identifies the scope in which process numbers and times since the boot are valid: a boot of a host, and the
// process and time namespaces on it. Host names do not identify it: containers share them.
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
		clock = "" // before Linux 5.6 all processes share one
	}
	return strings.TrimSpace(strings.TrimSpace(string(boot)) + " " + space + " " + clock)
}

// stat returns the state of a process and its start time, in ticks since the boot; ok says whether the process is
// visible.
func stat(pid int) (state, processStart string, ok bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", "", false
	}
	end := strings.LastIndexByte(string(text), ')') // end of the name, which may contain anything
	fields := strings.Fields(string(text[end+1:]))
	const startTime = 22 - 3 // proc(5) counts from 1, and the state is the third
	if len(fields) <= startTime {
		return "", "", false
	}
	return fields[0], fields[startTime], true
}

func processStart(pid int) string {
	_, at, _ := stat(pid)
	return at
}

// isAlive returns whether the process with that number is the one that started at that time; "" matches any time. A
// killed process that no parent has waited for is dead.
func isAlive(pid int, at string) bool {
	if pid <= 0 || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	state, now, ok := stat(pid)
	if !ok { // it exists, and belongs to another user
		return true
	}
	return state != "Z" && state != "X" && (at == "" || now == at)
}
