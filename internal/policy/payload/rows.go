package payload

import (
	"encoding/binary"
	"fmt"
	"math"
)

// rows sends the rows that are not all zeros: of an embedding, or of factors, the rows that some sample of the batch
// uses. All other rows are zero, so nothing is lost, and there is no residual. The bytes are a count, then the index
// (uint32, increasing) and the elements of each row sent.
//
// rows is no entry of the table: it follows from the parameter, and no user chooses it.
type rows struct {
	width int // elements of a row; the last row of a vector may have fewer
	cut   int // elements of the first row that lie in another vector: 0 <= cut < width
}

// NewRows returns the codec of vectors of rows of width elements; the first row lacks its first cut elements.
func NewRows(width, cut int) Codec {
	if width < 1 || cut < 0 || cut >= width {
		panic(fmt.Sprintf("payload: rows of %d elements, of the first of which %d are missing", width, cut))
	}
	return rows{width, cut}
}

const rowBytes = 4 // of an index

func (r rows) count(n int) int { return (n + r.cut + r.width - 1) / r.width }

func (r rows) EncodedMax(n int) int { return countBytes + rowBytes*r.count(n) + 4*n }

// row returns the elements of row i in a vector.
func (r rows) row(v []float32, i int) []float32 {
	return v[max(0, i*r.width-r.cut):min(len(v), (i+1)*r.width-r.cut)]
}

func (r rows) Encode(dst []byte, src, residual []float32) int {
	if residual != nil {
		panic("payload: rows take no residual, because they leave nothing out")
	}
	if int64(r.count(len(src))) > indexMax {
		panic(fmt.Sprintf("payload: %d rows; an index has 32 bits", r.count(len(src))))
	}
	sent, at := 0, countBytes
	for i := range r.count(len(src)) {
		row := r.row(src, i)
		if isZero(row) {
			continue
		}
		binary.LittleEndian.PutUint32(dst[at:], uint32(i))
		at += rowBytes
		for _, x := range row {
			binary.LittleEndian.PutUint32(dst[at:], math.Float32bits(x))
			at += 4
		}
		sent++
	}
	binary.LittleEndian.PutUint32(dst, uint32(sent))
	return at
}

// isZero returns whether a row can be left out without a loss: it has no -0 either, because decoding restores the bits.
func isZero(row []float32) bool {
	for _, x := range row {
		if math.Float32bits(x) != 0 {
			return false
		}
	}
	return true
}

func (r rows) Decode(dst []float32, src []byte) error {
	if len(src) < countBytes {
		return fmt.Errorf("payload: received %d bytes, but a count alone has %d", len(src), countBytes)
	}
	sent, all := int64(binary.LittleEndian.Uint32(src)), r.count(len(dst))
	if sent > int64(all) {
		return fmt.Errorf("payload: received %d rows, but there are %d of %d elements; both sides must have the same shards",
			sent, all, r.width)
	}
	clear(dst)
	at, next := countBytes, 0
	for k := range int(sent) {
		if len(src)-at < rowBytes {
			return fmt.Errorf("payload: the message ends at row %d of %d", k, sent)
		}
		i := int64(binary.LittleEndian.Uint32(src[at:]))
		if at += rowBytes; i < int64(next) || i >= int64(all) {
			return fmt.Errorf("payload: received index %d as row %d; want %d to %d: the message is damaged", i, k, next, all-1)
		}
		row := r.row(dst, int(i))
		if len(src)-at < 4*len(row) {
			return fmt.Errorf("payload: the message ends in row %d of %d", k, sent)
		}
		for j := range row {
			row[j] = math.Float32frombits(binary.LittleEndian.Uint32(src[at:]))
			at += 4
		}
		next = int(i) + 1
	}
	if at != len(src) {
		return fmt.Errorf("payload: received %d bytes for %d rows, want %d", len(src), sent, at)
	}
	return nil
}
