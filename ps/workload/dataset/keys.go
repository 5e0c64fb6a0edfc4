package dataset

import (
	"slices"
	"strings"

	"fluentps/ps/workload/dataset/csv"
	"fluentps/ps/workload/dataset/images"
	"fluentps/ps/workload/dataset/tokens"
)

// Keys are those of section data: they name the data set and how workers share it.
type Keys struct {
	Set       string         `yaml:"set,required" values:"@data sets" doc:"the reader of the data"`
	Path      string         `yaml:"path,required" form:"path" when:"set=idx,cifar10,csv,parquet,libsvm,ratings,npy,images,packed,tokens" doc:"the folder (idx, cifar10, images: one folder a class, or train and test with such folders), the training file (csv, parquet, libsvm, ratings: lines of row,column,value), .gz or not; csv, parquet: or a pattern of several, such as train-*.csv; npy: an archive .npz, or a folder with files .npy; images: or a file of csv with names of pictures and their classes; packed: the file that fluentps data pack has written; tokens: the file of tokens"`
	Test      string         `yaml:"test,omitempty" form:"path" when:"set=csv,parquet,libsvm,ratings,images,tokens" doc:"the test file; csv, parquet: or a pattern of several; images: the folder or the file of csv"`
	Split     Split          `yaml:"split"`
	Text      TextKeys       `yaml:",inline"`
	Labels    LabelKeys      `yaml:",inline"`
	Scale     float64        `yaml:"scale" above:"0" when:"set=csv,parquet,npy,images" as:"float32" doc:"features are divided by it; 1 divides the pixels of images in files and in arrays of uint8 by 255"`
	Normalize bool           `yaml:"normalize" when:"set=idx,images" doc:"true: pixels have mean 0 and standard deviation 1 over the training images; false: they are 0 to 1"`
	Stage     string         `yaml:"stage,omitempty" form:"path" when:"set=packed" doc:"a folder on the disk of each host, into which a run copies the pack, once for all ranks of the host; auto: the one that SLURM_TMPDIR or TMPDIR names"`
	Pictures  Pictures       `yaml:"pictures"`
	Augment   images.Augment `yaml:"augment"`
	Center    bool           `yaml:"center" when:"set=ratings" doc:"the mean of the training values is subtracted from all values, so that the factors need not learn it"`
	Rows      int            `yaml:"rows" min:"1" max:"1e9" when:"set=generated,generated_sparse,generated_ratings,external" doc:"training rows"`
	TestRows  int            `yaml:"test_rows" min:"0" max:"1e9" when:"set=generated,generated_sparse,generated_ratings,external" doc:"test rows"`
	External  ExternalKeys   `yaml:",inline"`
	Deal      Dealing        `yaml:",inline"`
	Image     []int          `yaml:"image,omitempty" min:"1" max:"65535" items:"1" when:"set=generated" doc:"rows are images of so many channels, height and width, such as [3, 32, 32]; without it they are no images"`
	Features  int            `yaml:"features" min:"1" max:"1e6" when:"set=generated,generated_sparse" doc:"features of a row; of images their product"`
	Classes   int            `yaml:"classes" min:"2" max:"1e6" when:"set=generated" doc:"classes"`
	Nonzeros  int            `yaml:"nonzeros" min:"1" max:"1e6" when:"set=generated_sparse" doc:"features of a row that are not 0, at most; the first features are far more often among them than the last, as in text"`
	Matrix    Product        `yaml:"matrix"`
	Arrays    Arrays         `yaml:"arrays"`
	Tokens    Tokens         `yaml:"tokens"`
	Partition string         `yaml:"partition" values:"@partitions" doc:"how workers share the rows"`
	Skew      Skew           `yaml:"partition"`
}

// ExternalKeys are those of rows that only the program of model external knows.
type ExternalKeys struct {
	Accuracy    bool   `yaml:"accuracy" when:"set=external" doc:"true: the model also counts the samples that it has right; false: it has a loss alone, as in regression"`
	Fingerprint string `yaml:"fingerprint,omitempty" form:"fingerprint" when:"set=external" doc:"a text that names the data, such as a checksum or a version: runs whose texts differ are of different data, and do not resume from each other"`
}

// Tokens are the keys of texts that have been cut into tokens.
type Tokens struct {
	Window     int    `yaml:"window" min:"1" max:"65536" when:"set=tokens" doc:"tokens of a row; the one behind them is its class"`
	Stride     int    `yaml:"stride" min:"1" max:"1e9" when:"set=tokens" doc:"from the beginning of a row to that of the next one, in tokens"`
	Type       string `yaml:"type" values:"uint8,uint16,uint32" when:"set=tokens" doc:"how a token is stored, the lower byte first; uint8 reads any text, a byte each"`
	Vocabulary int    `yaml:"vocabulary,omitempty" min:"2" max:"1048576" when:"set=tokens" doc:"different tokens; without it, the largest token of the files and one, for which all of them are read"`
}

// Dealing says who picks the rows of a step, and in which order.
type Dealing struct {
	Sampler string `yaml:"sampler" values:"run,script" when:"set=external" doc:"who picks the rows of a step: run: the run, and the program gets their numbers; script: the program itself, as with a DataLoader; each step counts as the rows of a batch"`
	Shuffle string `yaml:"shuffle" values:"full,window" doc:"the order of a worker's rows in each epoch, in which every row comes once; full: any order is as likely; window: rows that lie together in the files come close together, so that files larger than memory are read in long parts"`
	Window  int    `yaml:"window_rows" min:"64" max:"1e9" when:"shuffle=window" doc:"so many rows are shuffled together: they are of about 32 parts of the worker's rows, which are drawn at random"`
}

// WindowRows is how many rows are shuffled together; 0: all.
func (d Dealing) WindowRows() int {
	if d.Shuffle != shuffleWindow {
		return 0
	}
	return d.Window
}

// shuffleWindow is the value of shuffle for which window counts.
const shuffleWindow = "window"

// Split makes test rows of training rows.
type Split struct {
	Test float64 `yaml:"test,omitempty" above:"0" below:"1" when:"set=csv,parquet,libsvm,ratings,npy,images,tokens" doc:"the share of the rows of data.path that are test rows, in place of data.test"`
	Seed uint64  `yaml:"seed" when:"set=csv,parquet,libsvm,ratings,npy,images" doc:"picks the test rows; they do not depend on the seed of the run, so runs with several seeds have the same"`
}

// Pictures are how those of images become rows.
type Pictures struct {
	Resize []int  `yaml:"resize,omitempty" min:"1" max:"65535" items:"1" when:"set=images" doc:"the height and the width that pictures become; with one number the shorter side becomes it; without it all must have one size"`
	Crop   []int  `yaml:"crop,omitempty" min:"1" max:"65535" items:"1" when:"set=images" doc:"the height and the width of the middle that is left of each picture, after resize; one number: both"`
	Color  string `yaml:"color" values:"auto,rgb,grey" when:"set=images" doc:"auto: what the first picture is, as which the others must be; rgb, grey: what all become"`
}

// options are those of the reader.
func (p Pictures) options() (o images.Options) {
	copy(o.Resize[:], p.Resize)
	if copy(o.Crop[:], p.Crop); len(p.Crop) == 1 {
		o.Crop[1] = o.Crop[0]
	}
	if p.Color != Defaults().Pictures.Color {
		o.Color = p.Color
	}
	return o
}

// LabelKeys are the keys of what rows are labelled with.
type LabelKeys struct {
	Task    string `yaml:"task" values:"classify,regress" when:"set=csv,parquet,libsvm,npy,images,packed,generated" doc:"what rows are labelled with: classify: classes; regress: targets, which are numbers to predict"`
	Targets string `yaml:"targets" values:"plain,standardize" when:"task=regress" doc:"plain: the model predicts targets as the files have them; standardize: with mean 0 and standard deviation 1 over the training rows; evaluations report MSE and MAE in the unit of the files all the same"`
}

// TextKeys are the keys of csv and parquet, and one of libsvm.
type TextKeys struct {
	IndexBase string      `yaml:"index_base" values:"auto,0,1" when:"set=libsvm" doc:"the number of the first feature in the file; auto: 0 if an index 0 occurs, else 1"`
	Label     string      `yaml:"label" form:"column" when:"set=csv,parquet" doc:"the column of the class: last, first, its name in the header, or its number from 1"`
	Header    string      `yaml:"header" values:"auto,true,false" when:"set=csv" doc:"true: the first line has the names of the columns; auto: it does if its fields are words, and the lines below it have numbers"`
	Delimiter string      `yaml:"delimiter" values:"auto,comma,semicolon,tab,bar,space" when:"set=csv" doc:"what separates values; auto: what cuts the first 100 lines into as many values"`
	Decimal   string      `yaml:"decimal" values:"point,comma" when:"set=csv" doc:"what stands before the fraction of a number: 1.5 or 1,5"`
	Drop      []string    `yaml:"drop,omitempty" form:"column" when:"set=csv,parquet" doc:"columns that are left out, by name or by number from 1"`
	Columns   csv.Columns `yaml:"columns,omitempty" when:"set=csv,parquet" doc:"what columns are that are not plain numbers: onehot (a text becomes a column for each text of the training rows), standardize (mean 0 and standard deviation 1 over the training rows) or number; \"*\" stands for all others"`
	Missing   string      `yaml:"missing" values:"error,mean" when:"set=csv,parquet" doc:"what becomes of missing values, such as NA: an error, or the mean of their column over the training rows; missing texts make all of their columns 0"`
}

// The values of task and of targets that are no defaults, and one that is.
const (
	taskClassify       = "classify"
	taskRegress        = "regress"
	targetsStandardize = "standardize"
)

// Regresses says whether rows have targets.
func (d Keys) Regresses() bool {
	return d.Labels.Task == taskRegress && slices.Contains([]string{csvSet, parquetSet,
		"libsvm", npySet, imagesSet, packedSet, "generated"}, d.Set)
}

// StandardizesTargets says whether these have mean 0 and standard deviation 1.
func (d Keys) StandardizesTargets() bool {
	return d.Regresses() && d.Labels.Targets == targetsStandardize
}

// StageAuto is the value of stage for the folder that the batch system or the user names.
const StageAuto = "auto"

// The values of sampler.
const (
	SamplerRun    = "run"
	SamplerScript = "script"
)

// Defaults is a data set of which only the name and the files are missing.
func Defaults() Keys {
	return Keys{
		Scale: 1, Center: true, External: ExternalKeys{Accuracy: true}, Deal: Dealing{Sampler: SamplerRun, Shuffle: "full", Window: 16384},
		Rows: 4096, TestRows: 1024, Features: 32, Classes: 10, Nonzeros: 8,
		Partition: "disjoint_random", Matrix: Product{Matrix: Matrix{Rows: 64, Columns: 64}, Rank: 4, Noise: 0.1},
		Arrays: Arrays{Channels: channelsAuto}, Tokens: Tokens{Window: 16, Stride: 1, Type: string(tokens.Uint16)},
		Pictures: Pictures{Color: "auto"}, Labels: LabelKeys{Task: taskClassify, Targets: "plain"},
		Text: TextKeys{IndexBase: "auto", Label: "last", Header: "auto", Delimiter: "auto", Decimal: "point", Missing: "error"},
	}
}

// options are the keys without what is a default, so that equal sets have equal options.
func (k TextKeys) options() (label string, o csv.Options) {
	plain := func(value, usual string) string {
		if value == usual {
			return ""
		}
		return value
	}
	defaults := Defaults().Text
	return plain(k.Label, defaults.Label), csv.Options{
		Header: plain(k.Header, defaults.Header), Delimiter: plain(k.Delimiter, defaults.Delimiter), Decimal: plain(k.Decimal, defaults.Decimal),
		Missing: plain(k.Missing, defaults.Missing), Drop: csv.ListOf(k.Drop), Columns: k.Columns.Kinds,
	}
}

// RankMax bounds the rank of a product of factors, and so the scratch of a batch.
const RankMax = 4096

// Product is what generated_ratings has entries of: a product of that rank, and noise.
type Product struct {
	Matrix
	Rank  int     `yaml:"rank" min:"1" max:"4096" when:"set=generated_ratings" doc:"rank of the product that the entries are made from; they have variance 1"`
	Noise float64 `yaml:"noise" min:"0" max:"1e6" when:"set=generated_ratings" doc:"standard deviation of what is added to an entry: no model has a smaller test error"`
}

// Arrays name arrays of an archive, or files of a folder without .npy.
type Arrays struct {
	X        string `yaml:"x,omitempty" when:"set=npy" doc:"the array with the training rows; without it, one of the usual names, such as x_train"`
	Y        string `yaml:"y,omitempty" when:"set=npy" doc:"the array with their classes"`
	TestX    string `yaml:"test_x,omitempty" when:"set=npy" doc:"the array with the test rows"`
	TestY    string `yaml:"test_y,omitempty" when:"set=npy" doc:"the array with their classes"`
	Channels string `yaml:"channels" values:"auto,first,last" when:"set=npy" doc:"where arrays of images have the channels: behind the row (first) or behind the columns (last); auto: where 1, 3 or 4 stands"`
}

// split is the split, if there is one.
func (d Keys) split() Split {
	if d.Split.Test == 0 {
		return Split{}
	}
	return d.Split
}

// Spec is the data set for who reads it, in a run with that seed; its rows may take so many bytes of memory while they are read.
func (d Keys) Spec(seed uint64, memory int64) Spec {
	s := Spec{Set: d.Set, Path: d.Path, Test: d.Test, Scale: d.Scale, Normalize: d.Normalize, Center: d.Center,
		Rows: d.Rows, TestRows: d.TestRows, Features: d.Features, Classes: d.Classes, Nonzeros: d.Nonzeros,
		Matrix: d.Matrix.Matrix, Binary: Binary{Arrays: d.Arrays, Tokens: d.Tokens}, Rank: d.Matrix.Rank, Noise: d.Matrix.Noise, Memory: memory,
		Fingerprint: d.External.Fingerprint}
	if d.Set == "libsvm" {
		s.IndexBase = d.Text.IndexBase
	}
	switch d.Set {
	case imagesSet:
		s.Pictures = d.Pictures.options()
		if s.Scale == 1 {
			s.Scale = 0
		}
		s.Split = d.split()
	case csvSet, parquetSet:
		s.Label, s.CSV = d.Text.options()
		if d.Skew.By != byClass {
			s.CSV.Group = d.Skew.By
		}
		fallthrough
	case "libsvm", "ratings", npySet, tokensSet:
		s.Split = d.split()
	}
	if d.Regresses() {
		s.Regress, s.Classes = Regression{On: true, Standardize: d.StandardizesTargets()}, 0
	}
	if d.Set != npySet {
		s.Binary.Arrays = Arrays{}
	}
	if d.Set != tokensSet {
		s.Binary.Tokens = Tokens{}
	}
	if strings.HasPrefix(d.Set, "generated") {
		s.Seed = seed
		if i := d.Image; len(i) == 3 {
			s.Image = Image{Channels: i[0], Height: i[1], Width: i[2]}
		}
	}
	return s
}

// IsTable says whether rows come from tables whose columns have names or numbers: csv and parquet.
func (k *Keys) IsTable() bool { return k.Set == csvSet || k.Set == parquetSet }
