//go:build mpi

package mpi

import (
	"os"
	"strconv"
	"strings"
	"syscall"

	"fluentps/comm/shm"
)

// populateWrite is madvise's MADV_POPULATE_WRITE, which takes pages as a write does and leaves what they hold. It is there from
// Linux 5.14 on.
const populateWrite = 23

// takeMapped takes the pages of what MPI has mapped in the memory file system of the host to reach its ranks. Open MPI takes them
// as messages come: whoever fills that file system while a job trains would end it by SIGBUS. Where there is not twice the
// room for all ranks of the host, the pages are left to those who start beside this job, for whom nothing would be left.
func takeMapped(ranks int) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(shm.Dir, &fs); err != nil || fs.Blocks > 0 && int64(fs.Bavail)*fs.Bsize < 2*int64(ranks)*shm.Spare {
		return
	}
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return
	}
	for line := range strings.Lines(string(text)) {
		if from, to, ok := sharedMapping(line); ok {
			// An error costs nothing that there was before.
			_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, from, to-from, populateWrite)
		}
	}
}

// sharedMapping reads a line of /proc/self/maps; ok says whether it is memory to write to that others see, in the memory file
// system.
func sharedMapping(line string) (from, to uintptr, ok bool) {
	fields := strings.Fields(line)
	if len(fields) < 6 || fields[1] != "rw-s" || !strings.HasPrefix(fields[5], shm.Dir+"/") {
		return 0, 0, false
	}
	first, last, _ := strings.Cut(fields[0], "-")
	lo, err1 := strconv.ParseUint(first, 16, 64)
	hi, err2 := strconv.ParseUint(last, 16, 64)
	return uintptr(lo), uintptr(hi), err1 == nil && err2 == nil && lo < hi
}
