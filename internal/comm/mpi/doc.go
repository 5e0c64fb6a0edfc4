// Package mpi is the Transport over MPI: each process of an mpirun or srun launch is one rank.
//
// It is built with the tag mpi, against the Open MPI that pkg-config finds (package ompi-c); without the tag Init
// returns an error that wraps comm.ErrNotBuilt. With the tag mpich as well it is built against MPICH or a derivative,
// with flags from CGO_CFLAGS and CGO_LDFLAGS: tests/with-mpich.sh sets them. Init refuses a launcher or a library of
// another family than that of mpi.h before it starts MPI.
//
// # Threads
//
// MPI is initialised with MPI_THREAD_SERIALIZED, and one lock in C serialises the calls. Init and Close must run on the
// process's main thread. Under a launcher this package's init function locks the main goroutine to it, so calling both
// from main is enough; a process started without a launcher calls runtime.LockOSThread in an init function of its own.
//
// # Progress
//
// The goroutine that calls Drive, Tick or Barrier polls MPI and runs the handlers inline. Drive first spins: it polls
// without pause for up to 50 us after the last event. Then it yields its core between polls for 50 us. Then it sleeps
// between polls. The spin halves, down to 1 us, when an answer arrived because another process had the core, and doubles
// when it arrived without that: otherwise ranks that share a core would wait for each other to stop polling. If this host
// has more ranks than cores, there is no spin; Bind then keeps each rank on one core.
//
// Post wakes a rank that sleeps at once, and so does a message of a rank of its host: the ranks of a host share a page for each of
// them (bells.go). If the world has other hosts as well, whose messages wake nobody, a sleep takes an eighth of the wait so far, 20 us to 1
// ms, and ranks that share cores yield for 500 us before it. So it is while a long message or a collective is in flight: what MPI sends by
// itself wakes nobody either. Else a sleep takes half of the wait so far, 100 us to 4 ms.
//
// Every 7 ms, waiting or not, Drive lets Go reschedule its goroutine: see is_tired in wait.c.
//
// No blocking MPI call is made after Init, not even for the barrier, so other ranks on the same cores get their turn.
// Only Shared and the end of a window block, until all ranks of a host have called. Open MPI's own yielding
// (mpi_yield_when_idle, which mpirun --oversubscribe turns on) is off except in these calls.
//
// # Messages
//
// Only the first receive of each stream is tested, so a deep ring of receives costs nothing. Every 32nd control message
// of a stream is a synchronous send. While two of these are unmatched, further messages wait at the sender: see
// comm.BacklogMax.
//
// Between ranks of a host Open MPI sends up to 4096 bytes eagerly, with its own header; before a longer message it asks
// the receiver. Init raises this limit to 40960 bytes, unless the environment or mpirun says otherwise (--mca
// btl_vader_eager_limit N). A control message then never waits, and up to 32 KiB two copies cost less than to ask, to
// copy between processes and to acknowledge, above all if ranks share cores.
//
// # Heartbeats
//
// Heartbeats are single bytes on a communicator of their own. Any thread sends and receives them: between two polls of
// the goroutine that drives, or while that goroutine computes. Close waits until the other ranks have received those of
// this rank.
//
// # How a world ends
//
// Close ends it in order. If MPI itself does not end (see finalize.go), Close returns an error that wraps
// comm.ErrStuck, and the way out is Abort with the exit code, even 0. Abort ends every process with the given code; if
// MPI_Abort has not returned after 5 s, it ends this process alone. A rank that dies by a signal or an uncaught panic
// takes the job down through the launcher, but its last output may be lost, and the launcher chooses the exit code. So
// every goroutine of a rank should start with
//
//	defer func() {
//		if p := recover(); p != nil {
//			fmt.Fprintf(os.Stderr, "rank %d: panic: %v\n%s", t.Rank(), p, debug.Stack())
//			t.Abort(1)
//		}
//	}()
//
// After Init a process must not call os.Exit or log.Fatal before Close: some launchers take exit code 0 without a
// Finalize for success and kill the other ranks silently.
package mpi
