package replica

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"fluentps/internal/comm"
	"fluentps/internal/comm/shm"
	"fluentps/internal/comm/wire"
	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/plan/layout"
	"fluentps/internal/rank/link"
)

// Replicas of checkpoints travel in parcels: parts of a file, each with a header.

// parcel is a file that is being sent or received.
type parcel struct {
	version, length int64
	kind            wire.FileKind // a manifest of length 0: the version is given up
	index           int32
	file            *os.File // nil: the content is text
	text            []byte
}

// outgoing sends files to a rank, one after the other.
type outgoing struct {
	replicas *Replicas
	rank     int
	buf      *comm.Buf
	queue    []parcel
	inFlight bool
	offset   int64 // in the first file of the queue
}

func (q *Replicas) outgoingTo(rank int) *outgoing {
	if q.out[rank] == nil {
		q.out[rank] = &outgoing{replicas: q, rank: rank}
	}
	return q.out[rank]
}

func (s *outgoing) send(p parcel) {
	s.replicas.station.Saving.Open++
	s.queue = append(s.queue, p)
	s.sendNext()
}

func (s *outgoing) sendNext() {
	r := s.replicas.station
	if s.inFlight || len(s.queue) == 0 {
		return
	}
	if s.buf == nil {
		var err error
		if s.buf, err = r.Transport.Alloc(layout.ParcelHead + layout.ParcelMax); err != nil {
			r.Net.Fail(err)
			return
		}
	}
	p, le := &s.queue[0], binary.LittleEndian
	n := int(min(layout.ParcelMax, p.length-s.offset))
	b := s.buf.Bytes()
	for i, v := range []int64{p.version, s.offset, p.length} {
		le.PutUint64(b[8*i:], uint64(v))
	}
	le.PutUint32(b[24:], uint32(p.index))
	le.PutUint32(b[28:], uint32(p.kind))
	if p.file == nil {
		copy(b[layout.ParcelHead:], p.text[s.offset:])
	} else if _, err := p.file.ReadAt(b[layout.ParcelHead:layout.ParcelHead+n], s.offset); err != nil {
		s.replicas.warnNoReplica(err) // the receiver gets other bytes, which fail the checksum
	}
	s.inFlight = true
	r.Transport.Isend(comm.Peer(s.rank), comm.Data, link.TagReplica, s.buf, 0, layout.ParcelHead+n, func(d comm.Done) {
		s.inFlight = false
		r.Net.Fail(d.Err)
		if s.offset += int64(n); s.offset == s.queue[0].length {
			if f := s.queue[0].file; f != nil {
				r.Net.Fail(f.Close())
			}
			s.queue, s.offset = s.queue[1:], 0
			r.Saving.Open--
			if len(s.queue) == 0 {
				s.buf.Free()
				s.buf = nil
			}
		}
		s.sendNext()
	})
}

// incoming writes the files that a rank sends.
type incoming struct {
	replicas *Replicas
	from     int
	buf      *comm.Buf
	op       comm.Op
	file     *os.File
	err      error // of the current file, whose other parcels are ignored
}

func (s *incoming) post() {
	s.replicas.receivesPosted++
	s.op = s.replicas.station.Transport.Irecv(comm.Peer(s.from), comm.Data, link.TagReplica, s.buf, 0, layout.ParcelHead+
		layout.ParcelMax, func(d comm.Done) {
		s.replicas.receivesPosted--
		switch {
		case s.replicas.closing:
		case d.Err != nil:
			s.replicas.station.Net.Fail(fmt.Errorf("replica: parcel of rank %d: %w", s.from, d.Err))
		default:
			s.receive(s.buf.Bytes()[:d.N])
			s.post()
		}
	})
}

func (s *incoming) receive(b []byte) {
	le := binary.LittleEndian
	var p parcel
	if len(b) < layout.ParcelHead {
		s.replicas.station.Net.Fail(fmt.Errorf("replica: parcel of rank %d has %d bytes; its header alone has %d", s.from,
			len(b), layout.ParcelHead))
		return
	}
	at := int64(le.Uint64(b[8:]))
	p.version, p.length, p.index, p.kind = int64(le.Uint64(b)), int64(le.Uint64(b[16:])), int32(le.Uint32(b[24:])),
		wire.FileKind(le.Uint32(b[28:]))
	b = b[layout.ParcelHead:]
	if at == 0 && p.length > 0 {
		s.file, s.err = s.replicas.create(&p)
	}
	if s.err == nil && len(b) > 0 {
		_, s.err = s.file.WriteAt(b, at)
	}
	if at+int64(len(b)) < p.length {
		return
	}
	if s.file != nil {
		s.err = errors.Join(s.err, s.file.Close())
		s.file = nil
	}
	s.replicas.received(&p, s.err)
	s.err = nil
}

// create makes the file of a parcel in this host's memory.
func (q *Replicas) create(p *parcel) (*os.File, error) {
	name := ""
	if p.kind != wire.ManifestFile {
		name = FileName(p.kind, p.index)
	}
	f, err := checkpoint.MakeReplica(q.folder, p.version, name)
	if err == nil {
		err = shm.Reserve(f, p.length, q.spareBytes)
	}
	return f, err
}
