package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/parquet-go/parquet-go/format"
)

// payload is the unpacked bytes of a page, whose counts are checked before the library takes memory for them: a few bytes may say to be
// 2^31 values. The encodings are those of the format ([C], Encodings.md).
type payload struct {
	b      []byte
	values uint64 // that the header says
}

// plainDictionary is what files of the first version call both PLAIN of a dictionary and RLE_DICTIONARY of a data page.
const plainDictionary format.Encoding = 2

// check fails if a page has more values than its header h says. optional says whether values may be missing, so that there are levels.
func (p payload) check(h *header, optional bool) error {
	if h.isDictionary {
		if h.encoding != int64(format.Plain) && h.encoding != int64(plainDictionary) {
			return fmt.Errorf("a dictionary is encoded as %v", format.Encoding(h.encoding))
		}
		return nil // its values are as many as its bytes have
	}
	switch {
	case h.isV2:
		if optional {
			if err := runs(p.b[:h.levels], 1, p.values); err != nil {
				return fmt.Errorf("levels: %w", err)
			}
		}
		p.b = p.b[h.levels:]
	case optional:
		if len(p.b) < 4 {
			return errShort
		}
		n := binary.LittleEndian.Uint32(p.b)
		if uint64(n) > uint64(len(p.b)-4) {
			return errShort
		}
		if err := runs(p.b[4:4+n], 1, p.values); err != nil {
			return fmt.Errorf("levels: %w", err)
		}
		p.b = p.b[4+n:]
	}
	return p.encoded(format.Encoding(h.encoding))
}

// encoded checks the values of a data page.
func (p payload) encoded(e format.Encoding) error {
	switch e {
	case format.Plain, format.ByteStreamSplit:
		return nil // as many as there are bytes
	case plainDictionary, format.RLEDictionary:
		if len(p.b) == 0 {
			return nil // all are missing
		}
		if p.b[0] > 32 {
			return fmt.Errorf("indices of %d bits", p.b[0])
		}
		return runs(p.b[1:], int(p.b[0]), p.values)
	case format.RLE:
		if len(p.b) < 4 {
			return nil // all are missing, or the library says it
		}
		return runs(p.b[4:], 1, p.values)
	case format.DeltaBinaryPacked, format.DeltaLengthByteArray:
		_, err := deltas(p.b, p.values)
		return err
	case format.DeltaByteArray:
		rest, err := deltas(p.b, p.values)
		if err == nil {
			_, err = deltas(rest, p.values)
		}
		return err
	}
	return fmt.Errorf("it is encoded as %v, which is not read; write the file with another writer", e)
}

// runs checks a hybrid of runs and packed groups of values of so many bits: they may be up to 7 more than most.
func runs(b []byte, bits int, most uint64) error {
	for total := uint64(0); len(b) > 0; {
		head, n := binary.Uvarint(b)
		if n <= 0 {
			return errShort
		}
		b = b[n:]
		count, size := head>>1, uint64(bits+7)/8
		if head&1 == 1 {
			count, size = count*8, head>>1*uint64(bits)
		}
		if total += count; head>>1 > most || total > most+7 {
			return fmt.Errorf("runs of %d values and more, of %d", total, most)
		}
		b = b[min(size, uint64(len(b))):] // the last group may be cut short
	}
	return nil
}

// deltas checks a block of numbers in binary packing of differences, and returns what is behind it.
func deltas(b []byte, most uint64) (rest []byte, err error) {
	var head [4]uint64 // values of a block, miniblocks of a block, values, the first value
	if len(b) == 0 && most == 0 {
		return nil, nil
	}
	for i := range head {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, errShort
		}
		head[i], b = v, b[n:]
	}
	block, minis, count := head[0], head[1], head[2]
	switch {
	case count > most:
		return nil, fmt.Errorf("differences of %d values, of %d", count, most)
	case block == 0 || block > 1<<16 || minis == 0 || minis > block || block%minis != 0:
		return nil, fmt.Errorf("differences in blocks of %d values and %d parts", block, minis)
	}
	for left := int64(count) - 1; left > 0; {
		_, n := binary.Uvarint(b) // the least difference
		if n <= 0 || uint64(len(b)-n) < minis {
			return nil, errShort
		}
		widths := b[n : n+int(minis)]
		b = b[n+int(minis):]
		for _, w := range widths {
			if left <= 0 {
				break
			}
			if w > 64 {
				return nil, errors.New("differences of more than 64 bits")
			}
			size := uint64(w) * (block / minis) / 8
			if size > uint64(len(b)) {
				return nil, errShort
			}
			b, left = b[size:], left-int64(block/minis)
		}
	}
	return b, nil
}
