package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"math"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// value draws what a run may record: ordinary numbers, none, and the ends of the range.
var value = rapid.OneOf(rapid.Float64Range(-10, 10), rapid.Float64(),
	rapid.SampledFrom([]float64{0, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, -math.MaxFloat64,
		math.SmallestNonzeroFloat64, 1e100, -1e100, 1e-300}))

// text draws names that are hostile in some form.
var text = rapid.OneOf(rapid.String(),
	rapid.SampledFrom([]string{"", "<script>alert(1)</script>", `"><img src=x onerror=alert(1)>`, "]]>", "&amp;",
		"a\x00b\x1b[2J", "\xff\xfe", "\u202eabc", "<![CDATA[", "--><svg onload=alert(1)>", strings.Repeat("模", 90)}))

var points = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Point { return Point{value.Draw(t, "x"), value.Draw(t, "y")} }), 0, 40)

func drawXY(t *rapid.T) *XY {
	c := &XY{ID: "a", Title: text.Draw(t, "title"), Desc: text.Draw(t, "desc"), XLabel: text.Draw(t, "x label"),
		YLabel: text.Draw(t, "y label"),
		WholeX: rapid.Bool().Draw(t, "whole"), ZeroY: rapid.Bool().Draw(t, "zero"), Bars: rapid.Bool().Draw(t, "bars"),
		Goal: value.Draw(t, "goal"), GoalLabel: text.Draw(t, "goal label")}
	for i := range rapid.IntRange(0, 12).Draw(t, "lines") {
		c.Lines = append(c.Lines,
			Line{Label: text.Draw(t, "label"), Style: i, Points: points.Draw(t, "points"),
				Marked: rapid.Bool().Draw(t, "marked"), Thin: rapid.Bool().Draw(t, "thin")})
	}
	return c
}

func drawStrips(t *rapid.T) *Strips {
	c := &Strips{ID: "a", Title: text.Draw(t, "title"), Desc: text.Draw(t, "desc"), XLabel: text.Draw(t, "x label")}
	for k := range rapid.IntRange(1, 5).Draw(t, "kinds") {
		c.Kinds = append(c.Kinds, Kind{Label: text.Draw(t, "kind"), Style: rapid.IntRange(-1, 9).Draw(t, "style"), Hatch: k % 4})
	}
	for range rapid.IntRange(0, 6).Draw(t, "rows") {
		r := Row{Label: text.Draw(t, "label"), Note: text.Draw(t, "note")}
		for range rapid.IntRange(0, 6).Draw(t, "bars") {
			r.Bars = append(r.Bars, Bar{value.Draw(t, "from"), value.Draw(t, "to"), rapid.IntRange(-1, 6).Draw(t, "kind")})
		}
		c.Rows = append(c.Rows, r)
	}
	if rapid.Bool().Draw(t, "window") {
		c.From, c.To = value.Draw(t, "first"), value.Draw(t, "last")
	}
	return c
}

// Any data give a file that a strict parser accepts, whose coordinates are numbers in the picture, and that refers to nothing outside.
func TestAnyChartIsWellFormed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s *Scene
		if rapid.Bool().Draw(t, "strips") {
			s = drawStrips(t).Scene()
		} else {
			s = drawXY(t).Scene()
		}
		checkSVG(t, s.File(), s.Width, s.Height)
	})
}

type failer interface {
	Helper()
	Fatalf(string, ...any)
}

var allowed = map[string]string{"svg": "xmlns class width height viewBox role aria-labelledby", "title": "id", "desc": "id", "style": "",
	"path": "class stroke-width stroke-dasharray d opacity", "text": "class x y font-size font-weight text-anchor textLength lengthAdjust"}

// checkSVG fails for what no chart has: other elements or attributes, and paths that leave the picture.
func checkSVG(t failer, file []byte, width, height float64) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(file))
	titles := 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, file)
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		attributes, known := allowed[e.Name.Local]
		if !known {
			t.Fatalf("an element %s\n%s", e.Name.Local, file)
		}
		if e.Name.Local == "title" {
			titles++
		}
		for _, a := range e.Attr {
			if !strings.Contains(" "+attributes+" ", " "+a.Name.Local+" ") {
				t.Fatalf("an attribute %s of %s\n%s", a.Name.Local, e.Name.Local, file)
			}
			if a.Name.Local == "d" {
				checkPath(t, a.Value, width, height)
			}
		}
	}
	if titles != 1 {
		t.Fatalf("%d titles", titles)
	}
	if rest := strings.Replace(string(file), `xmlns="http://www.w3.org/2000/svg"`, "",
		1); strings.Contains(styleOf(rest), "url(") || strings.Contains(styleOf(rest), "@import") {
		t.Fatalf("the style refers to something outside\n%s", file)
	}
}

func styleOf(file string) string {
	_, rest, _ := strings.Cut(file, "<style>")
	style, _, _ := strings.Cut(rest, "</style>")
	return style
}

var pathForm = regexp.MustCompile(`^(M-?[0-9.]+ -?[0-9.]+(L-?[0-9.]+ -?[0-9.]+( -?[0-9.]+ -?[0-9.]+)*)?Z?)+$`)

func checkPath(t failer, d string, width, height float64) {
	t.Helper()
	if !pathForm.MatchString(d) {
		t.Fatalf("a path %q", d)
	}
	numbers := strings.FieldsFunc(d, func(r rune) bool { return strings.ContainsRune("MLZ ", r) })
	for i, text := range numbers {
		var v float64
		if _, err := fmt.Sscan(text, &v); err != nil {
			t.Fatalf("a coordinate %q", text)
		}
		if most := [2]float64{width, height}[i%2]; v < -8 || v > most+8 {
			t.Fatalf("a coordinate %v outside of %v x %v", v, width, height)
		}
	}
}

// The PNG has the size of the scene, and draws something.
func TestPNG(t *testing.T) {
	scenes := rapid.Custom(func(t *rapid.T) *Scene {
		if rapid.Bool().Draw(t, "strips") {
			return drawStrips(t).Scene()
		}
		return drawXY(t).Scene()
	})
	for seed := range 10 { // painting is slow
		s := scenes.Example(seed)
		data, err := s.PNG()
		if err != nil {
			t.Fatalf("%v", err)
		}
		img, err := png.Decode(bytes.NewReader(data))
		if err != nil {
			t.Fatalf("%v", err)
		}
		if b := img.Bounds(); b.Dx() != int(math.Ceil(s.Width*density)) || b.Dy() != int(math.Ceil(s.Height*density)) {
			t.Fatalf("%v for %v x %v", b, s.Width, s.Height)
		}
	}
}

// A line is seen where its points are, and not elsewhere.
func TestALineIsPaintedWhereItIs(t *testing.T) {
	s := &Scene{Width: 20, Height: 20}
	s.line(Series(0), 2, nil, []Point{{2, 10}, {18, 10}})
	s.area(Series(1), box(5, 15, 8, 18))
	data, err := s.PNG()
	if err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[Point]Color{{10, 10}: Series(0), {10, 12}: Paper, {1, 10}: Paper, {6.5, 16.5}: Series(1), {9, 16.5}: Paper} {
		if got := img.At(int(at.X*density), int(at.Y*density)); got != light[want] {
			t.Errorf("%v is %v, want %v", at, got, light[want])
		}
	}
}

func TestManyPointsAreThinned(t *testing.T) {
	var many []Point
	for i := range 10000 {
		y := 0.0
		if i == 4321 {
			y = 7
		}
		if i == 8765 {
			y = -7
		}
		many = append(many, Point{float64(i), y})
	}
	kept := thinned(many)
	lo, hi := 0.0, 0.0
	for i, p := range kept {
		lo, hi = math.Min(lo, p.Y), math.Max(hi, p.Y)
		if i > 0 && p.X <= kept[i-1].X {
			t.Fatalf("point %d does not follow %d", i, i-1)
		}
	}
	if len(kept) > pointsMax || lo != -7 || hi != 7 || kept[0] != many[0] || kept[len(kept)-1] != many[9999] {
		t.Errorf("%d points, %v to %v", len(kept), lo, hi)
	}
	s := (&XY{ID: "a", Lines: []Line{{Points: many}}}).Scene()
	if n := len(s.File()); n > 30000 {
		t.Errorf("%d bytes", n)
	}
}

// Ticks are inside the axis, rise, and are few; their texts differ.
func TestTicks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lo, hi := rapid.Float64Range(-1e9, 1e9).Draw(t, "lo"), rapid.Float64Range(-1e9, 1e9).Draw(t, "hi")
		a := newAxis(math.Min(lo, hi), math.Max(lo, hi), 5, rapid.Bool().Draw(t, "whole"), rapid.Bool().Draw(t, "tight"))
		a.from, a.to = 0, 100
		ticks := a.ticks()
		if len(ticks) > 21 {
			t.Fatalf("%d ticks", len(ticks))
		}
		for i, v := range ticks {
			if at := a.at(v); at < -1e-3 || at > 100+1e-3 {
				t.Fatalf("tick %v of %v..%v at %v", v, a.lo, a.hi, at)
			}
			if i > 0 && v <= ticks[i-1] {
				t.Fatalf("ticks %v", ticks)
			}
		}
	})
	for _, c := range []struct {
		v, step float64
		want    string
	}{{0, 1, "0"}, {0.5, 0.1, "0.5"}, {20, 10, "20"}, {30000, 10000, "30k"}, {1.5e6, 5e5, "1.5M"}, {0.88, 0.02, "0.88"},
		{2e-5, 1e-5, "2e-05"}} {
		if got := number(c.v, c.step); got != c.want {
			t.Errorf("%v: %s, want %s", c.v, got, c.want)
		}
	}
}

// contrast is that of WCAG 2.
func contrast(a, b [3]float64) float64 {
	luminance := func(c [3]float64) float64 {
		for i, v := range c {
			if v /= 255; v <= 0.03928 {
				c[i] = v / 12.92
			} else {
				c[i] = math.Pow((v+0.055)/1.055, 2.4)
			}
		}
		return 0.2126*c[0] + 0.7152*c[1] + 0.0722*c[2]
	}
	x, y := luminance(a), luminance(b)
	return (math.Max(x, y) + 0.05) / (math.Min(x, y) + 0.05)
}

// Text has a contrast of 4.5 to the paper, and data of 3, in both themes.
func TestContrast(t *testing.T) {
	for name, th := range map[string]theme{"light": light, "dark": dark} {
		part := func(c Color) [3]float64 { return [3]float64{float64(th[c].R), float64(th[c].G), float64(th[c].B)} }
		for c := range th {
			want := 3.0
			switch Color(c) {
			case Ink, Muted:
				want = 4.5
			case Grid, Paper:
				continue
			}
			if got := contrast(part(Color(c)), part(Paper)); got < want {
				t.Errorf("%s %s has a contrast of %.2f, must be %.1f", name, roleName(Color(c)), got, want)
			}
		}
	}
}

// Every text stays inside its picture, and names that differ are not cut until they are equal: long ones stand above their bars.
func TestTextsStayInside(t *testing.T) {
	long := []string{"train.optimizer.momentum=0.9 drop required=3 lr=0.1", "train.optimizer.momentum=0.9 drop required=3 lr=0.2"}
	for i, name := range long {
		long[i] = Fit(name, NameWidth)
	}
	if long[0] == long[1] {
		t.Fatalf("equal names %q", long)
	}
	c := &Strips{ID: "a", Title: "a", XLabel: "bytes", Kinds: []Kind{{Label: "k"}},
		Rows: []Row{{long[0], Stacked([]float64{1}), "1.5 GiB"}, {long[1], Stacked([]float64{2}), "1,234,567"}}}
	for i, name := range long {
		if !strings.Contains(c.Scene().SVG(), ">"+name+"<") {
			t.Errorf("name %d is not whole in\n%s", i, c.Scene().SVG())
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		var s *Scene
		if rapid.Bool().Draw(t, "strips") {
			s = drawStrips(t).Scene()
		} else {
			s = drawXY(t).Scene()
		}
		for _, q := range s.shapes {
			w := textWidth(q.text, q.size)
			from := q.at.X - map[align]float64{left: 0, middle: w / 2, right: w}[q.align]
			if from < -1e-9 || from+w > s.Width+1e-9 || q.at.Y-q.size < 0 || q.at.Y > s.Height-3 {
				t.Fatalf("%q from %v to %v at %v in %v x %v", q.text, from, from+w, q.at.Y, s.Width, s.Height)
			}
		}
	})
}
