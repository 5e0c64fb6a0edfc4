package replica

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"fluentps/comm"
	"fluentps/comm/shm"
	"fluentps/comm/wire"
	"fluentps/ps/checkpoint"
	"fluentps/ps/layout"
	"fluentps/ps/link"
)

// How replicas of checkpoints travel.

// parcel is a file on its way.
type parcel struct {
	version, length int64
	kind            wire.FileKind // a manifest of length 0: the version is given up
	index           int32
	f               *os.File // nil: it is text
	text            []byte
}

// outgoing sends files to a rank, one behind the other.
type outgoing struct {
	q     *Replicas
	rank  int
	b     *comm.Buf
	queue []parcel
	busy  bool
	at    int64 // in the first of them
}

func (q *Replicas) to(rank int) *outgoing {
	if q.out[rank] == nil {
		q.out[rank] = &outgoing{q: q, rank: rank}
	}
	return q.out[rank]
}

func (s *outgoing) put(p parcel) {
	s.q.r.Saving.Open++
	s.queue = append(s.queue, p)
	s.pump()
}

func (s *outgoing) pump() {
	r := s.q.r
	if s.busy || len(s.queue) == 0 {
		return
	}
	if s.b == nil {
		var err error
		if s.b, err = r.Transport.Alloc(layout.ParcelHead + layout.ParcelMax); err != nil {
			r.Net.Fail(err)
			return
		}
	}
	p, le := &s.queue[0], binary.LittleEndian
	n := int(min(layout.ParcelMax, p.length-s.at))
	b := s.b.Bytes()
	for i, v := range []int64{p.version, s.at, p.length} {
		le.PutUint64(b[8*i:], uint64(v))
	}
	le.PutUint32(b[24:], uint32(p.index))
	le.PutUint32(b[28:], uint32(p.kind))
	if p.f == nil {
		copy(b[layout.ParcelHead:], p.text[s.at:])
	} else if _, err := p.f.ReadAt(b[layout.ParcelHead:layout.ParcelHead+n], s.at); err != nil {
		s.q.noReplica(err) // what arrives has another checksum
	}
	s.busy = true
	r.Transport.Isend(comm.Peer(s.rank), comm.Data, link.TagReplica, s.b, 0, layout.ParcelHead+n, func(d comm.Done) {
		s.busy = false
		r.Net.Fail(d.Err)
		if s.at += int64(n); s.at == s.queue[0].length {
			if f := s.queue[0].f; f != nil {
				r.Net.Fail(f.Close())
			}
			s.queue, s.at = s.queue[1:], 0
			r.Saving.Open--
			if len(s.queue) == 0 {
				s.b.Free()
				s.b = nil
			}
		}
		s.pump()
	})
}

// incoming writes the files of a rank.
type incoming struct {
	q      *Replicas
	from   int
	b      *comm.Buf
	op     comm.Op
	f      *os.File
	failed error // of the file that comes; its parcels are passed over
}

func (s *incoming) post() {
	s.q.posted++
	s.op = s.q.r.Transport.Irecv(comm.Peer(s.from), comm.Data, link.TagReplica, s.b, 0, layout.ParcelHead+layout.ParcelMax, func(d comm.Done) {
		s.q.posted--
		switch {
		case s.q.closing:
		case d.Err != nil:
			s.q.r.Net.Fail(fmt.Errorf("replica: what came of rank %d: %w", s.from, d.Err))
		default:
			s.came(s.b.Bytes()[:d.N])
			s.post()
		}
	})
}

func (s *incoming) came(b []byte) {
	le := binary.LittleEndian
	var p parcel
	if len(b) < layout.ParcelHead {
		s.q.r.Net.Fail(fmt.Errorf("replica: what came of rank %d: %d bytes, and the header has %d", s.from, len(b), layout.ParcelHead))
		return
	}
	at := int64(le.Uint64(b[8:]))
	p.version, p.length, p.index, p.kind = int64(le.Uint64(b)), int64(le.Uint64(b[16:])), int32(le.Uint32(b[24:])), wire.FileKind(le.Uint32(b[28:]))
	b = b[layout.ParcelHead:]
	if at == 0 && p.length > 0 {
		s.f, s.failed = s.q.create(&p)
	}
	if s.failed == nil && len(b) > 0 {
		_, s.failed = s.f.WriteAt(b, at)
	}
	if at+int64(len(b)) < p.length {
		return
	}
	if s.f != nil {
		s.failed = errors.Join(s.failed, s.f.Close())
		s.f = nil
	}
	s.q.got(&p, s.failed)
	s.failed = nil
}

// create makes the file of a parcel in this host's memory.
func (q *Replicas) create(p *parcel) (*os.File, error) {
	name := ""
	if p.kind != wire.ManifestFile {
		name = FileName(p.kind, p.index)
	}
	f, err := checkpoint.MakeReplica(q.at, p.version, name)
	if err == nil {
		err = shm.Reserve(f, p.length, q.spare)
	}
	return f, err
}
