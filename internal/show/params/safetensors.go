package params

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// A safetensors file is the length of the header (8 bytes, little endian), the header as JSON, padded with blanks, and the elements. The
// header gives the type, shape and place of each tensor. The places do not overlap and leave no gap.

const (
	safetensorsAlign = 8 // bytes: the elements begin at a multiple of it
	headerMax        = 16 << 20
	metadataName     = "__metadata__"
	safetensorsF32   = "F32"
)

// placed is the entry of a tensor in the header.
type placed struct {
	name   string
	DType  string   `json:"dtype"`
	Shape  []int    `json:"shape"`
	Places [2]int64 `json:"data_offsets"` // bytes after the header: begin and end (exclusive)
}

// writeSafetensors writes a file. values writes the elements of tensor k.
func writeSafetensors(w io.Writer, tensors []Tensor, metadata map[string]string, values func(w io.Writer, k int) error) error {
	head, err := json.Marshal(metadata) // Marshal sorts the names
	if err != nil {
		return err
	}
	head = append([]byte(`{"`+metadataName+`":`), head...)
	at := int64(0)
	for _, t := range tensors {
		name, err := json.Marshal(t.Name)
		if err != nil {
			return err
		}
		next := at + t.bytes()
		place, err := json.Marshal(placed{DType: safetensorsF32, Shape: t.Shape, Places: [2]int64{at, next}})
		if err != nil {
			return err
		}
		head = fmt.Appendf(head, ",%s:%s", name, place)
		at = next
	}
	head = append(head, '}')
	for len(head)%safetensorsAlign > 0 {
		head = append(head, ' ')
	}
	if len(head) > headerMax {
		return fmt.Errorf("a header of %d bytes; the limit is %d", len(head), headerMax)
	}
	if _, err := w.Write(append(binary.LittleEndian.AppendUint64(nil, uint64(len(head))), head...)); err != nil {
		return err
	}
	for k := range tensors {
		if err := values(w, k); err != nil {
			return err
		}
	}
	return nil
}

// openSafetensors finds the tensors of a file of size bytes.
func openSafetensors(f io.ReaderAt, size int64) (*contents, error) {
	var start [8]byte
	if _, err := f.ReadAt(start[:], 0); err != nil {
		return nil, cutOff(err)
	}
	n := binary.LittleEndian.Uint64(start[:])
	if most := min(headerMax, size-8); n > uint64(most) {
		return nil, fmt.Errorf("its header has %d bytes, but the limit is %d: it is damaged, or not safetensors", n, most)
	}
	c := &contents{metadata: map[string]string{}, entries: map[string]entry{}}
	data := 8 + int64(n)
	all, err := readHeader(io.NewSectionReader(f, 8, int64(n)), c)
	if err != nil {
		return nil, fmt.Errorf("its header: %w", err)
	}
	slices.SortFunc(all, func(a, b placed) int { return slices.Compare(a.Places[:], b.Places[:]) })
	at := int64(0)
	for _, p := range all {
		lo, hi := p.Places[0], p.Places[1]
		if lo != at || hi < lo || hi > size-data {
			return nil, fmt.Errorf("%q lies at %d to %d of %d bytes, must begin at %d, the end of the tensor before it: it "+
				"was cut off, or is damaged", p.name, lo, hi, size-data, at)
		}
		if n, ok := elements(p.Shape, (hi-lo)/elemBytes); p.DType == safetensorsF32 && (!ok || n*elemBytes != hi-lo) {
			return nil, fmt.Errorf("%q has shape %v but %d bytes: it is damaged", p.name, p.Shape, hi-lo)
		}
		c.entries[p.name] = entry{Tensor: Tensor{p.name, p.Shape}, dtype: p.DType, at: data + lo, open: func() (io.ReadCloser, error) {
			return io.NopCloser(io.NewSectionReader(f, data+lo, hi-lo)), nil
		}}
		at = hi
	}
	if at != size-data {
		return nil, fmt.Errorf("its tensors have %d bytes, but %d follow the header: it was cut off, or is damaged", at, size-data)
	}
	return c, nil
}

// readHeader reads the JSON of a header. A name that occurs twice is an error.
func readHeader(r io.Reader, c *contents) (all []placed, err error) {
	d := json.NewDecoder(r)
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("it is not a JSON object")
	}
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		name, _ := t.(string) // the token before a member's value is always its name
		if seen[name] {
			return nil, fmt.Errorf("it has %q twice", name)
		}
		seen[name] = true
		if name == metadataName {
			if err := d.Decode(&c.metadata); err != nil {
				return nil, fmt.Errorf("%s: %w", metadataName, err)
			}
			continue
		}
		p := placed{name: name, Places: [2]int64{-1, -1}}
		if err := d.Decode(&p); err != nil {
			return nil, fmt.Errorf("%q: %w", name, err)
		}
		all = append(all, p)
	}
	if _, err := d.Token(); err != nil {
		return nil, cutOff(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("bytes other than blanks follow its JSON")
	}
	return all, nil
}

// elements returns how many elements a tensor of that shape has. ok is false if they are more than most.
func elements(shape []int, most int64) (n int64, ok bool) {
	n = 1
	for _, d := range shape {
		if d < 0 || d > 0 && n > most/int64(d) {
			return 0, false
		}
		n *= int64(d)
	}
	return n, n <= most
}
