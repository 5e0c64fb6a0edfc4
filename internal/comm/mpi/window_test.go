//go:build mpi

package mpi

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"fluentps/internal/comm"
	"fluentps/internal/comm/mpi/mpitest"
	"fluentps/internal/comm/shm"
)

// If a host has little shared memory, and ranks find space each alone but not together, all of them get an error.
// Nothing stays allocated, and a window that fits is whole whatever others write there.
func TestWindowsWhereSharedMemoryIsShort(t *testing.T) {
	if mpitest.OnSmallDisk(t, shm.Dir, 64<<10) == "" {
		return
	}
	rc, out := launch(t, mpitest.Job{Ranks: 3}, "short")
	if ready := strings.Count(out, "shared what there is\n"); rc != 0 || ready != 3 {
		t.Errorf("mpirun ended with %d, %d of 3 ranks are well:\n%s", rc, ready, out)
	}
}

// Two jobs that create and free windows at the same time, each of more than half of the space, both live: a rank has
// all of its segment's pages, or gets an error.
func TestTwoJobsTakeWindowsAtOneTime(t *testing.T) {
	if mpitest.OnSmallDisk(t, shm.Dir, 128<<10) == "" {
		return
	}
	for _, job := range []string{"one", "other"} {
		t.Run(job, func(t *testing.T) {
			t.Parallel()
			rc, out := launch(t, mpitest.Job{Ranks: 2}, "windows")
			if ready := strings.Count(out, "windows were made and freed\n"); rc != 0 || ready != 2 {
				t.Errorf("mpirun ended with %d, %d of 2 ranks are well:\n%s", rc, ready, out)
			}
		})
	}
}

// cycleWindows is one of two ranks of a job that creates windows beside another such job.
func cycleWindows() {
	const wanted, triesMax, segment = 6, 1000, 36 << 20
	for took, tries := 0, 0; took < wanted && tries < triesMax; tries++ {
		w, err := world.Shared(segment)
		switch {
		case err == nil:
			took++
			own := w.Of(comm.Peer(world.Rank())).Bytes()
			for i := 0; i < len(own); i += 4096 {
				own[i] = byte(took)
			}
			err = w.Free()
		case errors.Is(err, comm.ErrNoMemory): // the other job has the space
			err = nil
			time.Sleep(time.Duration(1+rand.IntN(10)) * time.Millisecond)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			world.Abort(1)
		}
	}
	fmt.Fprintln(os.Stderr, "windows were made and freed")
}

// A process that fills the host's shared memory while a job trains does not end the job: the memory that MPI has mapped
// for messages has its pages.
func TestMessagesWhereSharedMemoryIsFull(t *testing.T) {
	page, err := syscall.Mmap(-1, 0, os.Getpagesize(), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Madvise(page, populateWrite); errors.Is(err, syscall.EINVAL) {
		t.Skip("this system cannot allocate the pages of a mapping: Linux before 5.14")
	}
	if mpitest.OnSmallDisk(t, shm.Dir, 64<<10) == "" {
		return
	}
	rc, out := launch(t, mpitest.Job{Ranks: 3}, "full")
	if ready := strings.Count(out, "all messages arrived\n"); rc != 0 || ready != 3 {
		t.Errorf("mpirun ended with %d, %d of 3 ranks are well:\n%s", rc, ready, out)
	}
}

// Ranks that each have a user namespace, as in containers without root, may not open each other's descriptors, and
// still share memory; no name is left behind.
func TestWindowsAcrossUserNamespaces(t *testing.T) {
	apart := []string{"unshare", "--user", "--map-root-user"}
	if out, err := exec.Command(apart[0], append(apart[1:], "true")...).CombinedOutput(); err != nil {
		t.Skipf("no user namespace on this machine: %v %s", err, out)
	}
	if mpitest.OnSmallDisk(t, shm.Dir, 64<<10) == "" {
		return
	}
	// UCX under MPICH has shared memory of its own between ranks, cannot open it here for the same reason, and has no
	// other way then: its messages go by TCP here.
	env := []string{childVar + "=apart", "UCX_TLS=tcp,self"}
	rc, out := mpitest.Built.Run(t, mpitest.Job{Ranks: 3, Env: env, Program: append(apart, os.Args[0])})
	if ready := strings.Count(out, "shared from apart\n"); rc != 0 || ready != 3 {
		t.Errorf("mpirun ended with %d, %d of 3 ranks are well:\n%s", rc, ready, out)
	}
	if left, err := filepath.Glob(shm.Dir + "/fluentps-*"); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// shareAcrossNamespaces is one of three ranks that each have a user namespace. The segment of the last one is empty.
func shareAcrossNamespaces() {
	n := 10000 * (world.Size() - 1 - world.Rank())
	w, err := world.Shared(n)
	if err == nil {
		for i := range w.Of(comm.Peer(world.Rank())).Bytes() {
			w.Of(comm.Peer(world.Rank())).Bytes()[i] = byte(world.Rank() + 1)
		}
		err = world.Barrier()
		for peer := range world.Size() - 1 {
			if theirs := w.Of(comm.Peer(peer)).Bytes(); theirs[len(theirs)-1] != byte(peer+1) {
				err = errors.Join(err, fmt.Errorf("rank %d sees %d of rank %d", world.Rank(), theirs[len(theirs)-1], peer))
			}
		}
		err = errors.Join(err, world.Barrier(), w.Free())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		world.Abort(1)
	}
	fmt.Fprintln(os.Stderr, "shared from apart")
}

// fillShared takes all free space of the host's shared memory, on rank 0, before any rank returns.
func fillShared() (err error) {
	if world.Rank() == 0 {
		var f *os.File
		if f, err = os.Create(fillerPath); err == nil {
			for err == nil {
				_, err = f.Write(make([]byte, 4096))
			}
			if errors.Is(err, syscall.ENOSPC) {
				err = f.Close()
			}
		}
	}
	return errors.Join(err, world.Barrier())
}

const fillerPath = shm.Dir + "/others"

// sendWithFullMemory is one of three ranks that send each other messages of many sizes at once.
func sendWithFullMemory() {
	const each = 400
	size := func(i int) int { return 1 << (i % 16) }
	err := fillShared()
	if err == nil {
		var b *comm.Buf
		b, err = world.Alloc(1 << 16)
		left := 2 * each * (world.Size() - 1)
		completed := func(d comm.Done) {
			left--
			err = errors.Join(err, d.Err)
		}
		for peer := range world.Size() {
			for i := 0; i < each && peer != world.Rank(); i++ {
				world.Irecv(comm.Peer(peer), comm.Data, uint32(i), b, 0, size(i), completed)
				world.Isend(comm.Peer(peer), comm.Data, uint32(i), b, 1<<15, size(i), completed)
			}
		}
		err = errors.Join(err, world.Drive(func() bool { return left == 0 || err != nil }))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		world.Abort(1)
	}
	fmt.Fprintln(os.Stderr, "all messages arrived")
}

// shareScarceMemory is one of three ranks that have 64 MiB, less the space that MPI has taken.
func shareScarceMemory() {
	tr := world.(*transport)
	check := func(ok bool, format string, args ...any) {
		if !ok {
			fmt.Fprintf(os.Stderr, "rank %d: "+format+"\n", append([]any{tr.rank}, args...)...)
			tr.Abort(1)
		}
	}
	must := func(err error) { check(err == nil, "%v", err) }
	free := func() int64 {
		var fs syscall.Statfs_t
		must(tr.Barrier())
		must(syscall.Statfs(shm.Dir, &fs))
		must(tr.Barrier())
		return int64(fs.Bavail) * fs.Bsize
	}
	_, used, _ := tr.pool.Usage()
	before := free()
	// each alone fits; together they do not, or leave too little to MPI
	for _, n := range []int64{before / 2, (before - shm.Spare) / 3} {
		_, err := tr.Shared(int(n))
		want := fmt.Sprintf("cannot have %d bytes of shared memory in %s (no space left on device)", n, shm.Dir)
		check(errors.Is(err, comm.ErrNoMemory) && strings.Contains(err.Error(), want), "%d bytes of %d: %v, want %q", n, before, err, want)
		_, now, _ := tr.pool.Usage()
		check(now == used, "%d bytes in use after the failure, %d before it", now, used)
		check(free() > before-shm.Spare, "%d bytes free after the failure, %d before it", free(), before)
	}
	n := int(before/3) - 2*shm.Spare
	w, err := tr.Shared(n)
	must(err)
	must(fillShared())
	own := w.Of(comm.Peer(tr.rank)).Bytes()
	for i := range own {
		own[i] = byte(tr.rank + 1)
	}
	must(tr.Barrier())
	for peer := range tr.size {
		theirs := w.Of(comm.Peer(peer)).Bytes()
		check(len(theirs) == n && theirs[0] == byte(peer+1) && theirs[n-1] == byte(peer+1),
			"the segment of rank %d holds %d bytes, %d to %d", peer, len(theirs), theirs[0], theirs[n-1])
	}
	must(tr.Barrier())
	if tr.rank == 0 {
		must(os.Remove(fillerPath))
	}
	must(w.Free())
	check(free() > before-shm.Spare, "%d bytes free after Free, %d before", free(), before)
	fmt.Fprintln(os.Stderr, "shared what there is")
}
