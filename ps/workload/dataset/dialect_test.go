package dataset

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// Files as other programs write them are read as they are, or refused with a sentence that says what to do.
func TestDialectsOfCSV(t *testing.T) {
	plain := "5.1 3.5 0\n4.9 3 1\n"
	for _, c := range []struct{ name, text, test, rows, want string }{
		{"plain", "5.1,3.5,0\n4.9,3,1\n", "", plain, ""},
		{"pandas, index=False", "a,b,class\n5.1,3.5,0\n4.9,3.0,1\n", "", plain, `header found, comma, class in column "class"`},
		{"pandas with an index", ",a,b\n0,3.5,0\n1,3.0,1\n", "", "", "column 1 of the header has no name"},
		{"R", "\"a\",\"b\",\"class\"\n5.1,3.5,0\n4.9,3,1\n", "", plain, "header found"},
		{"R with texts", "\"a\",\"b\",\"class\"\n5.1,3.5,\"no\"\n4.9,3,\"yes\"\n", "", plain, `2 classes: "no", "yes"`},
		{"Excel", "\ufeffa,b,class\r\n5.1,3.5,0\r\n4.9,3,1\r\n", "", plain, "header found, comma"},
		{"Excel in German", "\ufeffa;b;class\r\n5,1;3,5;0\r\n4,9;3;1\r\n", "", "", "it has a decimal comma; write 5.1"},
		{"semicolons", "\"a\";\"b\";\"class\"\n5.1;3.5;0\n4.9;3;1\n", "", plain, "header found, semicolon"},
		{"semicolons, no header", "5.1;3.5;0\n4.9;3;1\n", "", plain, "no header, semicolon"},
		{"decimal commas, no header", "5,1;3,5;0\n4,9;3,0;1\n", "", "", "decimal commas"},
		{"tabs", "5.1\t3.5\t0\n4.9\t3\t1\n", "", plain, "no header, tab"},
		{"bars", "a|b|c\n5.1|3.5|0\n4.9|3|1\n", "", plain, "header found, bar"},
		{"old Mac", "a,b,c\r5.1,3.5,0\r4.9,3,1\r", "", plain, "header found"},
		{"iris.data", "5.1,3.5,Iris-setosa\n4.9,3,Iris-virginica\n\n", "", plain, `no header, comma, 2 classes: "Iris-setosa", "Iris-virginica"`},
		{"sorted texts", "4.9,3,z\n5.1,3.5,b\n", "", "4.9 3 1\n5.1 3.5 0\n", `2 classes: "b", "z"`},
		{"comments", "# made by hand\na,b,c\n# units\n5.1,3.5,0\n4.9,3,1\n", "", plain, "2 lines of comments skipped"},
		{"quoted separators", "a,\"b, in cm\",c\n5.1,3.5,\"x, \"\"y\"\"\"\n4.9,3,z\n", "", plain, `2 classes: "x, \"y\"", "z"`},
		{"a test file", "a,b,c\n5.1,3.5,no\n4.9,3,yes\n", "a,b,c\n1,2,yes\n3,4,yes\n", plain, "header found"},
		{"another class", "a,b,c\n5.1,3.5,no\n4.9,3,yes\n", "a,b,c\n1,2,yes\n3,4,perhaps\n", "", `t:3:5: class "perhaps" is not in the training file, whose classes are "no", "yes"`},
		{"other columns", "a,b,c\n5.1,3.5,0\n4.9,3,1\n", "b,a,c\n1,2,0\n", "", `t:1: column 1 of the header is "b", and in the training file it is "a"`},
		{"twice", "a,a,c\n5.1,3.5,0\n4.9,3,1\n", "", "", `columns 1 and 2 of the header are both "a"`},
		{"ragged", "a,b,c\n5.1,3.5,0\n4.9,3\n", "", "", "a:3: 2 values, want 3"},
		{"missing", "a,b,c\n5.1,3.5,0\n4.9,NA,1\n", "", "", "fill in missing values"},
		{"a missing class", "a,b,c\n5.1,3.5,x\n" + strings.Repeat("1,2,x\n", 100) + "4.9,3,NA\n", "", "", `the class is missing ("NA"); remove the row`},
		{"a text", "a,b,c\n5.1,3.5,0\n4.9,Paris,1\n", "", "", `a:3:5: value "Paris" is not a number`},
		{"not UTF-8", "5.1,3.5,a\xff\n4.9,3,b\n", "", "", "not in UTF-8"},
		{"one column", "a\n1\n2\n", "", "", "want 2"},
		{"header only", "a,b,c\n", "", "", "if the first line is a header, set data.header: true"},
	} {
		dir := write(t, map[string]string{"a": c.text, "t": c.test})
		s := Spec{Set: "csv", Path: filepath.Join(dir, "a")}
		if c.test != "" {
			s.Test = filepath.Join(dir, "t")
		}
		set, err := Load(s)
		if c.rows == "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q in it", c.name, err, c.want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var got strings.Builder
		for r := range set.Train.Rows() {
			x, y := rowsOf(set.Train, int32(r))
			fmt.Fprintln(&got, x[0], x[1], y[0])
		}
		if found := strings.Join(set.Found, "\n"); got.String() != c.rows || !strings.Contains(found, c.want) || c.want == "" && found != "" {
			t.Errorf("%s: rows %q, found %q; want %q, %q", c.name, got.String(), found, c.rows, c.want)
		}
	}
}
