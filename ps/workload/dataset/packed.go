package dataset

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"

	"fluentps/ps/workload/dataset/classes"
	"fluentps/ps/workload/dataset/csv"
	"fluentps/ps/workload/dataset/files"
	"fluentps/ps/workload/dataset/images"
	"fluentps/ps/workload/dataset/pack"
)

// packedSet is the data of a pack, which fluentps data pack makes of any other set.
const packedSet = "packed"

// PackHasTargets says whether the rows of a pack have targets.
func PackHasTargets(path string) (bool, error) {
	f, p, err := openPack(path)
	if err != nil {
		return false, err
	}
	return p.Targets != nil, f.Close()
}

// openPack opens a pack, and reads what it says of its set.
func openPack(path string) (f *pack.File, p packing, err error) {
	if f, err = pack.Open(path); err != nil {
		return nil, p, fmt.Errorf("data: %w", err)
	}
	if err := json.Unmarshal(f.Set, &p); err != nil {
		return nil, p, errors.Join(fmt.Errorf("data: %s: %w: pack the set again", path, err), f.Close())
	}
	return f, p, nil
}

// packing is what a pack says of its set.
type packing struct {
	Set         string         `json:"set"`         // the reader of the set that was packed
	DataSHA256  string         `json:"data_sha256"` // of that set: Set.SHA256
	Files       []packedFile   `json:"files"`
	Cols        int            `json:"cols"`
	GroupBy     string         `json:"group_by,omitempty"` // the column whose groups section train/group has
	Classes     int            `json:"classes,omitempty"`
	ClassNames  []string       `json:"class_names,omitempty"`
	Image       *images.Shape  `json:"image,omitempty"`
	Matrix      *Matrix        `json:"matrix,omitempty"`
	Targets     *Targets       `json:"targets,omitempty"`
	ByteValues  [][256]float32 `json:"byte_values,omitempty"` // of rows of bytes: for each channel, or for all, the value of each byte
	Columns     []csv.Column   `json:"columns,omitempty"`
	RowNames    []string       `json:"row_names,omitempty"`
	ColumnNames []string       `json:"column_names,omitempty"`
}

// packedFile is a file that the rows are from.
type packedFile struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

func loadPacked(s Spec, in *files.Reading) (*Set, error) {
	if _, err := os.Stat(s.Path); errors.Is(err, os.ErrNotExist) {
		return nil, files.Missing(fmt.Sprintf("data: %s does not exist; fluentps data pack CONFIG --out %s makes it of another set", s.Path,
			s.Path))
	}
	f, p, err := openPack(s.Path)
	if err != nil {
		return nil, err
	}
	set, err := p.set(s.Path)
	if err != nil {
		return nil, err
	}
	switch regress := set.Targets != (Targets{}); {
	case s.Regress.Standardize:
		return nil, fmt.Errorf("data: %s: targets are as they were packed: leave out data.targets", s.Path)
	case regress && !s.Regress.On:
		return nil, fmt.Errorf("data: %s has targets, which are numbers to predict: set data.task: regress", s.Path)
	case !regress && s.Regress.On:
		return nil, fmt.Errorf("data: %s has no targets: leave out data.task", s.Path)
	}
	for at, part := range []string{"train", "test"} {
		t, err := f.Table(part, p.kind())
		if err != nil {
			return nil, fmt.Errorf("data: %w", err)
		}
		if err := in.Take(nil, t.Bytes()); err != nil {
			return nil, err
		}
		if at == 0 && t.Rows() == 0 {
			return nil, fmt.Errorf("data: %s: no training rows: pack the set again", s.Path)
		}
		*[]*Table{&set.Train, &set.Test}[at] = packedRows{t}
	}
	if p.bytesOfRow() <= scatteredMax {
		f.Scattered()
	}
	in.Files = append(in.Files, FileSum{Path: s.Path, Name: "pack", Bytes: f.Size, SHA256: f.SHA256, Sampled: true})
	in.Found = append(in.Found, fmt.Sprintf("%s: %d training rows, %d test rows of set %s, mapped; data_sha256 of that set %s", s.Path,
		set.Train.Rows(), set.Test.Rows(), p.Set, files.Clip(p.DataSHA256)))
	return set, nil
}

func (p *packing) bytesOfRow() int64 {
	if p.ByteValues != nil {
		return int64(p.Cols)
	}
	return valueBytes * int64(p.Cols)
}

// set is the set without its tables.
func (p *packing) set(path string) (*Set, error) {
	s := &Set{Classes: p.Classes, ClassNames: p.ClassNames, Columns: p.Columns, RowNames: p.RowNames, ColumnNames: p.ColumnNames}
	if p.Image != nil {
		s.Image = *p.Image
	}
	if p.Matrix != nil {
		s.Matrix = *p.Matrix
	}
	if p.Targets != nil {
		s.Targets = *p.Targets
	}
	isRating, regress := s.Matrix != Matrix{}, s.Targets != Targets{}
	i, m := s.Image, s.Matrix
	wrong := ""
	switch {
	case p.Cols < 1 || p.Cols > math.MaxInt32:
		wrong = fmt.Sprintf("%d columns", p.Cols)
	case i != (Image{}) && (min(i.Channels, i.Height, i.Width) < 1 || max(i.Channels, i.Height, i.Width) > 65535 || i.Values() != p.Cols):
		wrong = fmt.Sprintf("images of %v with %d columns", i, p.Cols)
	case isRating && (p.Cols != RatingCols || min(m.Rows, m.Columns) < 1 || max(m.Rows, m.Columns) > matrixMax):
		wrong = fmt.Sprintf("a matrix of %v with %d columns", m, p.Cols)
	case !isRating && !regress && (p.Classes < 2 || p.Classes > classes.Max) || (isRating || regress) && p.Classes != 0:
		wrong = fmt.Sprintf("%d classes", p.Classes)
	case regress && !(s.Targets.Deviation > 0):
		wrong = fmt.Sprintf("targets with the deviation %v", s.Targets.Deviation)
	case regress && (math.Abs(s.Targets.Mean) > math.MaxFloat32 || s.Targets.Deviation > math.MaxFloat32):
		wrong = fmt.Sprintf("targets with the mean %v and the deviation %v", s.Targets.Mean, s.Targets.Deviation)
	case p.ByteValues != nil && len(p.ByteValues) != 1 && len(p.ByteValues) != i.Channels:
		wrong = fmt.Sprintf("values for %d channels of %d", len(p.ByteValues), i.Channels)
	case len(p.ClassNames) > 0 && len(p.ClassNames) > p.Classes:
		wrong = fmt.Sprintf("%d names of %d classes", len(p.ClassNames), p.Classes)
	}
	if wrong != "" {
		return nil, fmt.Errorf("data: %s: it says %s: pack the set again", path, wrong)
	}
	return s, nil
}

// kind is what the rows are.
func (p *packing) kind() pack.Kind {
	var matrix [2]int
	if p.Matrix != nil {
		matrix = [2]int{p.Matrix.Rows, p.Matrix.Columns}
	}
	return pack.Kind{Matrix: matrix, Cols: p.Cols, Classes: p.Classes, Targets: p.Targets != nil, GroupBy: p.GroupBy,
		Values: p.ByteValues}
}

// packedRows is a table of a pack.
type packedRows struct{ *pack.Table }

func (t packedRows) label(row int) int32 { return t.Label(row) }
func (t packedRows) targets() []int32    { return t.Labels() }
func (t packedRows) failure() error      { return t.Failure() }

func (t packedRows) pages(rows []int32, part func(b []byte)) { t.Pages(rows, part) }

func (t packedRows) raw(row int) []byte         { return t.Raw(row) }
func (t packedRows) byteValues() [][256]float32 { return t.ByteValues() }
func (t packedRows) mapped() int64              { return t.Mapped() }
func (t packedRows) holds() (own, common int64) {
	return t.Bytes(), int64(len(t.ByteValues())) * 256 * valueBytes
}

func (t packedRows) fillSparse(e *Entries, y []int32, rows []int32) {
	i := 0
	t.Entries(rows, func(label int32) {
		if i > 0 {
			e.Start = append(e.Start, int32(len(e.Index)))
		}
		y[i] = label
		i++
	}, func(column int32, value float32) { e.Index, e.Value = append(e.Index, column), append(e.Value, value) })
	if i > 0 {
		e.Start = append(e.Start, int32(len(e.Index)))
	}
}
