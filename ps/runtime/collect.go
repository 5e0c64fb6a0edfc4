package runtime

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"

	"fluentps/comm"
)

// Tags on the data channel: a kind in the high bits, a piece in the low ones. Each is used by at most one
// message at a time between two ranks.
const (
	tagPush uint32 = (1 + iota) << 24
	tagReply
	tagSnapshot
	tagLength
	tagBlob
	tagReplica
	tagKeys
)

// sendBlob sends bytes to a rank and drives until they have left.
func (r *rank) sendBlob(to int, payload []byte) error {
	head, err := r.t.Alloc(8)
	if err != nil {
		return err
	}
	defer head.Free()
	body, err := r.t.Alloc(len(payload))
	if err != nil {
		return err
	}
	defer body.Free()
	binary.LittleEndian.PutUint64(head.Bytes(), uint64(len(payload)))
	copy(body.Bytes(), payload)
	open := 2
	done := func(d comm.Done) { open--; r.fail(d.Err) }
	r.t.Isend(comm.Peer(to), comm.Data, tagLength, head, 0, 8, done)
	r.t.Isend(comm.Peer(to), comm.Data, tagBlob, body, 0, len(payload), done)
	return r.drive(func() bool { return open == 0 })
}

// recvBlob drives until the next blob of a rank is here.
func (r *rank) recvBlob(from int) ([]byte, error) {
	head, err := r.t.Alloc(8)
	if err != nil {
		return nil, err
	}
	defer head.Free()
	if err := r.receive(from, tagLength, head, 8); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(head.Bytes())
	if n > comm.MessageMax {
		return nil, fmt.Errorf("runtime: rank %d announces a report of %d bytes; the limit is %d", from, n, comm.MessageMax)
	}
	body, err := r.t.Alloc(int(n))
	if err != nil {
		return nil, err
	}
	defer body.Free()
	if err := r.receive(from, tagBlob, body, int(n)); err != nil {
		return nil, err
	}
	return append([]byte(nil), body.Bytes()...), nil
}

func (r *rank) receive(from int, tag uint32, b *comm.Buf, n int) error {
	open := true
	r.t.Irecv(comm.Peer(from), comm.Data, tag, b, 0, n, func(d comm.Done) { open = false; r.fail(d.Err) })
	return r.drive(func() bool { return !open })
}

// gather gives rank 0 everybody's value, in rank order; others get nil.
func gather[T any](r *rank, mine T) ([]T, error) {
	payload, err := json.Marshal(mine)
	if err != nil {
		return nil, fmt.Errorf("runtime: %w", err)
	}
	if r.me != 0 {
		return nil, r.sendBlob(0, payload)
	}
	all := make([]T, r.t.Size())
	for from := range all {
		if from == 0 {
			all[0] = mine
			continue
		}
		b, err := r.recvBlob(from)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(b, &all[from]); err != nil {
			return nil, fmt.Errorf("runtime: report of rank %d: %w", from, err)
		}
	}
	return all, nil
}

// spread gives everybody rank 0's value.
func spread[T any](r *rank, value *T) error {
	if r.me != 0 {
		b, err := r.recvBlob(0)
		if err != nil {
			return err
		}
		return json.Unmarshal(b, value)
	}
	payload, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("runtime: %w", err)
	}
	for to := 1; to < r.t.Size(); to++ {
		if err := r.sendBlob(to, payload); err != nil {
			return err
		}
	}
	return nil
}

// agree is nil on every rank if mine is nil on every rank. Otherwise every rank returns the same error, with
// this code, that says what is wrong where: a file that is missing on one host must not leave the others waiting.
func (r *rank) agree(mine error, code int) error {
	text := ""
	if mine != nil {
		text = mine.Error()
	}
	all, err := gather(r, text)
	if err != nil {
		return err
	}
	var verdict string
	if r.me == 0 {
		verdict = r.verdict(all)
	}
	if err := spread(r, &verdict); err != nil {
		return err
	}
	if verdict != "" {
		return &ExitError{Code: code, Text: verdict}
	}
	return nil
}

// verdict joins the ranks' problems, equal ones once, each with the ranks and hosts that have it.
func (r *rank) verdict(all []string) string {
	var order []string
	where := map[string][]string{}
	for rank, text := range all {
		if text == "" {
			continue
		}
		if where[text] == nil {
			order = append(order, text)
		}
		where[text] = append(where[text], r.place(rank))
	}
	const most = 4 // of them are shown: those of a full disk differ by the names of their files
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

func (r *rank) place(rank int) string {
	if rank < len(r.hosts) && r.hosts[rank] != "" {
		return fmt.Sprintf("rank %d, host %s", rank, r.hosts[rank])
	}
	return fmt.Sprintf("rank %d", rank)
}

// data is what a rank read.
type data struct {
	SHA256              string
	Rows, Test, Columns int
}

// sameData refuses ranks that read different data: a host with an old copy would train something else, silently.
func (r *rank) sameData() error {
	mine := data{SHA256: r.set.SHA256(), Rows: r.set.Train.Rows(), Test: r.set.Test.Rows(), Columns: r.set.Train.Cols()}
	all, err := gather(r, mine)
	if err != nil {
		return err
	}
	verdict := ""
	for i, d := range all {
		if d != all[0] {
			verdict = fmt.Sprintf("%s reads other data than rank 0: %d training rows, %d test rows, %d columns, sha256 %.12s against %d, %d, %d, %.12s; put the same files on all hosts",
				r.place(i), d.Rows, d.Test, d.Columns, d.SHA256, all[0].Rows, all[0].Test, all[0].Columns, all[0].SHA256)
			break
		}
	}
	if err := spread(r, &verdict); err != nil {
		return err
	}
	if verdict != "" {
		return usage("%s", verdict)
	}
	return nil
}
