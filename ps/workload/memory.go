package workload

// held is the memory of a table, in bytes: its own, and what the tables of one set have in common.
type held interface {
	holds() (own, common int64)
}

// Bytes is the memory that a loaded set takes of its process.
func (s *Set) Bytes() int64 {
	var total, common int64
	for _, t := range []Table{s.Train, s.Test} {
		if h, ok := t.(firstRows); ok { // what it does not show is in memory, too
			t = h.Table
		}
		if h, ok := t.(held); ok {
			own, shared := h.holds()
			total, common = total+own, max(common, shared)
		}
	}
	return total + common
}

// ReadBytes is what reading the set may take beside Bytes, for a while: rows whose number is not known beforehand are read into
// memory that grows by a quarter again and again, the old one is let go only after the new one was filled, and some more garbage
// waits for the collector. Measured of idx, csv and libsvm with GOGC=25: 0.8 to 1.5 times Bytes.
func (s *Set) ReadBytes() int64 { return 2 * s.Bytes() }

const valueBytes = 4 // of a float32, of an int32

func (p *pixels) holds() (own, common int64) {
	return int64(cap(p.data) + cap(p.labels)), int64(len(p.values)) * 256 * valueBytes
}

func (t *rowsTable) holds() (own, common int64) {
	return valueBytes * int64(cap(t.x)+cap(t.y)), 0
}

func (t *sparse) holds() (own, common int64) {
	return 2*valueBytes*int64(cap(t.start)) + valueBytes*int64(cap(t.index)+cap(t.value)+cap(t.y)), 0
}

func (t *blobs) holds() (own, common int64) {
	return 0, valueBytes * int64(len(t.centres)+len(t.normal))
}

func (t *words) holds() (own, common int64) {
	return 0, valueBytes * int64(len(t.weight)+len(t.normal))
}

func (t *product) holds() (own, common int64) {
	return 0, valueBytes * int64(len(t.left)+len(t.right)+len(t.normal))
}
