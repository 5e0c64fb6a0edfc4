package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// process is what a process was seen to take, in bytes.
type process struct {
	highest int64 // the system's own peak of resident memory, shared memory included
	shared  int64 // the most shared memory that was resident
	own     int64 // the most resident memory that is not shared, when it was looked at
}

// private is the peak of its memory without shared memory: what was seen, and at least the system's peak without all of the shared
// memory, because no look may have met the peak.
func (p process) private() int64 { return max(p.own, p.highest-p.shared) }

// peaks are those of a command's processes.
type peaks struct {
	processes map[int]*process
	windows   map[string]int64 // by the inode of a file without a name in /dev/shm: its size; all of its pages are allocated
}

// peak runs a command, and prints the most memory that its processes of a program took: all of them together, memory that they share
// once, and the process that took the most.
func peak(program string, args []string) error {
	c := exec.Command(args[0], args[1:]...)
	c.Stdout, c.Stderr = os.Stderr, os.Stderr
	if err := c.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	p := peaks{map[int]*process{}, map[string]int64{}}
	for look := 0; ; look++ {
		p.look(program, c.Process.Pid, look%20 == 0)
		select {
		case err := <-ended:
			if err == nil {
				p.print()
			}
			return err
		case <-time.After(15 * time.Millisecond):
		}
	}
}

func (p *peaks) print() {
	var together, most int64
	for _, q := range p.processes {
		together, most = together+q.private(), max(most, q.private())
	}
	for _, bytes := range p.windows {
		together += bytes
	}
	fmt.Printf("%d processes, together %d bytes, the largest %d without shared memory\n", len(p.processes), together, most)
}

// look reads the memory of the descendants of a process.
func (p *peaks) look(program string, root int, windows bool) {
	parents := map[int]int{}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		if parent, err := parentOf(pid); err == nil {
			parents[pid] = parent
		}
	}
	for pid := range parents {
		if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err != nil || filepath.Base(exe) != program ||
			!descends(parents, pid, root) {
			continue
		}
		p.measure(pid)
		if windows {
			p.mapped(pid)
		}
	}
}

func descends(parents map[int]int, pid, root int) bool {
	for ; pid > 1; pid = parents[pid] {
		if pid == root {
			return true
		}
	}
	return false
}

func parentOf(pid int) (parent int, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 2 {
		return 0, errors.New("no parent")
	}
	return strconv.Atoi(fields[1])
}

func (p *peaks) measure(pid int) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return // it has ended
	}
	now := map[string]int64{}
	for line := range strings.Lines(string(text)) {
		var name string
		var kb int64
		if n, _ := fmt.Sscanf(line, "%s %d kB", &name, &kb); n == 2 {
			now[name] = kb << 10
		}
	}
	q := p.processes[pid]
	if q == nil {
		q = &process{}
		p.processes[pid] = q
	}
	q.highest, q.shared = max(q.highest, now["VmHWM:"]), max(q.shared, now["RssShmem:"])
	q.own = max(q.own, now["RssAnon:"]+now["RssFile:"])
}

// mapped notes the windows that a process has mapped.
func (p *peaks) mapped(pid int) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return // it has ended
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var from, to, offset uint64
		var access, device, inode, name string
		if n, _ := fmt.Sscanf(lines.Text(), "%x-%x %s %x %s %s %s", &from, &to, &access, &offset, &device, &inode, &name); n < 7 {
			continue
		}
		if strings.HasPrefix(name, "/dev/shm/#") || strings.HasPrefix(name, "/dev/shm/fluentps-window") {
			p.windows[device+" "+inode] = max(p.windows[device+" "+inode], int64(to-from)+int64(offset))
		}
	}
}
