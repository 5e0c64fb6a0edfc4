package shapes

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// drawn is any architecture that Check takes.
func drawn(t *rapid.T) *Architecture {
	name := rapid.StringMatching(`[a-zA-Z0-9._:/-]{1,12}`)
	var layers []Layer
	for l := range rapid.IntRange(1, 5).Draw(t, "layers") {
		layer := Layer{Name: fmt.Sprint(name.Draw(t, "layer"), "#", l)}
		for i := range rapid.IntRange(1, 4).Draw(t, "params") {
			p := Param{Name: fmt.Sprint(name.Draw(t, "param"), ".", l, ".", i), Stat: rapid.Bool().Draw(t, "stat")}
			p.Shape = rapid.SliceOfN(rapid.IntRange(1, 60), 1, 4).Draw(t, "shape")
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				p.Fan = rapid.IntRange(1, 1<<20).Draw(t, "fan")
			case 1:
				p.Start = rapid.Float32().Draw(t, "start")
			case 2:
				p.Row = p.Shape[len(p.Shape)-1]
			}
			layer.Params = append(layer.Params, p)
		}
		layers = append(layers, layer)
	}
	a := New(name.Draw(t, "model"), layers)
	a.Scratch = Scratch{rapid.Int64Min(0).Draw(t, "fixed"), rapid.Int64Min(0).Draw(t, "each")}
	a.Compute = Cost{time.Duration(rapid.Int64Range(0, 1e12).Draw(t, "a")), time.Duration(rapid.Int64Range(0, 1e12).Draw(t, "c"))}
	return a
}

func written(t interface{ Fatal(...any) }, a *Architecture) string {
	var b bytes.Buffer
	if err := a.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestAFileHoldsAnArchitecture(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := drawn(t)
		text := written(t, a)
		for _, form := range []string{text, strings.ReplaceAll(text, "\n", "\r\n"),
			strings.Replace(text, "\nmodel", "\n\n# a comment\nmodel", 1)} {
			b, err := Read("net.shapes", strings.NewReader(form))
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(a, b) {
				t.Fatalf("read %+v, written was %+v", b, a)
			}
			if one, two := hashOf(t, a), hashOf(t, b); one != two {
				t.Fatalf("hashes %s and %s", one, two)
			}
		}
		// A file that was cut short is never taken for a whole one.
		if cut := rapid.IntRange(0, len(text)-2).Draw(t, "cut"); strings.TrimSpace(text[cut:]) != "" {
			if b, err := Read("net.shapes", strings.NewReader(text[:cut])); err == nil {
				t.Fatalf("of %q the part %q was read as %+v", text, text[:cut], b)
			}
		}
	})
}

func hashOf(t *rapid.T, a *Architecture) string {
	h, err := a.Hash()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

const small = `fluentps shapes 1
model net
scratch 8 16
compute 1ms 10us
layer fc1
param fc1.weight 3x2 fan 2
param fc1.bias 3
layer norm
param norm.scale 3 start 1
stat norm.mean 3
param table 6x4 row 4
end 5 39
`

// Each mistake is told with its line, the value, what is allowed and what to do.
func TestMistakesInFiles(t *testing.T) {
	if _, err := Read("net.shapes", strings.NewReader(small)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, by, want string }{
		{"fluentps shapes 1", "hello", `net.shapes:1: "hello" is not the head of a file of shapes, "fluentps shapes 1"`},
		{"fluentps shapes 1", "fluentps shapes 2",
			`net.shapes:1: version "2" of the form is not known, this program reads 1; write the file again`},
		{"model net\n", "", `net.shapes:2: "scratch 8 16" stands before the line model NAME`},
		{"model net", "model a net", "net.shapes:2: model has 2 values, need 1: model NAME"},
		{"scratch 8 16", "model net", "net.shapes:3: the line model is there twice"},
		{"scratch 8 16", "scratch 8 -1", `net.shapes:3: scratch of a sample is "-1", need a whole number from 0 to`},
		{"compute 1ms 10us", "compute 1 10us", `net.shapes:4: compute is "1", need a time from 0s to 86400s, such as 250us`},
		{"layer fc1", "layers fc1", `net.shapes:5: "layers" is not known; a line begins with model, scratch, compute, layer, param, stat or end`},
		{"layer fc1\n", "", "net.shapes:5: param fc1.weight stands before the first line layer NAME"},
		{"layer norm", "layer fc1", "net.shapes:8: layer fc1 is there twice: give each layer a name of its own"},
		{"layer norm", "layer empty\nlayer norm", "net.shapes:9: layer empty has no parameters, need at least 1: leave the layer out"},
		{"param fc1.bias 3", "param fc1.weight 3", "net.shapes:7: parameter fc1.weight is there twice"},
		{"3x2 fan 2", "3x0 fan 2", "net.shapes:6: parameter fc1.weight has the shape 3x0, need dimensions of at least 1 " +
			"whose product is at most 2147483647: split the parameter"},
		{"3x2 fan 2", "70000x70000", "net.shapes:6: parameter fc1.weight has the shape 70000x70000, need dimensions"},
		{"3x2 fan 2", "3,2 fan 2", `net.shapes:6: a dimension of fc1.weight is "3,2", need a whole number from 0 to 2147483647`},
		{"3x2 fan 2", "3x2 fan", "net.shapes:6: param has 3 values, need a name, a shape, and pairs"},
		{"3x2 fan 2", "3x2 fan 2 fan 3", "net.shapes:6: fan is given twice for fc1.weight"},
		{"3x2 fan 2", "3x2 fun 2", `net.shapes:6: "fun" behind the shape of fc1.weight is not known; choose fan, start or row`},
		{"3x2 fan 2", "3x2 fan 2 start 1", "net.shapes:6: parameter fc1.weight has the fan 2 and the start 1; need one of them"},
		{"start 1", "start x", `net.shapes:9: start of norm.scale is "x", need a number in float32`},
		{"start 1", "start nan", "net.shapes:9: parameter norm.scale starts with NaN, need a finite number"},
		{"row 4", "row 5", "net.shapes:11: parameter table has rows of 5 of its 24 elements, need a number that divides them"},
		{"end 5 39", "end 5 38", "net.shapes:12: end says 5 parameters of 38 elements, but the lines above have 5 of 39: " +
			"lines were lost or added"},
		{"end 5 39\n", "", "net.shapes:12: the file ends without a line end PARAMETERS ELEMENTS: it was cut short; write it again"},
		{"end 5 39\n", "end 5 39\nlayer more\n", `net.shapes:13: "layer more" stands behind the line end, which must be the last one`},
		{small, "", "net.shapes:1: the file is empty; its first line must be"},
		{"model net", "model " + strings.Repeat("x", 201), "net.shapes:2: the model has a name of 201 bytes"},
		{"model net", "model " + strings.Repeat("x", lineBytesMax), "net.shapes:2: the line is longer than 4096 bytes"},
		{"model net", "model n\x01t", `net.shapes:2: the model has the name "n\x01t", which has spaces or characters that cannot be printed`},
	} {
		if !strings.Contains(small, c.old) {
			t.Fatalf("%q is not in the file", c.old)
		}
		_, err := Read("net.shapes", strings.NewReader(strings.Replace(small, c.old, c.by, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q for %q: %v, want %q", c.by, c.old, err, c.want)
		}
	}
}

// What no run can take is not written.
func TestAFileIsNotWrittenOf(t *testing.T) {
	one := []Param{{Name: "w", Shape: []int{2}}}
	for want, a := range map[string]*Architecture{
		"has no layers":                     New("net", nil),
		"the model has no name":             New("", []Layer{{"a", one}}),
		"layer a has no parameters":         New("net", []Layer{{"a", nil}}),
		"parameter w is there twice":        New("net", []Layer{{"a", one}, {"b", one}}),
		"parameter w has 0 dimensions":      New("net", []Layer{{"a", []Param{{Name: "w"}}}}),
		"a parameter has the name \"a b\"":  New("net", []Layer{{"a", []Param{{Name: "a b", Shape: []int{1}}}}}),
		"parameter w has the fan -1":        New("net", []Layer{{"a", []Param{{Name: "w", Shape: []int{1}, Fan: -1}}}}),
		"parameter w has the shape 65536x6": New("net", []Layer{{"a", []Param{{Name: "w", Shape: []int{65536, 65536}}}}}),
	} {
		if err := a.Write(new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", a, err, want)
		}
	}
}

// The text of a file has no meaning beyond its lines: no input makes the reader panic, and what it takes it can write again.
func FuzzRead(f *testing.F) {
	f.Add(small)
	f.Add(strings.ReplaceAll(small, " ", "\t"))
	f.Fuzz(func(t *testing.T, text string) {
		a, err := Read("f", strings.NewReader(text))
		if err != nil {
			return
		}
		b, err := Read("f", strings.NewReader(written(t, a)))
		if err != nil || !reflect.DeepEqual(a, b) {
			t.Fatalf("%+v became %+v: %v", a, b, err)
		}
	})
}
