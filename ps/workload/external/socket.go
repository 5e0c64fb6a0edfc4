package external

import (
	"errors"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// lookEvery is how often a parent that waits for its child looks whether the child is alive.
const lookEvery = 500 * time.Millisecond

// Go's watcher thread takes the processor of a goroutine that is for 10 ms in one call of the system, or was not rescheduled for that long.
// Whenever it has done so, it looks again every 20 us, about 50 times, which costs a core more than all else that this side does in a step
// of a small network.
const (
	receiveMax = 4 * time.Millisecond // of one call
	restEvery  = 6 * time.Millisecond
)

// socket is the parent's end of the pair. One goroutine at a time sends and receives.
type socket struct {
	fd  int
	out []byte
	in  []byte

	rested time.Time // when Go last rescheduled the goroutine that receives

	mu     sync.Mutex // guards closed: who wakes is another goroutine
	closed bool       // fd may be that of another file by now
}

var (
	errLook  = errors.New("external: nothing has come for a while")
	errEnded = errors.New("external: the other side is gone")
)

// newPair makes the pair. The child's end is closed on exec in every process but the one that is started with it.
func newPair() (*socket, *os.File, error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	receives, sends := unix.NsecToTimeval(int64(receiveMax)), unix.NsecToTimeval(int64(lookEvery))
	err = errors.Join(unix.SetsockoptTimeval(ends[0], unix.SOL_SOCKET, unix.SO_RCVTIMEO, &receives),
		unix.SetsockoptTimeval(ends[0], unix.SOL_SOCKET, unix.SO_SNDTIMEO, &sends))
	if err != nil {
		return nil, nil, errors.Join(err, unix.Close(ends[0]), unix.Close(ends[1]))
	}
	return &socket{fd: ends[0], in: make([]byte, headBytes+textBytesMax+1)}, os.NewFile(uintptr(ends[1]), "child"), nil
}

// send sends a message, with a descriptor unless file is nil. errLook: the child takes nothing at present.
func (s *socket) send(m *Message, file *os.File) error {
	s.out = m.appendTo(s.out[:0])
	var rights []byte
	if file != nil {
		rights = unix.UnixRights(int(file.Fd()))
	}
	for {
		switch err := unix.Sendmsg(s.fd, s.out, rights, nil, unix.MSG_NOSIGNAL); err {
		case nil:
			return nil
		case unix.EINTR:
		case unix.EAGAIN:
			return errLook
		default:
			return errEnded
		}
	}
}

// receive waits for a packet. errLook: none has come for a while. It blocks its thread: a goroutine that waits for the network poller
// would hear of a message 30 us later.
func (s *socket) receive() ([]byte, error) {
	resets, since := 0, time.Now()
	for {
		now := time.Now()
		if now.Sub(s.rested) > restEvery {
			s.rested = now
			runtime.Gosched()
		}
		n, _, err := unix.Recvfrom(s.fd, s.in, 0)
		switch {
		case err == unix.EINTR:
		case err == unix.ECONNRESET && resets == 0: // said once, where a child ends with messages unread; what it has sent comes behind it
			resets++
		case err == unix.EAGAIN && now.Sub(since) < lookEvery:
		case err == unix.EAGAIN:
			return nil, errLook
		case err != nil || n == 0 && s.isOver():
			return nil, errEnded
		default:
			return s.in[:n], nil
		}
	}
}

// isOver tells the end of a connection from a packet of 0 bytes.
func (s *socket) isOver() bool {
	poll := []unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLRDHUP}}
	n, err := unix.Poll(poll, 0)
	for err == unix.EINTR {
		n, err = unix.Poll(poll, 0)
	}
	return err != nil || n > 0 && poll[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0
}

// wake ends a receive that waits, and all later ones.
func (s *socket) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		_ = unix.Shutdown(s.fd, unix.SHUT_RDWR)
	}
}

func (s *socket) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		_ = unix.Close(s.fd)
	}
}
