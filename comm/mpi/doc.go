// Package mpi is the Transport over MPI: each process of an mpirun or srun launch is one rank.
//
// It is built with the tag mpi, against Open MPI as pkg-config knows it (package ompi-c); without the
// tag Init returns an error that wraps comm.ErrNotBuilt. With the tag mpich too it is built against
// MPICH or a relative, whose flags stand in CGO_CFLAGS and CGO_LDFLAGS: tests/with-mpich.sh sets them.
// Init refuses a launcher or a library of the other family than that of mpi.h before it starts MPI.
//
// # Threads
//
// MPI is initialised with MPI_THREAD_SERIALIZED, and one lock in C makes the calls serial. Init and
// Close must run on the process's main thread. Under a launcher this package's init function locks
// the main goroutine to it, so calling both from main is enough; a process started without a
// launcher calls runtime.LockOSThread in an init function of its own.
//
// # Progress
//
// Whoever calls Drive, Tick or Barrier polls MPI and runs the handlers inline. Drive polls without
// pause for up to 50 us after the last event, then
// gives its core away between polls for 50 us, then sleeps between polls for an eighth of its wait so
// far, 20 us to 1 ms; Post wakes it at once. The first span halves, down to 1 us, when an answer came
// because somebody else had the core, and doubles when it came without: ranks that share a core would
// else wait for each other to stop polling. When this host has more ranks than cores there is no first
// span, and the second one has 500 us; Bind then keeps each rank to one core.
//
// No blocking MPI call is made after Init, not even for the barrier, so other ranks on the same cores
// get their turn; only Shared and the end of a window block, for as long as it takes all ranks of a
// host to come. Open MPI's own giving away of the core (mpi_yield_when_idle, which mpirun --oversubscribe
// turns on) is off but for these.
//
// # Messages
//
// Of the receives of one stream only the first is tested, so a deep ring of them costs nothing. Every
// 32nd control message of a stream is a synchronous send, and what would go out while two of these are unmet waits at
// its sender: see comm.BacklogMax.
//
// Between ranks of a host Open MPI sends up to 4096 bytes at once, with its own header, and asks the receiver before
// it sends more. Init raises that to 40960 bytes, unless the environment or mpirun says otherwise (--mca
// btl_vader_eager_limit N): a control message then never waits, and up to 32 KiB two copies cost less than to ask, to copy
// between processes and to say that it is done, above all where ranks share cores.
//
// # Heartbeats
//
// They are single bytes on a communicator of their own, which any thread sends and takes: between two polls of whoever drives, or
// in place of one who computes. Close waits until those of this rank were taken.
//
// # How a world ends
//
// Close ends it in order. Where MPI itself does not (see finalize.go) it returns an error that wraps
// comm.ErrStuck, and Abort with the exit code, also 0, is the way out. Abort ends every process with the code given, or this one alone where MPI_Abort has not returned after 5 s. A rank that dies by a signal
// or an uncaught panic takes the job down through the launcher, but its last words may be lost and
// the exit code is the launcher's choice; so every goroutine of a rank should start with
//
//	defer func() {
//		if p := recover(); p != nil {
//			fmt.Fprintf(os.Stderr, "rank %d: panic: %v\n%s", t.Rank(), p, debug.Stack())
//			t.Abort(1)
//		}
//	}()
//
// After Init a process must not call os.Exit or log.Fatal before Close: some launchers take exit code
// 0 without a Finalize for success and kill the other ranks silently.
package mpi
