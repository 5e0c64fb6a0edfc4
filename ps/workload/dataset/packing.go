package dataset

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"fluentps/ps/workload/dataset/pack"
)

// byteRows is a table whose rows are bytes, each of which stands for a value.
type byteRows interface {
	// raw are the bytes of a row, channel by channel, valid until the next call.
	raw(row int) []byte
	// byteValues are the values of bytes, for each channel or for all; nil: the rows are no bytes.
	byteValues() [][256]float32
}

// Pack writes a set into an empty file, and returns the hash that names the pack. madeBy says who writes it. It calls progress now and then
// with the rows that are written, of all.
func (s *Set) Pack(f *os.File, madeBy string, progress func(rows, all int)) (sum string, err error) {
	if s.Elsewhere {
		return "", errors.New("the rows of set external are with the program, which alone can write them")
	}
	if s.Name == tokensSet {
		return "", errors.New("rows of set tokens overlap, and its file is mapped as it is: a pack would only be larger")
	}
	w, err := pack.NewWriter(f)
	if err != nil {
		return "", err
	}
	s.describeColumns()
	p := packing{Set: s.Name, Cols: s.Train.Cols(), Classes: s.Classes, ClassNames: s.ClassNames,
		Columns: s.Columns, RowNames: s.RowNames, ColumnNames: s.ColumnNames}
	if s.Image != (Image{}) {
		p.Image = &s.Image
	}
	if s.Matrix != (Matrix{}) {
		p.Matrix = &s.Matrix
	}
	if s.Targets != (Targets{}) {
		p.Targets = &s.Targets
	}
	if b, ok := whole(s.Train).(byteRows); ok {
		p.ByteValues = b.byteValues()
	}
	if err := s.packGroups(w, &p); err != nil {
		return "", err
	}
	done, all := 0, s.Train.Rows()+s.Test.Rows()
	for at, t := range []Table{s.Train, s.Test} {
		o := packer{w: w, t: t, part: []string{"train", "test"}[at], set: s, isBytes: p.ByteValues != nil, isSparse: s.packsEntries(),
			after: func(rows int) {
				done += rows
				progress(done, all)
			}}
		if err := o.pack(); err != nil {
			return "", err
		}
	}
	for _, file := range s.Files { // streamed pictures are known by now, and so are their means
		p.Files = append(p.Files, packedFile{file.Name, file.Bytes, file.SHA256})
	}
	if p.DataSHA256 = s.SHA256(); p.ByteValues != nil {
		p.ByteValues = whole(s.Train).(byteRows).byteValues()
	}
	return w.End(&p, madeBy)
}

// packGroups writes the groups of the training rows, if there are some.
func (s *Set) packGroups(w *pack.Writer, p *packing) error {
	var group []int32
	switch t := whole(s.Train).(type) {
	case textRows:
		group, p.GroupBy = t.Group(), s.spec.CSV.Group
	case packedRows:
		group, p.GroupBy = t.Group()
	}
	if len(group) == 0 {
		p.GroupBy = ""
		return nil
	}
	group = numbered(group[:s.Train.Rows()])
	if err := w.Section("train/group", "i4", int64(len(group))); err != nil {
		return err
	}
	return pack.Numbers(w, group)
}

// numbered numbers groups anew: test rows have had some of the numbers. Their order stays.
func numbered(group []int32) []int32 {
	all := slices.Clone(group)
	slices.Sort(all)
	all = slices.Compact(all)
	out := make([]int32, len(group))
	for i, g := range group {
		at, _ := slices.BinarySearch(all, g)
		out[i] = int32(at)
	}
	return out
}

// packsEntries says whether rows are written as entries: they are so in memory, or most of their values are 0 as columns of texts make
// them.
func (s *Set) packsEntries() bool {
	switch t := whole(s.Train).(type) {
	case *sparse, *words:
		return true
	case textRows:
		return t.Cols() > 4*t.Kept()
	case packedRows:
		return t.IsSparse()
	}
	return false
}

// packer writes a table.
type packer struct {
	w                 *pack.Writer
	t                 Table
	part              string
	set               *Set
	isBytes, isSparse bool
	after             func(rows int)
}

// packedRowsAtOnce is how many rows are gathered at once.
const packedRowsAtOnce = 256

func (p *packer) pack() error {
	rows, cols := int64(p.t.Rows()), int64(p.t.Cols())
	y := make([]int32, rows)
	var err error
	switch {
	case p.isSparse:
		err = p.entries(y)
	case p.isBytes:
		if err = p.w.Section(p.part+"/x", "u1", rows, cols); err == nil {
			err = p.bytes(y)
		}
	default:
		if err = p.w.Section(p.part+"/x", "f4", rows, cols); err == nil {
			err = p.each(y, func(b *Batch) error { return pack.Numbers(p.w, b.X) })
		}
	}
	if err != nil || p.set.Matrix != (Matrix{}) {
		return err
	}
	typ := "i4"
	if p.set.Targets != (Targets{}) {
		typ = "f4" // the same bits
	}
	if err := p.w.Section(p.part+"/y", typ, rows); err != nil {
		return err
	}
	return pack.Numbers(p.w, y)
}

// each gathers rows in their order, and their labels into y.
func (p *packer) each(y []int32, write func(b *Batch) error) error {
	b := NewBatch(p.isSparse, p.set.Samples(), packedRowsAtOnce)
	rows := make([]int32, 0, packedRowsAtOnce)
	for at := 0; at < p.t.Rows(); at += len(rows) {
		rows = rows[:0]
		for r := at; r < min(at+packedRowsAtOnce, p.t.Rows()); r++ {
			rows = append(rows, int32(r))
		}
		if err := b.Take(p.t, rows); err != nil {
			return err
		}
		copy(y[at:], b.Y)
		if err := write(&b); err != nil {
			return err
		}
		p.after(len(rows))
	}
	return nil
}

// bytes writes rows of bytes.
func (p *packer) bytes(y []int32) error {
	t, ok := whole(p.t).(byteRows)
	class, knows := classesOf(p.t)
	if !ok || !knows {
		return fmt.Errorf("the test rows are not in bytes, as the training rows are")
	}
	write := func(r int, bytes []byte) error {
		y[r] = class.label(r)
		if (r+1)%packedRowsAtOnce == 0 {
			p.after(packedRowsAtOnce)
		}
		_, err := p.w.Write(bytes)
		return err
	}
	if s, ok := whole(p.t).(pixels); ok && s.Rows() == p.t.Rows() {
		if err := s.each(write); err != nil {
			return err
		}
		if sum, ok := s.Sum(); ok {
			p.set.Files = append(p.set.Files, sum)
		}
	} else {
		for r := range p.t.Rows() {
			if err := write(r, t.raw(r)); err != nil {
				return err
			}
		}
	}
	p.after(p.t.Rows() % packedRowsAtOnce)
	return failure(p.t)
}

// entries goes over the rows three times: for where they begin, for the columns, and for the values.
func (p *packer) entries(y []int32) error {
	start := make([]int64, 1, p.t.Rows()+1)
	after := p.after
	p.after = func(int) {}
	if err := p.each(y, func(b *Batch) error {
		base := start[len(start)-1]
		for _, at := range b.Entries.Start[1:] {
			start = append(start, base+int64(at))
		}
		return nil
	}); err != nil {
		return err
	}
	n := start[len(start)-1]
	if err := p.w.Section(p.part+"/start", "i8", int64(len(start))); err != nil {
		return err
	}
	if err := pack.Numbers(p.w, start); err != nil {
		return err
	}
	if err := p.w.Section(p.part+"/index", "i4", n); err != nil {
		return err
	}
	if err := p.each(y, func(b *Batch) error { return pack.Numbers(p.w, b.Entries.Index) }); err != nil {
		return err
	}
	if p.after = after; n == 0 {
		p.after(p.t.Rows())
	}
	if err := p.w.Section(p.part+"/value", "f4", n); err != nil {
		return err
	}
	return p.each(y, func(b *Batch) error { return pack.Numbers(p.w, b.Entries.Value) })
}
