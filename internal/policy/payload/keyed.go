package payload

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// Keyed is a codec of values that travel with their keys, as in messages of PS-Lite: first all keys (uint64), then, if
// keys stand for several values, the number of values of each (uint32), then the values as they are, in the order of
// the keys. Keys ascend. A Keyed encodes and decodes vectors of one length only. It is no row of All, because it
// depends on the keys of its vector.
//
// The receiver looks up each key among its own. That costs next to nothing here: keys of scalars are consecutive, so
// that their table needs no memory. A hash table of all keys would cost more.
type Keyed struct {
	first   uint64   // scalars: the key of the first value; the others follow
	n       int      // values
	keys    []uint64 // of runs of values, ascending; nil: scalars
	lengths []int    // of each run
	starts  []int    // the offset of each run
}

const (
	keyBytes    = 8
	lengthBytes = 4
	valueBytes  = 4
)

// KeyedScalars returns the codec of n values with a key each: first and the n-1 keys after it.
func KeyedScalars(first uint64, n int) *Keyed { return &Keyed{first: first, n: n} }

// KeyedRuns returns the codec of runs of values with one key each. The keys ascend, and no run is empty; anything else
// is the caller's bug, and panics.
func KeyedRuns(keys []uint64, lengths []int) *Keyed {
	k := &Keyed{keys: keys, lengths: lengths}
	for i, n := range lengths {
		if n < 1 || i > 0 && keys[i] <= keys[i-1] {
			panic(fmt.Sprintf("payload: keys %v of %v values", keys, lengths))
		}
		k.starts = append(k.starts, k.n)
		k.n += n
	}
	return k
}

func (k *Keyed) count() int {
	if k.keys == nil {
		return k.n
	}
	return len(k.keys)
}

// KeysBytes returns the bytes of the keys alone.
func (k *Keyed) KeysBytes() int { return k.count() * keyBytes }

// head returns the bytes before the values.
func (k *Keyed) head() int { return k.KeysBytes() + len(k.lengths)*lengthBytes }

func (k *Keyed) EncodedMax(int) int { return k.head() + k.n*valueBytes }

// EncodeKeys writes the keys alone: the body of a pull.
func (k *Keyed) EncodeKeys(dst []byte) {
	for i := range k.count() {
		binary.LittleEndian.PutUint64(dst[keyBytes*i:], k.key(i))
	}
}

func (k *Keyed) key(i int) uint64 {
	if k.keys == nil {
		return k.first + uint64(i)
	}
	return k.keys[i]
}

func (k *Keyed) Encode(dst []byte, src, residual []float32) int {
	if residual != nil || len(src) != k.n {
		panic(fmt.Sprintf("payload: %d values of %d with keys, and a residual of %d", len(src), k.n, len(residual)))
	}
	k.EncodeKeys(dst)
	for i, n := range k.lengths {
		binary.LittleEndian.PutUint32(dst[k.KeysBytes()+lengthBytes*i:], uint32(n))
	}
	encodeFull(dst[k.head():], src)
	return k.EncodedMax(k.n)
}

// DecodeKeys reads the keys of a pull. It fails unless they are exactly the keys of this codec.
func (k *Keyed) DecodeKeys(src []byte) error {
	if len(src) != k.KeysBytes() {
		return fmt.Errorf("payload: received %d bytes of keys, want %d keys of %d bytes; both sides need the same model and shards",
			len(src), k.count(), keyBytes)
	}
	last := -1
	for i := range k.count() {
		var err error
		if last, err = k.lookUp(binary.LittleEndian.Uint64(src[keyBytes*i:]), last); err != nil {
			return err
		}
	}
	return nil
}

// lookUp returns the index of a key among ours, which must be larger than last. So no key is accepted twice, and if as
// many arrive as there are, none is missing.
func (k *Keyed) lookUp(key uint64, last int) (at int, err error) {
	ok := true
	if k.keys == nil {
		at = int(min(key-k.first, uint64(k.n))) // the difference of a key before the first one wraps around to a large number
		ok = at < k.n
	} else {
		at, ok = slices.BinarySearch(k.keys, key)
	}
	switch {
	case !ok:
		return 0, fmt.Errorf("payload: received key %d, but the %d keys here are from %d to %d; both sides need the same model and shards",
			key, k.count(), k.key(0), k.key(k.count()-1))
	case at <= last:
		return 0, fmt.Errorf("payload: received key %d after key %d: keys must ascend", key, k.key(last))
	}
	return at, nil
}

func (k *Keyed) Decode(dst []float32, src []byte) error {
	if len(dst) != k.n || len(src) != k.EncodedMax(k.n) {
		return fmt.Errorf(
			"payload: received %d bytes for %d values with their keys, which take %d; both sides need the same model and shards",
			len(src), len(dst), k.EncodedMax(k.n))
	}
	values := src[k.head():]
	last := -1
	for i := range k.count() {
		at, err := k.lookUp(binary.LittleEndian.Uint64(src[keyBytes*i:]), last)
		if err != nil {
			return err
		}
		last = at
		if k.keys == nil {
			decodeFull(dst[at:at+1], values[valueBytes*i:])
			continue
		}
		if n := binary.LittleEndian.Uint32(src[k.KeysBytes()+lengthBytes*i:]); int(n) != k.lengths[at] {
			return fmt.Errorf("payload: received key %d with %d values, but here it has %d; both sides need the same model and shards",
				k.keys[at], n, k.lengths[at])
		}
		from := k.starts[at]
		decodeFull(dst[from:from+k.lengths[at]], values[valueBytes*from:]) // all keys, ascending: the values lie in our order
	}
	return nil
}
