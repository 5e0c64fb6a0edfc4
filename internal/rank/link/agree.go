package link

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"

	"fluentps/internal/comm"
)

// Tags on the data channel: a kind in the high bits, a piece in the low ones. At most one message at a time between two
// ranks uses a tag.
const (
	TagPush uint32 = (1 + iota) << 24
	TagReply
	TagSnapshot
	tagLength
	tagBlob
	TagReplica
	TagKeys
	TagProbe
	TagSum
)

// SendBlob sends bytes to a rank and drives until the sends have completed.
func (l *Link) SendBlob(to int, payload []byte) error {
	head, err := l.t.Alloc(8)
	if err != nil {
		return err
	}
	defer head.Free()
	body, err := l.t.Alloc(len(payload))
	if err != nil {
		return err
	}
	defer body.Free()
	binary.LittleEndian.PutUint64(head.Bytes(), uint64(len(payload)))
	copy(body.Bytes(), payload)
	open := 2
	done := func(d comm.Done) { open--; l.Fail(d.Err) }
	l.t.Isend(comm.Peer(to), comm.Data, tagLength, head, 0, 8, done)
	l.t.Isend(comm.Peer(to), comm.Data, tagBlob, body, 0, len(payload), done)
	return l.Drive(func() bool { return open == 0 })
}

// RecvBlob drives until the next blob of a rank has arrived.
func (l *Link) RecvBlob(from int) ([]byte, error) {
	head, err := l.t.Alloc(8)
	if err != nil {
		return nil, err
	}
	defer head.Free()
	if err := l.receive(from, tagLength, head, 8); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(head.Bytes())
	if n > comm.MessageMax {
		return nil, fmt.Errorf("link: rank %d announces a report of %d bytes; the limit is %d", from, n, comm.MessageMax)
	}
	body, err := l.t.Alloc(int(n))
	if err != nil {
		return nil, err
	}
	defer body.Free()
	if err := l.receive(from, tagBlob, body, int(n)); err != nil {
		return nil, err
	}
	return append([]byte(nil), body.Bytes()...), nil
}

func (l *Link) receive(from int, tag uint32, b *comm.Buf, n int) error {
	open := true
	l.t.Irecv(comm.Peer(from), comm.Data, tag, b, 0, n, func(d comm.Done) { open = false; l.Fail(d.Err) })
	return l.Drive(func() bool { return !open })
}

// Gather returns the values of all ranks, in rank order, on rank 0, and nil on the others.
func Gather[T any](l *Link, mine T) ([]T, error) {
	payload, err := json.Marshal(mine)
	if err != nil {
		return nil, fmt.Errorf("link: %w", err)
	}
	if l.me != 0 {
		return nil, l.SendBlob(0, payload)
	}
	all := make([]T, l.t.Size())
	for from := range all {
		if from == 0 {
			all[0] = mine
			continue
		}
		b, err := l.RecvBlob(from)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(b, &all[from]); err != nil {
			return nil, fmt.Errorf("link: report of rank %d: %w", from, err)
		}
	}
	return all, nil
}

// Spread sets value on every rank to rank 0's value.
func Spread[T any](l *Link, value *T) error {
	if l.me != 0 {
		b, err := l.RecvBlob(0)
		if err != nil {
			return err
		}
		return json.Unmarshal(b, value)
	}
	payload, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("link: %w", err)
	}
	for to := 1; to < l.t.Size(); to++ {
		if err := l.SendBlob(to, payload); err != nil {
			return err
		}
	}
	return nil
}

// Agree returns nil on every rank if mine is nil on every rank. Otherwise every rank returns the same *ExitError with
// this code; it names the problems and the ranks that have them. So a file that is missing on one host does not leave
// the other ranks waiting.
func (l *Link) Agree(mine error, code int) error {
	text := ""
	if mine != nil {
		text = mine.Error()
	}
	all, err := Gather(l, text)
	if err != nil {
		return err
	}
	var verdict string
	if l.me == 0 {
		verdict = l.Verdict(all)
	}
	if err := Spread(l, &verdict); err != nil {
		return err
	}
	if verdict != "" {
		return &ExitError{Code: code, Text: verdict}
	}
	return nil
}

// Verdict joins the ranks' problems. Equal problems appear once, with the ranks and hosts that have them.
func (l *Link) Verdict(all []string) string {
	var order []string
	where := map[string][]string{}
	for rank, text := range all {
		if text == "" {
			continue
		}
		if where[text] == nil {
			order = append(order, text)
		}
		where[text] = append(where[text], l.Place(rank))
	}
	const most = 4 // problems that are shown: on a full disk they differ only by the names of files
	var b strings.Builder
	for i, text := range order {
		if i == most {
			fmt.Fprintf(&b, "\nand %d more such problems on other ranks", len(order)-most)
			break
		}
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString(text)
		if n := len(where[text]); n < len(all) {
			shown := where[text][:min(n, 4)]
			fmt.Fprintf(&b, "\n  (only on %s", strings.Join(shown, ", "))
			if n > len(shown) {
				fmt.Fprintf(&b, " and %d more", n-len(shown))
			}
			fmt.Fprintf(&b, "; the other %d of %d ranks are fine)", len(all)-n, len(all))
		}
	}
	return b.String()
}

// Place names a rank with its host, if that is known.
func (l *Link) Place(rank int) string {
	if rank < len(l.hosts) && l.hosts[rank] != "" {
		return fmt.Sprintf("rank %d, host %s", rank, l.hosts[rank])
	}
	return fmt.Sprintf("rank %d", rank)
}

// ExitError is an error that every rank returns alike, with the exit code.
type ExitError struct {
	Code int
	Text string
}

func (e *ExitError) Error() string { return e.Text }

// Know sets the hosts of all ranks, by rank.
func (l *Link) Know(hosts []string) { l.hosts = hosts }

// Hosts returns the hosts of all ranks, by rank; nil until Know.
func (l *Link) Hosts() []string { return l.hosts }
