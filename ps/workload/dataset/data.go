// Package dataset reads data, and deals rows to workers. Files are read whole into memory, within a limit; a set says what it holds.
//
//	set, err := dataset.Load(spec)
//	rows, err := dataset.Partition("disjoint_random", set.Train.Rows(), workers, worker, seed)
//	picked = dataset.NewSampler(rows, batch, seed, worker).Batch(iteration, picked)
//	b := dataset.NewBatch(sparse, set.Samples(), batch)
//	b.Take(set.Train, picked)
//
// All randomness is a pure function of seeds: samples depend on (seed, worker, iteration), changes to their images on (seed, worker,
// iteration, position), and generated rows on (seed, row).
package dataset

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strings"

	"fluentps/ps/workload/dataset/csv"
	"fluentps/ps/workload/dataset/files"
	"fluentps/ps/workload/dataset/images"
)

// Table is a table of rows with their classes or targets, in memory in the compact form of their files.
type Table interface {
	Rows() int
	Cols() int
	// Fill gathers rows: values into x (len(rows) x Cols, row-major, normalised), class numbers into y. Of rows with targets y gets the
	// bits of each target as a float32: TargetOf.
	Fill(x []float32, y []int32, rows []int32)
}

// Set is a data set in memory. Test has no rows when the spec names no test data.
type Set struct {
	Name        string
	Train, Test Table
	Classes     int
	ClassNames  []string     // by class, if the files have texts or other numbers as classes
	Image       Image        // shape of a row; zero if rows are not images
	Columns     []csv.Column // of the files of csv
	// RowNames and ColumnNames are those of the matrix, by number, if the files do not number them.
	RowNames, ColumnNames []string
	Matrix                Matrix    // the matrix whose entries the rows are; zero if they are not ratings
	Targets               Targets   // zero: rows have classes, or are ratings
	Elsewhere             bool      // the rows are with the model, in another process: the tables know only how many there are
	Files                 []FileSum // in the order they were read; none for generated data
	Notes                 []string  // what a user should know about the files: it may be a mistake
	Found                 []string  // what the reader has found out about the files by itself, a line each

	dealt *dealt // nil: shares are made each time
	form  string // how the bytes of csv were understood: csv.Found.Form
	parts int    // so many of Files are training files; 0: all but one, or all
	spec  Spec   // the argument of Load
	peak  int64  // the most memory that its rows took at once while they were read, in bytes
}

// Image is the shape of a row that is an image.
type Image = images.Shape

// Samples describes the samples that a model is made for.
type Samples struct {
	Cols    int // values of a sample
	Classes int // labels are 0 to Classes-1; 0: there are none
	Image   Image
	Matrix  Matrix // zero unless samples are ratings
	Regress bool   // they have targets, and no classes
	// Elsewhere: the model has the samples, and takes the numbers of rows. Then Cols and Classes are 0.
	Elsewhere bool
}

// Samples describes the rows of both tables.
func (s *Set) Samples() Samples {
	return Samples{Cols: s.Train.Cols(), Classes: s.Classes, Image: s.Image, Matrix: s.Matrix, Elsewhere: s.Elsewhere,
		Regress: s.Targets != Targets{}}
}

// FileSum identifies the content of a file by its unpacked bytes, so it is the same with and without gzip.
type FileSum = files.Sum

// Spec says which data to load. A field that a reader does not use must be left zero.
type Spec struct {
	// Set is the reader: one of SetNames.
	Set string
	// Path is the folder with the files of idx, cifar10 and images, or the training file of csv and libsvm.
	Path string
	// Test is the test file of csv and libsvm; empty: none.
	Test string
	// Rows keeps only the first so many training rows; 0: all. generated: the number of training rows.
	Rows int
	// TestRows does the same for test rows. generated: the number of test rows, 0: none.
	TestRows int
	// Classes is the number of classes; labels run from 0 to Classes-1. 0: the largest label plus 1.
	// cifar10 has 10; generated needs it.
	Classes int
	// Features is the number of columns without the label; 0: as many as the files have. libsvm:
	// no index may be larger. generated needs it; idx and cifar10 do not take it.
	Features int
	// Image is the shape of a row of generated, which then has Features values; zero: rows are not images.
	Image Image
	// Seed fixes every row of generated.
	Seed uint64
	// Scale divides every value of idx, csv and libsvm; 0: 255 for idx, 1 for the others.
	Scale float64
	// Normalize gives each channel of idx the mean 0 and the standard deviation 1 over all training images. Test images are
	// normalised with the same two numbers. Scale must be 0. cifar10 is always normalised.
	Normalize bool
	// Nonzeros is the most features that a row of generated_sparse has.
	Nonzeros int
	// Matrix, Rank and Noise belong to generated_ratings: the size of the matrix, its rank, and the standard deviation of the
	// noise in an entry. Without noise an entry has the standard deviation 1.
	Matrix Matrix
	Rank   int
	Noise  float64
	// Center subtracts the mean value of the training file of ratings from all values.
	Center bool
	// Label is the column of csv with the class: "last" (also if empty), "first", a name, or a number from 1.
	Label string
	// Memory is the most memory that rows may take while they are read, in bytes: cluster.memory_max. 0: 8 GiB. It changes no row.
	Memory int64
	// Fingerprint names the rows of external; empty: nothing is known of them.
	Fingerprint string
	// Binary says what is in files of numbers.
	Binary Binary
	// IndexBase is the number that indices of libsvm count from: "0", "1", or "auto" (also if empty).
	IndexBase string
	// Split makes rows of Path test rows, without Test.
	Split Split
	// CSV is how files of csv are read; what else the Spec has is not in it.
	CSV csv.Options
	// Pictures are how those of images become rows.
	Pictures images.Options
	// Regress says whether rows have targets.
	Regress Regression
}

// Binary says what is in files of numbers: Arrays are those of npy, Tokens those of tokens.
type Binary struct {
	Arrays Arrays
	Tokens Tokens
}

var sets = []struct {
	name  string
	uses  string // the fields of Spec, besides Set, that the reader takes
	holds string // the kind of its rows, unless the spec says more
	load  func(s Spec, in *files.Reading) (*Set, error)
}{
	{"idx", "path rows test_rows classes scale normalize", "images", loadIDX},
	{"cifar10", "path rows test_rows", "images", loadCIFAR10},
	{"csv", "path test rows test_rows classes features scale label split csv task", "numbers", loadCSV},
	{parquetSet, "path test rows test_rows classes features scale label split csv task", "numbers", loadParquet},
	{"libsvm", "path test rows test_rows classes features scale index_base split task", "numbers", loadLIBSVM},
	{"npy", "path rows test_rows classes scale split arrays task", "arrays", loadNPY},
	{imagesSet, "path test rows test_rows classes scale normalize split pictures task", "images", loadImages},
	{tokensSet, "path test rows test_rows split tokens", "numbers", loadTokens},
	{packedSet, "path rows test_rows task", "arrays", loadPacked},
	{"generated", "rows test_rows classes features image seed task", "numbers", loadGenerated},
	{"generated_sparse", "rows test_rows features nonzeros seed", "numbers", loadGeneratedSparse},
	{"ratings", "path test rows test_rows center split", "ratings", loadRatings},
	{"generated_ratings", "rows test_rows seed matrix rank noise", "ratings", loadGeneratedRatings},
	{ExternalSet, "rows test_rows fingerprint", "elsewhere", loadExternal},
}

// ImageSetNames lists the sets whose rows are always images. Rows of generated are images if the spec says so.
func ImageSetNames() []string { return setsOf("images") }

// RatingSetNames lists the sets whose rows are entries of a matrix.
func RatingSetNames() []string { return setsOf("ratings") }

func setsOf(what string) []string {
	var names []string
	for _, s := range sets {
		if s.holds == what {
			names = append(names, s.name)
		}
	}
	return names
}

// SetNames lists the values of Spec.Set.
func SetNames() []string {
	names := make([]string, len(sets))
	for i, s := range sets {
		names[i] = s.name
	}
	return names
}

// Load reads a data set. Its errors name the file, the place in it, the value and the limit.
func Load(s Spec) (*Set, error) {
	for _, reader := range sets {
		if reader.name != s.Set {
			continue
		}
		if err := s.check(reader.uses); err != nil {
			return nil, err
		}
		in := files.New(s.Memory)
		set, err := reader.load(s, in)
		if err != nil {
			return nil, err
		}
		set.Name, set.spec, set.dealt = s.Set, s, &dealt{}
		if s.Regress.On && s.Set != packedSet { // which has them as they were packed
			if err := set.settleTargets(in); err != nil {
				return nil, err
			}
		}
		set.Files, set.Notes, set.Found, set.peak = in.Files, in.Notes, in.Found, in.Peak()
		if !strings.HasPrefix(s.Set, "generated") && !set.Elsewhere {
			if set.Train, err = head("rows", set.Train, s.Rows); err != nil {
				return nil, err
			}
			if set.Test, err = head("test_rows", set.Test, s.TestRows); err != nil {
				return nil, err
			}
		}
		return set, nil
	}
	return nil, fmt.Errorf("data: set %q is not known; choose one of: %s", s.Set, strings.Join(SetNames(), ", "))
}

// check fails for fields that the reader would ignore, and for values that no reader accepts.
func (s Spec) check(uses string) error {
	uses = " " + uses + " "
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"path", s.Path != ""}, {"test", s.Test != ""}, {"rows", s.Rows != 0}, {"test_rows", s.TestRows != 0},
		{"classes", s.Classes != 0}, {"features", s.Features != 0}, {"seed", s.Seed != 0},
		{"scale", s.Scale != 0}, {"label", s.Label != ""}, {"normalize", s.Normalize},
		{"image", s.Image != Image{}}, {"nonzeros", s.Nonzeros != 0},
		{"matrix", s.Matrix != (Matrix{})}, {"rank", s.Rank != 0}, {"noise", s.Noise != 0}, {"center", s.Center},
		{"fingerprint", s.Fingerprint != ""}, {"index_base", s.IndexBase != ""}, {"arrays", s.Binary.Arrays != Arrays{}},
		{"tokens", s.Binary.Tokens != Tokens{}},
		{"split", s.Split != Split{}}, {"csv", s.CSV != csv.Options{}},
		{"pictures", s.Pictures != images.Options{}}, {"task", s.Regress != Regression{}},
	} {
		if f.set && !strings.Contains(uses, " "+f.name+" ") {
			return fmt.Errorf("data: set %s does not take %s; it takes:%s", s.Set, f.name, strings.TrimSuffix(uses, " "))
		}
	}
	for _, f := range []struct {
		name string
		n    int
	}{{"rows", s.Rows}, {"test_rows", s.TestRows}, {"classes", s.Classes}, {"features", s.Features}} {
		if f.n < 0 || f.n > math.MaxInt32 {
			return fmt.Errorf("data: %s is %d, must be 0 to %d", f.name, f.n, math.MaxInt32)
		}
	}
	if s.Regress.Standardize && !s.Regress.On {
		return errors.New("data: targets are to be standardized, but rows have classes; set data.task: regress")
	}
	if s.Regress.On && s.Classes != 0 {
		return fmt.Errorf("data: classes is %d, but rows have targets and no classes; leave it out", s.Classes)
	}
	if s.Scale < 0 || math.IsNaN(s.Scale) || math.IsInf(s.Scale, 0) {
		return fmt.Errorf("data: scale is %g, must be a positive number, such as 255", s.Scale)
	}
	if s.Path == "" && strings.Contains(uses, " path ") {
		return fmt.Errorf("data: set %s needs path", s.Set)
	}
	return nil
}

// SHA256 identifies the data that training sees: the contents of the files and the settings that change them. It does not depend on
// the folder of the files or on their compression. In hex.
func (s *Set) SHA256() string {
	content := s.spec
	content.Path, content.Test, content.Memory = "", "", 0
	if s.Name == csvSet || s.Name == parquetSet {
		content.Label = "" // which is in the form
	}
	h := sha256.New()
	text, mark, _ := strings.Cut(fmt.Sprintf("%+v", content), " Memory:0 Fingerprint:")
	mark, _, _ = strings.Cut(mark, " Binary:{")
	switch text += "}"; { // other sums are those from before these fields existed
	case s.Elsewhere:
		text += mark + "}"
	case s.spec.IndexBase != "" && s.spec.IndexBase != "auto":
		text += s.spec.IndexBase
	case s.form != "":
		text += s.form
	case s.Name == npySet:
		text += fmt.Sprintf("%+v", s.spec.Binary.Arrays)
	case s.Name == tokensSet:
		text += fmt.Sprintf("%+v", s.spec.Binary.Tokens)
	}
	fmt.Fprintln(h, text)
	if s.spec.Split.Test > 0 {
		fmt.Fprintln(h, "split", s.spec.Split.Test, s.spec.Split.Seed)
	}
	if p := s.spec.Pictures; s.Name == imagesSet {
		fmt.Fprintln(h, "pictures", p.Resize, p.Crop, p.Color)
	}
	if s.spec.Regress.On {
		fmt.Fprintln(h, "regress, standardized", s.spec.Regress.Standardize)
	}
	if s.parts > 1 || s.parts > 0 && len(s.Files) > s.parts+1 {
		fmt.Fprintln(h, "training files", s.parts)
	}
	for _, f := range s.Files {
		fmt.Fprintf(h, "%s %s\n", f.Name, f.SHA256)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Report is the result of Set.Describe.
type Report struct {
	Set         string
	Cols        int
	Classes     int
	ClassNames  []string // of the Set
	Matrix      Matrix
	Targets     Targets
	Train, Test Part
	Files       []FileSum
	Notes       []string // of the Set
	Found       []string // of the Set
	Columns     []csv.Column
	Sample      []Sample // the first training rows, if they are short
	SHA256      string   // of the Set
}

// Part describes one table. Counts has the number of rows of each class, Values describes the values of ratings, or the targets as the
// files have them.
type Part struct {
	Rows   int
	Counts []int
	Values Values
}

// Values has the mean, the standard deviation, the smallest and the largest value. All are 0 without values.
type Values struct{ Mean, Deviation, Min, Max float64 }

// Describe reads all of a set that is mapped, and describes it.
func (s *Set) Describe() (Report, error) {
	if err := s.readAll(); err != nil {
		return Report{}, err
	}
	r := Report{
		Set: s.Name, Columns: s.Columns, Sample: s.sample(), Cols: s.Train.Cols(), Classes: s.Classes,
		Matrix: s.Matrix, Files: s.Files, Notes: s.Notes,
		Targets: s.Targets, ClassNames: s.ClassNames, Found: s.Found, SHA256: s.SHA256(),
		Train: s.describe(s.Train), Test: s.describe(s.Test),
	}
	s.describeColumns()
	return r, nil
}

// describeColumns adds to the columns of csv what their numbers are like.
func (s *Set) describeColumns() {
	if t, ok := whole(s.Train).(textRows); ok {
		t.Describe(s.Columns)
	}
}

func (s *Set) describe(t Table) Part {
	p := Part{Rows: t.Rows(), Counts: make([]int, s.Classes)}
	if s.Elsewhere {
		return p
	}
	if s.Classes > 0 {
		s.count(t, p.Counts)
		return p
	}
	p.Values = s.describeOutcomes(t)
	return p
}

// firstRows shows only the first rows of a table.
type firstRows struct {
	Table
	rows int
}

func (f firstRows) Rows() int { return f.rows }

// whole is the table with all of its rows, whose methods know more than those of Table.
func whole(t Table) Table {
	if f, ok := t.(firstRows); ok {
		return f.Table
	}
	return t
}

func head(key string, t Table, rows int) (Table, error) {
	if rows == 0 {
		return t, nil
	}
	if rows > t.Rows() {
		return nil, fmt.Errorf("data: %s is %d, but the files have %d; leave it out to take all", key, rows, t.Rows())
	}
	return firstRows{t, rows}, nil
}
