package external

import (
	"testing"

	"golang.org/x/sys/unix"
)

// A child that ends with messages unread has said why: its FAIL is received, whether the parent sends next or receives.
func TestTheLastWordOfAChildIsHeard(t *testing.T) {
	leavesNothing(t)
	gone()
	for what, next := range map[string]func(c *Child) error{
		"receive": func(c *Child) error {
			_, err := c.receive()
			return err
		},
		"send": func(c *Child) error { return c.send(&Message{Kind: Hello, A: Version}, nil) },
	} {
		c, fd := pretended(t)
		c.order.state = binding
		if err := c.socket.send(&Message{Kind: Hello, A: Version}, nil); err != nil { // nobody reads it
			t.Fatal(err)
		}
		why := (&Message{Kind: Fail, Text: []byte("out of memory")}).appendTo(nil)
		if err := unix.Sendmsg(fd, why, nil, nil, unix.MSG_NOSIGNAL); err != nil {
			t.Fatal(err)
		}
		_ = unix.Close(fd)
		mustSay(t, what, c.ends(next(c)), "has failed: out of memory")
	}
}
