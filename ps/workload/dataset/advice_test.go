package dataset

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Numbers of text files are decimal: what only Go or another language reads is refused, with the number that is meant.
func TestNumbersOfTextFiles(t *testing.T) {
	for field, want := range map[string]string{
		"1": "", "-1": "", "+1": "", "1.5": "", "5.": "", ".5": "", "1e3": "", "1E-3": "", "+.5e+2": "", "1e-300": "", "007": "",
		"1_000":    `value "1_000" is not a number: digits have _ between them; write 1000`,
		"0x1p3":    `value "0x1p3" is not a number: it is hexadecimal; write 8`,
		"0x10":     `value "0x10" is not a number: it is hexadecimal; write 16`,
		"1d5":      `value "1d5" is not a number: its exponent has no e; write 1e5`,
		"1e400":    `value "1e400" is not finite in float32, whose largest is 3.4028235e+38`,
		"1e39":     `value "1e39" is not finite in float32`,
		"-1e39":    `value "-1e39" is not finite in float32`,
		"infinity": `value "infinity" is not finite; every value must be a finite number`,
		"-Inf":     `value "-Inf" is not finite; every value`,
		"NaN":      `value "NaN" is not finite; every value must be a number: fill in missing values`,
		"NA":       `value "NA" is not a number; every value must be a number: fill in missing values`,
		"?":        `value "?" is not a number; every value must be a number: fill in missing values`,
		"x":        `value "x" is not a number`,
		"1e":       `value "1e" is not a number`,
		"٣":        `value "٣" is not a number`,
	} {
		for set, text := range map[string]string{"csv": "1,1,0\n1," + field + ",0\n", "libsvm": "0 1:1\n1 2:" + field +
			"\n", "ratings": "0,0,1\n1,2," + field + "\n"} {
			_, err := Load(Spec{Set: set, Path: filepath.Join(write(t, map[string]string{"a": text}), "a")})
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s of %s: %v, want %q in it", field, set, err, want)
			}
		}
	}
}

// Advice about a line follows from what stands in it, wherever the line is: each line here is tried as the first line and as the third.
func TestAdviceFollowsFromTheLine(t *testing.T) {
	header := "remove the header line"
	for _, c := range []struct {
		set, line    string
		first, other string // in the error: of the first line, of another; "": as of the first
	}{
		{"csv", "1,x,0", `value "x" is not a number; if column 2 has texts, write data.columns: {2: onehot}`, ""},
		{"csv", "1,7,Iris-setosa", `class "0" is no text, but those of the rows above are, such as "Iris-setosa"; write all classes as texts`,
			`class "Iris-setosa" is no whole number, but those of the rows above are, such as "0"`},
		{"csv", "1,2,1.5", `label "1.5" is not a whole number`, ""},
		{"csv", "1,2,-9999999", `label -9999999 is out of range, must be -1048575 to 1048575; number the classes from 0`, ""},
		{"csv", "1,5;2,5;0", "semicolons separate the values, which have decimal commas", ""},
		{"csv", "1,5\t2,5\t0", "tabs separate the values, which have decimal commas", ""},
		{"csv", "1;2;0", "semicolons separate the values, and commas those of other lines", ""},
		{"csv", "1 2 0", "spaces separate the values", ""},
		{"csv", `"1,5","2,5",0`, "a number in quotes has a decimal comma", ""},
		{"csv", "%%MatrixMarket matrix coordinate real general", "the head of MatrixMarket", ""},
		{"csv", "1 1:1 2:0.5", "it looks like libsvm: set data.set: libsvm", ""},
		{"libsvm", "1,2,0", "it looks like csv: set data.set: csv", ""},
		{"libsvm", "label features", header, `class "label" is no whole number, but those of the rows above are, such as "0"`},
		{"libsvm", "1 1:0,5", `value "0,5" is not a number: it has a decimal comma; write 0.5`, ""},
		{"libsvm", "1 -1:1", "index -1 is out of range, must be 0 to 16777216$", ""},
		{"libsvm", "1 99999999:1", "index 99999999 is out of range, must be 0 to 16777216; number the features from 1", ""},
		{"libsvm", "1,3 1:1", `label "1,3": data with several labels a row \(multi-label\) are not read`, ""},
		{"libsvm", "24.5 1:1", `label "24.5" is not a whole number: classes are; if it is a value to predict, set data.task: regress`, ""},
		{"libsvm", "%%MatrixMarket matrix coordinate real general", "the head of MatrixMarket", ""},
		{"ratings", "user,item", "2 values, want 3: row,column,value$", "2 values, want 3: row,column,value"},
		{"ratings", "1,-99999999,3", "column -99999999 is out of range, must be 0 to 16777215; number rows and columns from 0", ""},
		{"ratings", "1,2,x", `value "x" is not a number$`, ""},
		{"ratings", "1,2.5,3", `column "2.5" is not a whole number$`, ""},
		{"ratings", "%%MatrixMarket matrix array real general", "the head of MatrixMarket", ""},
	} {
		good := map[string]string{"csv": "1,2,0\n3,4,1\n", "libsvm": "0 1:1\n1 2:1\n", "ratings": "0,0,1\n1,1,2\n"}[c.set]
		want := c.first
		for place, text := range []string{c.line + "\n" + good, "\n" + c.line + "\n" + good, good + c.line + "\n"} {
			if place == 2 && c.other != "" {
				want = c.other
			}
			_, err := Load(Spec{Set: c.set, Path: filepath.Join(write(t, map[string]string{"a": text}), "a")})
			if err == nil || !regexp.MustCompile(want).MatchString(err.Error()) {
				t.Errorf("%s, line %q, place %d: %v, want %q in it", c.set, c.line, place, err, want)
			}
			if err != nil && strings.Contains(err.Error(), header) != strings.Contains(want, header) {
				t.Errorf("%s, line %q, place %d: %v", c.set, c.line, place, err)
			}
		}
	}
}

// No hint names a key that a configuration with the set refuses: features and classes of files are not keys.
func TestAdviceNamesKeysOfTheSet(t *testing.T) {
	for set, texts := range map[string][]string{
		"csv": {"1,2,-9999999\n", "1,2,9999999\n"}, "libsvm": {"0 -1:1\n", "0 99999999:1\n", "-99999999 1:1\n"},
		"ratings": {"-1,0,1\n", "0,0,x\n"},
	} {
		for _, text := range texts {
			_, err := Load(Spec{Set: set, Path: filepath.Join(write(t, map[string]string{"a": text}), "a")})
			if err == nil || regexp.MustCompile(
				`check features|check the number|is the class in this column|data\.(features|classes)`).MatchString(err.Error()) {
				t.Errorf("%s of %q: %v", set, text, err)
			}
		}
	}
}

// The path of a file below a file is told apart from a folder that a reader completes.
func TestPathsBelowAFile(t *testing.T) {
	file := filepath.Join(write(t, map[string]string{"a": "1,2,0\n"}), "a")
	for set, want := range map[string]string{"csv": "did you mean " + file + "?", "libsvm": "did you mean " + file + "?",
		"idx": "name the folder itself", "cifar10": "name the folder itself"} {
		if _, err := Load(Spec{Set: set, Path: filepath.Join(file, "b")}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", set, err, want)
		}
	}
	if _, err := Load(Spec{Set: "csv", Path: strings.Repeat("x", 5000)}); err == nil || strings.Contains(err.Error(), "permissions") {
		t.Errorf("a name that is too long: %.200v", err)
	}
}

// A table whose last column is not the class is noted, and one whose last column may be it is not.
func TestDoubtfulClassesAreNoted(t *testing.T) {
	lines := func(rows int, line func(r int) string) string {
		var b strings.Builder
		for r := range rows {
			b.WriteString(line(r) + "\n")
		}
		return b.String()
	}
	for _, c := range []struct{ name, text, want string }{
		{"ten classes", lines(100, func(r int) string { return fmt.Sprintf("%d.5,%d,%d", r, r, r%10) }), ""},
		{"two classes, a first column of words", lines(40, func(r int) string { return fmt.Sprintf("%d,%d,%d", r%3, r, r%2) }), ""},
		{"a few rows", "1,2,0\n3,4,1\n5,6,0\n", ""},
		{"one row", "1,2,0\n", ""},
		{"many classes", lines(100, func(r int) string { return fmt.Sprintf("%d.5,%d,%d", r, r, r%11) }),
			"numbers up to 10 in 100 rows: fewer than ten rows for each of 11 classes"},
		{"a label for each row", lines(5, func(r int) string { return fmt.Sprintf("%d.5,%d", r, 100+r) }), "numbers up to 104 in 5 rows"},
		{"the class first, pixels that are never set",
			lines(100, func(r int) string { return fmt.Sprintf("%d,%d,0", r%10, r) }),
			"the class may be in the first column, which has each number from 0 to 9; csv takes the class from the last " +
				"column, which is 0 in all rows"},
		{"the class first, pixels", lines(3000, func(r int) string { return fmt.Sprintf("%d,%d,%d", r%10, r, r*r*2%251) }),
			"the class may be in the first column, which has each number from 0 to 9; csv takes the class from the last column, which has"},
	} {
		set, err := Load(Spec{Set: "csv", Path: filepath.Join(write(t, map[string]string{"a": c.text}), "a")})
		if err != nil {
			t.Fatal(c.name, err)
		}
		if got := strings.Join(set.Notes, "\n"); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: notes %q, want %q", c.name, got, c.want)
		}
	}
}

// BenchmarkReadText reads rows of 64 values of csv and of LIBSVM from memory.
func BenchmarkReadText(b *testing.B) {
	var csv, svm strings.Builder
	for r := range 1000 {
		fmt.Fprintf(&svm, "%d", r%10)
		for c := range 64 {
			v := float64((r*64+c)*7919%65536)/65536 - 0.5
			fmt.Fprintf(&csv, "%.6g,", v)
			fmt.Fprintf(&svm, " %d:%.6g", c+1, v)
		}
		fmt.Fprintf(&csv, "%d\n", r%10)
		svm.WriteByte('\n')
	}
	for set, text := range map[string]string{"csv": csv.String(), "libsvm": svm.String()} {
		path := filepath.Join(b.TempDir(), set)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
		b.Run(set, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for range b.N {
				if _, err := Load(Spec{Set: set, Path: path}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// What is blamed as a large value is one of the data: the row and the column of a rating are none, however large.
func TestPlacesOfRatingsAreNoValues(t *testing.T) {
	path := filepath.Join(write(t, map[string]string{"a": "2000000,3,4\n2000001,5000000,-7\n"}), "a")
	set, err := Load(Spec{Set: "ratings", Path: path})
	if err != nil {
		t.Fatal(err)
	}
	b := NewBatch(false, set.Samples(), 2)
	b.Take(set.Train, []int32{0, 1})
	part := b.Part(0, 1)
	if all, of, first := set.Largest(), b.Largest(), part.Largest(); all != 7 || of != 7 || first != 4 {
		t.Errorf("the largest value is %v, of a batch %v, of its first sample %v; want 7, 7, 4", all, of, first)
	}
	path = filepath.Join(write(t, map[string]string{"a": "5,-2000000,1\n6,3,0\n"}), "a")
	if set, err = Load(Spec{Set: "csv", Path: path}); err != nil || set.Largest() != 2000000 {
		t.Errorf("of csv each feature is a value: %v, %v", set.Largest(), err)
	}
}
