//go:build mpi

package mpi

import (
	"math"
	"os"
	"strconv"
	"strings"
	"syscall"

	"fluentps/internal/comm/shm"
)

// populateWrite is madvise's MADV_POPULATE_WRITE, which allocates pages like a write and leaves their content as it is.
// It exists from Linux 5.14 on.
const populateWrite = 23

// mappedMax bounds a mapping whose pages are allocated, for each rank of the host, in bytes: Open MPI maps 4 MiB per
// rank, from version 5 on 16 MiB. Some derivatives of MPICH map many GiB of which they use little.
const mappedMax = 16<<20 + 64<<10

// populateMapped allocates the pages that MPI has mapped in the memory file system of the host to reach its ranks. Open
// MPI allocates them only as messages arrive: a process that fills that file system while a job trains would end the
// job by SIGBUS.
func populateMapped(ranks int) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(shm.Dir, &fs); err != nil {
		return
	}
	free := int64(fs.Bavail) * int64(fs.Bsize) // the types of both differ by processor
	if fs.Blocks == 0 {                        // a tmpfs without a limit
		free = math.MaxInt64
	}
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return
	}
	for _, m := range toPopulate(string(text), ranks, free) {
		// An error leaves the pages unallocated, as they were before.
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, m.from, m.to-m.from, populateWrite)
	}
}

// region is a part of this process's memory.
type region struct{ from, to uintptr }

// toPopulate reads /proc/self/maps. It returns no region unless twice the space is free: otherwise nothing would be
// left for processes that start beside this job.
func toPopulate(maps string, ranks int, free int64) (regions []region) {
	total := int64(0)
	for line := range strings.Lines(maps) {
		if from, to, ok := sharedMapping(line); ok && int64(to-from) <= int64(ranks)*mappedMax {
			regions = append(regions, region{from, to})
			total += int64(to - from)
		}
	}
	if total > free/2 {
		return nil
	}
	return regions
}

// sharedMapping reads a line of /proc/self/maps; ok says whether it is writable shared memory in the memory file
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
