package dataset

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"unicode/utf8"

	"fluentps/ps/workload/dataset/csv"
	"fluentps/ps/workload/dataset/files"
	"fluentps/ps/workload/dataset/images"
	"fluentps/ps/workload/dataset/tokens"
)

// Readers that packages below have, and the set of which nothing is read.

// rowsTable is a dense table of float32.
type rowsTable struct {
	x    []float32 // rows x cols
	y    []int32
	cols int
}

func (t *rowsTable) Rows() int { return len(t.y) }
func (t *rowsTable) Cols() int { return t.cols }

func (t *rowsTable) Fill(x []float32, y []int32, rows []int32) {
	for i, r := range rows {
		y[i] = t.y[r]
		copy(x[i*t.cols:(i+1)*t.cols], t.x[int(r)*t.cols:])
	}
}

func (t *rowsTable) label(row int) int32 { return t.y[row] }

// textRows is a table of csv.
type textRows struct{ *csv.Table }

func (t textRows) label(row int) int32 { return t.Label(row) }

func (t textRows) fillSparse(e *Entries, y []int32, rows []int32) {
	for i, r := range rows {
		y[i] = t.Label(int(r))
		t.Entries(int(r), func(column int32, value float32) { e.Index, e.Value = append(e.Index, column), append(e.Value, value) })
		e.Start = append(e.Start, int32(len(e.Index)))
	}
}

const (
	csvSet     = "csv"
	parquetSet = "parquet"
)

// noteTwice notes files with the same bytes. The first ones are training files.
func noteTwice(in *files.Reading, training int) {
	first := map[string]int{}
	for i, f := range in.Files {
		was, known := first[f.SHA256]
		if !known {
			first[f.SHA256] = i
			continue
		}
		what := "the rows are read twice"
		if was < training && i >= training {
			what = "the test rows are training rows, too"
		}
		in.Notes = append(in.Notes, fmt.Sprintf("data: %s has the same bytes as %s: %s", f.Path, in.Files[was].Path, what))
	}
}

func loadCSV(s Spec, in *files.Reading) (*Set, error) { return loadTable(s, in, csv.Read) }

func loadParquet(s Spec, in *files.Reading) (*Set, error) { return loadTable(s, in, csv.ReadParquet) }

func loadTable(s Spec, in *files.Reading, read func(paths, tests []string, o csv.Options, in *files.Reading) (train, test *csv.Table,
	found csv.Found, err error)) (*Set, error) {
	o := s.CSV
	o.Label, o.Scale, o.Classes, o.Features, o.Split, o.Seed = s.Label, s.Scale, s.Classes, s.Features, s.Split.Test, s.Split.Seed
	o.Regress = s.Regress.On
	if o.Scale == 1 {
		o.Scale = 0
	}
	paths, err := csv.Paths(s.Path)
	if err != nil {
		return nil, err
	}
	var tests []string
	if s.Test != "" {
		if tests, err = csv.Paths(s.Test); err != nil {
			return nil, err
		}
	}
	train, test, found, err := read(paths, tests, o, in)
	if err != nil {
		return nil, err
	}
	noteTwice(in, len(paths))
	return &Set{parts: len(paths), form: found.Form, Train: textRows{train}, Test: textRows{test}, Classes: found.Classes,
		ClassNames: found.Names, Columns: found.Columns}, nil
}

// pixels is a table of images with one byte a value.
type pixels struct{ *images.Bytes }

func (p pixels) label(row int) int32 { return p.Label(row) }

func (p pixels) holds() (own, common int64) { return p.Holds() }

func loadIDX(s Spec, in *files.Reading) (*Set, error) {
	return pixelSet(images.ReadIDX(s.Path, s.Classes, s.Scale, s.Normalize, in))
}

func loadCIFAR10(s Spec, in *files.Reading) (*Set, error) {
	return pixelSet(images.ReadCIFAR10(s.Path, in))
}

func (p pixels) raw(row int) []byte         { return p.Raw(row) }
func (p pixels) byteValues() [][256]float32 { return p.ByteValues() }

func (p pixels) each(f func(row int, bytes []byte) error) error { return p.Each(f) }

const imagesSet = "images"

func loadImages(s Spec, in *files.Reading) (*Set, error) {
	o := s.Pictures
	o.Classes, o.Scale, o.Normalize, o.Regress, o.Split, o.Seed = s.Classes, s.Scale, s.Normalize, s.Regress.On, s.Split.Test, s.Split.Seed
	if o.Normalize && o.Scale != 0 {
		return nil, fmt.Errorf("data: scale is %g, but normalize would undo it; leave out one of the two", o.Scale)
	}
	train, test, found, err := images.ReadPictures(s.Path, s.Test, o, in)
	if err != nil {
		return nil, err
	}
	set, err := pixelSet(train, test, found.Classes, nil)
	set.ClassNames = found.Names
	return set, err
}

func pixelSet(train, test *images.Bytes, classes int, err error) (*Set, error) {
	if err != nil {
		return nil, err
	}
	return &Set{Train: pixels{train}, Test: pixels{test}, Classes: classes, Image: train.Shape()}, nil
}

// ExternalSet is the data of a model in another process.
const ExternalSet = "external"

// elsewhere is a table of which only the number of rows is known: its values are with the model.
type elsewhere struct{ rows int }

func (e elsewhere) Rows() int { return e.rows }

func (e elsewhere) Cols() int { return 0 }

// Fill fills nothing: a model that has the rows takes Batch.Rows.
func (e elsewhere) Fill([]float32, []int32, []int32) {}

func (e elsewhere) holds() (own, common int64) { return 0, 0 }

func loadExternal(s Spec, _ *files.Reading) (*Set, error) {
	if s.Rows < 1 {
		return nil, errors.New("data: rows is 0: set external needs the number of training rows")
	}
	return &Set{Train: elsewhere{s.Rows}, Test: elsewhere{s.TestRows}, Elsewhere: true}, nil
}

const tokensSet = "tokens"

// tokenRows is a table of a file of tokens.
type tokenRows struct{ *tokens.Table }

func (t tokenRows) label(row int) int32                     { return t.Label(row) }
func (t tokenRows) failure() error                          { return t.Failure() }
func (t tokenRows) mapped() int64                           { return t.Mapped() }
func (t tokenRows) holds() (own, common int64)              { return 0, 0 }
func (t tokenRows) pages(rows []int32, part func(b []byte)) { t.Pages(rows, part) }

func (t tokenRows) fillSparse(e *Entries, y []int32, rows []int32) {
	t.Entries(rows, func(i int, class int32) {
		y[i], e.Start = class, append(e.Start, int32(len(e.Index)))
	}, func(_ int, column int32) { e.Index, e.Value = append(e.Index, column), append(e.Value, 1) })
	for len(e.Start) <= len(rows) { // of rows that cannot be read
		e.Start = append(e.Start, int32(len(e.Index)))
	}
}

// tokenColumnsMost bounds the columns of tokens, because rows are filled densely.
const tokenColumnsMost = 1 << 24

func loadTokens(s Spec, in *files.Reading) (*Set, error) {
	k := s.Binary.Tokens
	paths := []string{s.Path}
	if s.Test != "" {
		paths = append(paths, s.Test)
	}
	var all []*tokens.File
	vocabulary := k.Vocabulary
	for _, path := range paths {
		f, err := tokens.Open(path, tokens.Type(k.Type))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, files.Missing(fmt.Sprintf("data: %s does not exist; %s", path, files.TextHint))
		}
		if err != nil {
			return nil, fmt.Errorf("data: %w", err)
		}
		if k.Vocabulary == 0 {
			largest, err := f.Largest(tokens.Most)
			if err != nil {
				return nil, fmt.Errorf("data: %w", err)
			}
			vocabulary = max(2, vocabulary, largest+1)
		}
		all = append(all, f)
		in.Files = append(in.Files, FileSum{Path: path, Name: f.Name(), Bytes: f.Size, SHA256: f.Sum(), Sampled: true})
	}
	if cols := int64(k.Window) * int64(vocabulary); cols > tokenColumnsMost {
		return nil, fmt.Errorf("data: %s: a window of %d tokens of %d makes %d columns, at most %d; lower data.tokens.window, or cut the text "+
			"into fewer different tokens", s.Path, k.Window, vocabulary, cols, tokenColumnsMost)
	}
	w, end := tokens.Window{Length: k.Window, Stride: k.Stride}, all[0].Len()
	test := all[len(all)-1]
	from, to := test.Len(), test.Len() // of test rows
	switch {
	case s.Test != "":
		from = 0
	case s.Split.Test > 0: // the end of the text: windows anywhere else would have tokens of training rows
		end -= int64(s.Split.Test * float64(end))
		from = end
	}
	set := &Set{Classes: vocabulary, Test: &rowsTable{cols: k.Window * vocabulary}}
	train, err := all[0].Table(w, vocabulary, 0, end)
	if err == nil && (s.Test != "" || s.Split.Test > 0) {
		var rows *tokens.Table
		rows, err = test.Table(w, vocabulary, from, to)
		set.Test = tokenRows{rows}
	}
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	set.Train = tokenRows{train}
	if tokens.Type(k.Type) == tokens.Uint8 {
		for b := range vocabulary {
			name := fmt.Sprintf("%#02x", b)
			if b < utf8.RuneSelf {
				name = strconv.QuoteRune(rune(b))
			}
			set.ClassNames = append(set.ClassNames, name)
		}
	}
	in.Found = append(in.Found, fmt.Sprintf("%s: %d tokens of %s, %d different at most: %d training rows, %d test rows, mapped", s.Path,
		all[0].Len(), k.Type, vocabulary, set.Train.Rows(), set.Test.Rows()))
	return set, nil
}
