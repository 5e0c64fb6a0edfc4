package verbs

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"fluentps/internal/configs"
	"fluentps/internal/configs/diag"
	"fluentps/internal/disk/durable"
	"fluentps/internal/disk/foreign"
	"fluentps/internal/plan/layout"
	"fluentps/internal/show/datapage"
	"fluentps/internal/show/metrics"
	pages "fluentps/internal/show/page"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
	"fluentps/ps/workload/dataset/classes"
	"fluentps/ps/workload/dataset/csv"
	"fluentps/ps/workload/dataset/images"
	"fluentps/ps/workload/dataset/profile"
)

func dataCommand() *cli.Command {
	return &cli.Command{
		Name:      "data",
		Usage:     "verify a data set: rows, columns, classes, checksums",
		ArgsUsage: "CONFIG | SET PATH",
		Description: "SET is the reader, one of: " + strings.Join(dataset.SetNames(), " ") + ".\n" +
			"PATH is the folder of idx, cifar10 and images, the archive of npy, and the training file of csv, parquet,\n" +
			"libsvm and ratings; each file may be packed with gzip, zstd or bzip2. Of a file that is mapped (packed, npy) all is read.\n" +
			"fluentps data pack writes any set as one file that is mapped.\n" +
			"--set also takes keys of data beside SET PATH: --set data.label=species.\n" + precedence,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "test", Usage: "test `FILE` of csv, parquet, libsvm, ratings and images; with SET PATH only"},
			&cli.StringFlag{Name: "html", Usage: "write a page with histograms, pictures and what may be a mistake to `FILE`, such as set.html"},
			setFlag(),
		},
		Subcommands: []*cli.Command{dataPackCommand()},
		Action:      dataVerb,
	}
}

func dataVerb(c *cli.Context) error {
	if c.IsSet("html") && c.String("html") == "" {
		return usagef("data: --html is empty; name the file to write, as in --html set.html")
	}
	in, err := dataInput(c)
	if err != nil {
		return err
	}
	set, err := dataset.Load(in.spec)
	if err != nil {
		return &exitError{codeUsage, err.Error()}
	}
	found, err := set.Describe()
	if err != nil {
		return &exitError{codeUsage, err.Error()}
	}
	noteData(c, found.Notes)
	if err := in.augment.Check(set.Image); err != nil {
		return &exitError{codeUsage, err.Error()}
	}
	seen, err := profile.Of(set, profile.Options{Sheets: c.IsSet("html"), Augment: in.augment, Seed: in.seed})
	if err != nil {
		return &exitError{codeUsage, err.Error()}
	}
	source := &datapage.Source{Title: in.title, Report: found, Profile: seen, Build: buildText()}
	if _, err = fmt.Fprint(c.App.Writer, dataText(found, c.NArg() == 1)+sentencesText(source)); err != nil || !c.IsSet("html") {
		return err
	}
	return dataPage(c, source)
}

// sentencesText says in words what a model that knows nothing reaches, and what may be a mistake.
func sentencesText(s *datapage.Source) string {
	var b strings.Builder
	for _, sentence := range datapage.Sentences(s)[1:] { // the first one is in the table, too
		b.WriteString("\n" + metrics.Wrap(foreign.Visible(sentence), metrics.TextWidth, 2))
	}
	if b.Len() > 0 {
		b.WriteByte('\n')
	}
	return b.String()
}

// dataPage writes the page of --html.
func dataPage(c *cli.Context, source *datapage.Source) error {
	page, err := datapage.Make(source)
	if err != nil {
		return err
	}
	out := c.String("html")
	folder := durable.Below(filepath.Dir(out))
	defer folder.Close()
	if err := folder.Err(); err != nil {
		return usagef("data: --html: %v; name another file", err)
	}
	if err := writePageOf(folder, filepath.Base(out), page, pages.Mark(datapage.Verb), "name another file"); err != nil {
		return usagef("data: --html: %v", err)
	}
	_, err = fmt.Fprintf(c.App.Writer, "Page: %s\n", foreign.Text(out))
	return err
}

// noteData prints the notes of a reader about its files.
func noteData(c *cli.Context, notes []string) {
	for _, note := range notes {
		printError(c.App.ErrWriter, "note: "+note)
	}
}

// dataOf is a data set that arguments name.
type dataOf struct {
	spec    workload.DataSpec
	title   string
	augment images.Augment // of the configuration
	seed    uint64
}

// dataSpec is the data set that the arguments name.
func dataSpec(c *cli.Context) (workload.DataSpec, error) {
	in, err := dataInput(c)
	if err != nil {
		return workload.DataSpec{}, err
	}
	return in.spec, nil
}

func dataInput(c *cli.Context) (*dataOf, error) {
	args := c.Args().Slice()
	switch {
	case len(args) == 1 && slices.Contains(dataset.SetNames(), args[0]):
		return nil, usagef("data: %s needs its PATH, or a CONFIG that describes it; see fluentps data -h", args[0])
	case len(args) == 1:
		if c.IsSet("test") {
			return nil, usagef("data: --test goes with SET PATH; with a CONFIG use --set data.test=FILE")
		}
		in := readInput(c, args[0])
		if err := in.problem(); err != nil {
			return nil, err
		}
		return dataOfConfig(in.cfg, in.cfg.Name), nil
	case len(args) != 2:
		return nil, usagef("data takes CONFIG, or SET PATH, got %d arguments%s; see fluentps data -h", len(args), listed(args))
	case slices.Contains(dataset.SetNames(), args[1]) && !slices.Contains(dataset.SetNames(), args[0]):
		return nil, usagef("data: SET comes first: fluentps data %s %s", args[1], args[0])
	case !slices.Contains(dataset.SetNames(), args[0]):
		return nil, usagef("data: %s", unknown("data set", args[0], dataset.SetNames()))
	case c.IsSet("set"):
		return dataOver(c, args[0], args[1])
	}
	s := workload.DataSpec{Set: args[0], Path: args[1], Test: c.String("test")}
	if s.Set == "packed" { // it knows what its labels are
		if has, err := dataset.PackHasTargets(s.Path); err == nil {
			s.Regress.On = has
		}
	}
	return &dataOf{spec: s, title: args[1]}, nil
}

// dataOfConfig is the data set of a configuration.
func dataOfConfig(c *configs.Config, title string) *dataOf {
	return &dataOf{layout.DataSpec(c), title, c.Data.Augment, c.Seed}
}

// dataOver is the data set of SET PATH with the keys of --set, as a configuration reads them.
func dataOver(c *cli.Context, set, path string) (*dataOf, error) {
	for _, s := range c.StringSlice("set") {
		if !strings.HasPrefix(s, "data.") {
			return nil, usagef("data: --set %s: with SET PATH, --set takes the keys of data alone, such as data.label=last", s)
		}
	}
	model := "{name: mlp, layers: [1]}" // takes classes and targets
	if slices.Contains(dataset.RatingSetNames(), set) {
		model = "{name: matrix_factorization}"
	}
	text := fmt.Sprintf("name: data\ndata: {set: %s, path: %s}\nmodel: %s\ntrain: {batch_per_worker: 1, optimizer: {lr: 1}, "+
		"stop: {epochs: 1}}\n", set, diag.FormatString(path), model)
	o := configs.Options{Set: c.StringSlice("set")}
	if c.IsSet("test") {
		o.Set = append(o.Set, "data.test="+diag.FormatString(c.String("test")))
	}
	in := &input{file: "SET PATH", src: []byte(text)}
	in.cfg, in.origins, in.diags = configs.Parse(in.file, in.src, o)
	if err := in.problem(); err != nil {
		return nil, err
	}
	return dataOfConfig(in.cfg, path), nil
}

// classesShown is the most classes that the table lists.
const classesShown = 100

// dataText describes a data set. configured says that a configuration described the set: its settings are part of the checksum
// of the set, and SET PATH lacks them.
func dataText(r dataset.Report, configured bool) string {
	var b strings.Builder
	for _, line := range r.Found {
		fmt.Fprintln(&b, foreign.Visible(line))
	}
	if r.Matrix != (workload.Matrix{}) {
		ratingsText(&b, r)
	} else {
		if r.Targets != (dataset.Targets{}) {
			targetsText(&b, r)
		} else {
			classesText(&b, r)
		}
		columnsText(&b, r)
	}
	sampleText(&b, r)
	b.WriteByte('\n')
	for _, f := range r.Files {
		what := "bytes unpacked"
		switch {
		case f.Whole != "":
			what = "bytes, by their size and 64 blocks, as a run compares them"
			fmt.Fprintf(&b, "sha256 %s  %d bytes  %s\n", f.Whole, f.Bytes, foreign.Text(f.Path))
		case f.Sampled:
			what = "bytes, by their index; every block fits its checksum"
		}
		fmt.Fprintf(&b, "sha256 %s  %d %s  %s\n", f.SHA256, f.Bytes, what, foreign.Text(f.Path))
	}
	if configured {
		fmt.Fprintf(&b, "sha256 %s  of the set: data_sha256 in run.json\n", r.SHA256)
	}
	return b.String()
}

func ratingsText(b *strings.Builder, r dataset.Report) {
	fmt.Fprintf(b, "%s: entries of a matrix of %d x %d, %d training rows, %d test rows\n\n", r.Set, r.Matrix.Rows,
		r.Matrix.Columns, r.Train.Rows, r.Test.Rows)
	valuesText(b, "values", r)
}

func targetsText(b *strings.Builder, r dataset.Report) {
	fmt.Fprintf(b, "%s: %d features and a target, %d training rows, %d test rows\n\n", r.Set, r.Cols, r.Train.Rows, r.Test.Rows)
	valuesText(b, "targets", r)
}

// valuesText describes what rows are to be predicted as, if that are numbers.
func valuesText(b *strings.Builder, what string, r dataset.Report) {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, what+"\tmean\tdeviation\tleast\tlargest\t")
	for _, p := range []struct {
		name string
		dataset.Part
	}{{"train", r.Train}, {"test", r.Test}} {
		if v := p.Values; p.Rows > 0 {
			fmt.Fprintf(t, "%s\t%.4g\t%.4g\t%.4g\t%.4g\t\n", p.name, v.Mean, v.Deviation, v.Min, v.Max)
		}
	}
	_ = t.Flush() // a strings.Builder never fails
}

func classesText(b *strings.Builder, r dataset.Report) {
	fmt.Fprintf(b, "%s: %d features, %d classes, %d training rows, %d test rows\n\n", r.Set, r.Cols, r.Classes, r.Train.Rows, r.Test.Rows)
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "class\ttrain\ttest\t")
	shown, unused := 0, 0
	for k := 0; k < r.Classes && shown < classesShown; k++ {
		if r.Set == "tokens" && r.Train.Counts[k]+r.Test.Counts[k] == 0 { // of all bytes a text has few
			unused++
			continue
		}
		shown++
		class := strconv.Itoa(k)
		if k < len(r.ClassNames) {
			class += " " + foreign.Text(r.ClassNames[k])
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t\n", class, r.Train.Counts[k], r.Test.Counts[k])
	}
	_ = t.Flush() // a strings.Builder never fails
	if left := r.Classes - shown - unused; left > 0 {
		fmt.Fprintf(b, "... and %d more\n", left)
	}
}

// columnsShown is the most columns that the table lists.
const columnsShown = 100

// columnsText describes the columns of csv.
func columnsText(b *strings.Builder, r dataset.Report) {
	if len(r.Columns) == 0 {
		return
	}
	b.WriteString("\ncolumns of the files; least to deviation are of the training rows:\n")
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "column\tname\tkind\tmissing\tleast\tlargest\tmean\tdeviation\ttexts")
	for i := range min(len(r.Columns), columnsShown) {
		c := r.Columns[i]
		fmt.Fprintf(t, "%d\t%s\t%s\t%d", i+1, foreign.Text(cmp.Or(c.Name, "-")), c.Kind, c.Missing)
		switch csv.Kind(c.Kind) {
		case csv.Number, csv.Standardize:
			fmt.Fprintf(t, "\t%.4g\t%.4g\t%.4g\t%.4g\t", c.Min, c.Max, c.Mean, c.Deviation)
		case csv.OneHot:
			fmt.Fprintf(t, "\t\t\t\t\t%d: %s", len(c.Texts), classes.List(c.Texts))
		}
		fmt.Fprintln(t)
	}
	_ = t.Flush() // a strings.Builder never fails
	if n := len(r.Columns) - columnsShown; n > 0 {
		fmt.Fprintf(b, "... and %d more\n", n)
	}
}

// sampleText shows the first training rows as the model gets them.
func sampleText(b *strings.Builder, r dataset.Report) {
	if len(r.Sample) == 0 {
		return
	}
	b.WriteString("\nthe first training rows, as the model gets them:\n")
	for _, s := range r.Sample {
		for _, v := range s.X {
			fmt.Fprintf(b, "%.5g ", v)
		}
		switch {
		case r.Targets != (dataset.Targets{}):
			fmt.Fprintf(b, "-> %.6g", dataset.TargetOf(s.Y))
		case r.Matrix == (workload.Matrix{}):
			class := strconv.Itoa(int(s.Y))
			if int(s.Y) < len(r.ClassNames) {
				class += " " + foreign.Text(r.ClassNames[s.Y])
			}
			fmt.Fprintf(b, "-> %s", class)
		}
		b.WriteByte('\n')
	}
}
