package shard

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The bytes of a push, a pull and a reply. With a list of tensors, 8 + 4 bytes a tensor and 4 a parameter, the pull 8 a
// tensor. Where every scalar has a key, 12, 8 and 12 bytes a parameter, all on server 0.
func TestBytesOfMessagesWithKeys(t *testing.T) {
	const n = 784*256 + 256 + 256*128 + 128 + 128*10 + 10
	for _, c := range []struct {
		keys, slice string
		want        string // of each shard: server, pieces, bytes of its push, its pull, its reply
	}{
		{KeysTensor, "range", "s0 1 802816 0 802816; s0 1 1024 0 1024; s0 1 131072 0 131072; s0 1 512 0 512; s0 1 5120 0 5120; s0 1 40 0 40"},
		{KeysList, "range", fmt.Sprintf("s0 1 %d %d %d", 4*n+6*12, 6*8, 4*n+6*12)},
		{KeysList, "even", fmt.Sprintf("s0 1 %d 8 %[1]d; s1 1 %[2]d 48 %[2]d", 2*n+12, 2*n+6*12)},
		{KeysScalar, "range", fmt.Sprintf("s0 1 %d %d %d", 12*n, 8*n, 12*n)},
		{KeysScalar, "even", fmt.Sprintf("s0 1 %d %d %[1]d; s1 1 %[1]d %[2]d %[1]d", 6*n, 4*n)},
	} {
		p, err := Cut(mlp(), Options{Slice: c.slice, MaxBytes: 64 << 20, Servers: 2, Rules: []string{"*"}, Keys: c.keys})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range p.Shards {
			s := &p.Shards[i]
			push, reply := s.WireBytes()
			got = append(got, fmt.Sprintf("s%d %d %d %d %d", s.Server, len(s.Pieces), push, s.PullBytes(), reply))
		}
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%s, %s:\ngot  %s\nwant %s", c.keys, c.slice, strings.Join(got, "; "), c.want)
		}
	}
}

// PS-Lite's slicer finds every key on the server that holds the elements of that key. Within a message keys ascend and
// stand for each of its elements once; layers make no cut.
func TestKeysLieWhereTheSlicerLooks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, o := genPlan(t)
		width := math.MaxUint64 / uint64(o.Servers)
		seen := map[uint64]int{}
		for i := range p.Pieces {
			q := &p.Pieces[i]
			server, n := p.Shards[q.Shard].Server, q.Hi-q.Lo
			keys, lengths := p.TensorKeys(q)
			switch o.Keys {
			case KeysScalar:
				keys, lengths = nil, nil
				for e := range n {
					keys, lengths = append(keys, p.ScalarKey(q)+uint64(e)), append(lengths, 1)
				}
			case KeysList:
			default:
				if q.Keys != 0 || q.PushBytes != q.Bytes() {
					t.Fatalf("keys %q: piece %+v", o.Keys, *q)
				}
				continue
			}
			sum := 0
			for k, key := range keys {
				if int32(key/width) != server || k > 0 && key <= keys[k-1] || lengths[k] < 1 {
					t.Fatalf("piece %+v on server %d: keys %v, lengths %v", *q, server, keys, lengths)
				}
				sum += lengths[k]
				seen[key] += lengths[k]
			}
			if sum != n || len(keys) != q.Keys || q.PullBytes() != 8*int64(len(keys)) {
				t.Fatalf("piece %+v: %d keys of %d elements", *q, len(keys), sum)
			}
			if o.Keys == KeysList && q.PushBytes != 4*int64(n)+12*int64(len(keys)) || o.Keys == KeysScalar &&
				q.PushBytes != 12*int64(n) || q.ReplyBytes != q.PushBytes {
				t.Fatalf("piece %+v takes %d and %d bytes", *q, q.PushBytes, q.ReplyBytes)
			}
			last := p.Shards[q.Shard].Pieces[len(p.Shards[q.Shard].Pieces)-1].ID == q.ID
			if !last && int64(n) != o.MaxBytes/ElemBytes {
				t.Fatalf("piece %+v was cut though a message has room for %d elements", *q, o.MaxBytes/ElemBytes)
			}
		}
		if o.Keys != KeysScalar {
			return
		}
		for key, n := range seen {
			if n != 1 {
				t.Fatalf("key %d stands for %d scalars", key, n)
			}
		}
		if len(seen) != p.Arena {
			t.Fatalf("%d keys of %d scalars", len(seen), p.Arena)
		}
	})
}

// Where every scalar has a key, PS-Lite's slicer gives them all to server 0: they are numbered from 0.
func TestScalarKeysAreAllServer0s(t *testing.T) {
	p, err := Cut(mlp(), Options{Slice: "range", MaxBytes: 64 << 20, Servers: 4, Rules: []string{"*"}, Keys: KeysScalar})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Shards) != 1 || p.Shards[0].Server != 0 || p.ScalarKey(&p.Pieces[0]) != 0 || p.Pieces[0].Keys != p.Arena ||
		p.Pieces[0].Layer != 2 {
		t.Errorf("got %+v", p.Shards)
	}
}
