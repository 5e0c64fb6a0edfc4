package mutations

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"fluentps/internal/configs"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
	"fluentps/ps/workload/dataset/csv"
)

// tables are good files of text, by set.
var tables = map[string]string{
	"csv":     "1,2.5,0\n3.5,-4e2,1\n5,6,2\n7,8,1\n",
	"libsvm":  "-1 1:2 3:4.5\n+1 2:1\n+1 7:-1e-3\n-1 1:1 2:2\n",
	"ratings": "3,1,4.5\n0,2,-1,881250949\n3,0,2.5\n1,2,3,2005-04-02 23:53:47\n",
}

// oddFields are what people and other programs write in the place of a number.
var oddFields = []string{"0,5", "1_000", "0x10", "0x1p3", "1d5", "nan", "NA", "?", "inf", "-Infinity", "1e39",
	"1e400", "-1", "0", "16777216", "99999999999", "x", "Iris-setosa", "1.0", "1:1", "#", "qid:1", "\"2,5\"", "\"3\"", "", "1 2", "1;2", "%"}

// oddLines are what files of other forms have.
var oddLines = []string{"a,b,c", "label,x,y", "userId movieId rating",
	"%%MatrixMarket matrix coordinate real general", "1,5;2,5;0", "1;2;0", "1\t2\t0", "1 2 0", "1 1:1 2:2", "1,2,0",
	"# comment", "\"1,5\",\"2\",0"}

var fieldForm = regexp.MustCompile(`[^,:;\s]+`)

// changeTable makes one change of a table.
func changeTable(r *rand.Rand, text string) string {
	lines := strings.SplitAfter(text, "\n")
	at := r.IntN(len(lines))
	switch r.IntN(6) {
	case 0:
		return strings.Join(lines[:at], "") + oddLines[r.IntN(len(oddLines))] + "\n" + strings.Join(lines[at:], "")
	case 1:
		return oddLines[r.IntN(len(oddLines))] + "\n" + text
	case 2:
		from := []string{",", ".", " ", "\n"}[r.IntN(4)]
		return strings.ReplaceAll(text, from, []string{";", ",", "\t", " ", "\n\n"}[r.IntN(5)])
	case 3:
		return strings.ReplaceAll(strings.ReplaceAll(text, ",", ";"), ".", ",")
	}
	fields := fieldForm.FindAllStringIndex(text, -1)
	if len(fields) == 0 {
		return text
	}
	f := fields[r.IntN(len(fields))]
	return text[:f[0]] + oddFields[r.IntN(len(oddFields))] + text[f[1]:]
}

var (
	lineOf     = regexp.MustCompile(`^data: \S+?/a:([0-9]+)`)
	writeValue = regexp.MustCompile(`(?:value|label) ("(?:[^"\\]|\\.)*").*; write ([-+0-9.eE]+)$`)
	writeSet   = regexp.MustCompile(`set data\.set: (\w+)`)
	writeSigns = regexp.MustCompile(`; (semicolons|tabs|bars|spaces) separate the values, and commas those of other lines: write commas in`)
	writeKeys  = regexp.MustCompile(`data\.(delimiter|decimal|missing|header): (\w+)`)
	writeKind  = regexp.MustCompile(`write data\.columns: \{"?([^"}]+)"?: (onehot)\}`)
	keysOf     = regexp.MustCompile(`\b(?:data|cluster|model|train)\.[a-z_]+`)
)

// withoutLine is a text without its line n, from 1.
func withoutLine(text string, n int) string {
	lines := strings.SplitAfter(text, "\n")
	return strings.Join(append(lines[:n-1:n-1], lines[n:]...), "")
}

// followed does what an error says to do, also to the options of csv. done is false if it names nothing to do.
func followed(set, text, said string, o *csv.Options) (newSet, newText string, done bool) {
	line := 0
	if m := lineOf.FindStringSubmatch(said); m != nil {
		line, _ = strconv.Atoi(m[1])
	}
	here := func(change func(line string) string) string {
		lines := strings.SplitAfter(text, "\n")
		lines[line-1] = change(lines[line-1])
		return strings.Join(lines, "")
	}
	if m := writeSet.FindStringSubmatch(said); m != nil {
		return m[1], text, true
	}
	if m := writeValue.FindStringSubmatch(said); m != nil {
		value, err := strconv.Unquote(m[1])
		return set, here(func(l string) string { return strings.Replace(l, value, m[2], 1) }), err == nil
	}
	if m := writeSigns.FindStringSubmatch(said); m != nil {
		sign := map[string]string{"semicolons": ";", "tabs": "\t", "bars": "|", "spaces": " "}[m[1]]
		return set, here(func(l string) string {
			return strings.Join(strings.Split(strings.TrimSpace(l), sign), ",") + "\n"
		}), true
	}
	if m := writeKind.FindStringSubmatch(said); m != nil && set == "csv" {
		o.Columns = csv.KindsOf([]string{m[1]}, []string{m[2]})
		return set, text, true
	}
	if all := writeKeys.FindAllStringSubmatch(said, -1); all != nil && set == "csv" {
		for _, m := range all {
			*map[string]*string{"delimiter": &o.Delimiter, "decimal": &o.Decimal, "missing": &o.Missing, "header": &o.Header}[m[1]] = m[2]
		}
		return set, text, true
	}
	switch {
	case strings.Contains(said, "remove the header line"), strings.Contains(said, "remove the row"):
		return set, withoutLine(text, line), true
	case strings.Contains(said, "remove the comment from # on"):
		return set, here(func(l string) string { return l[:strings.Index(l, "#")] + "\n" }), true
	case strings.Contains(said, "remove the entries qid:"):
		return set, regexp.MustCompile(` qid:\S*`).ReplaceAllString(text, ""), true
	case strings.Contains(said, "add 1 to each index"):
		return set, regexp.MustCompile(`([0-9]+):`).ReplaceAllStringFunc(text, func(f string) string {
			n, _ := strconv.Atoi(strings.TrimSuffix(f, ":"))
			return fmt.Sprint(n+1, ":")
		}), true
	}
	return set, text, false
}

// refuses says whether a configuration with that set refuses a key, whatever its value.
func refuses(set, key string) bool {
	model := map[string]string{"ratings": "matrix_factorization"}[set]
	if model == "" {
		model = "softmax"
	}
	text := fmt.Sprintf("name: x\ndata: {set: %s, path: a, test: b}\nmodel: {name: %s}\ntrain: {batch_per_worker: 1, "+
		"optimizer: {lr: 0.1}, stop: {epochs: 1}}\n", set, model)
	_, _, ds := configs.Parse("x.yaml", []byte(text), configs.Options{Set: []string{key + "=1"}})
	for _, d := range ds.Errors() {
		if d.Path == key && (strings.HasPrefix(d.Msg, "unknown key") || strings.HasPrefix(d.Msg, "belongs to")) {
			return true
		}
	}
	return false
}

// What the error about a file of text says to do can be done, and the error is gone then; another may come. A key that it names is one of
// a configuration with that set. FLUENTPS_HINTS is how many changed files are tried.
func TestAdviceOnDataCanBeFollowed(t *testing.T) {
	tries, done := setting(t, "FLUENTPS_HINTS", 600), 0
	r := rand.New(rand.NewPCG(38, 5))
	path := filepath.Join(t.TempDir(), "a")
	load := func(set, text string, o csv.Options) string {
		if set != "csv" {
			o = csv.Options{}
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := dataset.Load(workload.DataSpec{Set: set, Path: path, Memory: memoryMax, CSV: o}); err != nil {
			return err.Error()
		}
		return ""
	}
	kinds := map[string]int{}
	for i := range tries {
		set := []string{"csv", "libsvm", "ratings"}[i%3]
		text := tables[set]
		for range 1 + r.IntN(2) {
			text = changeTable(r, text)
		}
		var o csv.Options
		said := load(set, text, o)
		for _, key := range keysOf.FindAllString(said, -1) {
			if refuses(set, key) {
				t.Errorf("%s names %s, which is refused: %s\n%s", set, key, said, text)
			}
		}
		newSet, newText, has := followed(set, text, said, &o)
		if !has {
			continue
		}
		done++
		kinds[said[strings.LastIndex(said, "; ")+1:]]++
		now := load(newSet, newText, o)
		if now == said { // two changes may have made the same line twice
			newSet, newText, _ = followed(newSet, newText, now, &o)
			now = load(newSet, newText, o)
		}
		if now == said {
			t.Errorf("%s: following this changes nothing: %s\n--- before\n%s--- after\n%s", set, said, text, newText)
		}
	}
	if done < tries/4 || len(kinds) < 10 {
		t.Errorf("only %d of %d errors say what to do, in %d ways", done, tries, len(kinds))
	}
	t.Logf("followed: %d of %d changed files of text have an error that says what to do, in %d ways", done, tries, len(kinds))
}
