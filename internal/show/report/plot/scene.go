// Package plot draws charts: lines, histograms, and rows of bars. A chart becomes a scene of a few kinds of shapes, and a scene is
// written as SVG or painted as PNG, so both show the same.
//
// The package is pure: data in, bytes out. The bytes depend on nothing else. Any number may be given: values that are not finite
// leave a gap.
package plot

import (
	"math"
	"strings"
	"unicode/utf8"
)

// Color is the part that a shape plays. The theme says which color that is.
type Color int

// The colors of text and frame. Series(i) and Kind(i) are the colors of data.
const (
	Ink   Color = iota // titles
	Muted              // numbers on axes, legends
	Grid
	Paper // the background
	firstSeries
)

// seriesColors is the number of colors of data. More series differ by their dashes and markers.
const seriesColors = 8

// Series is the color of the i-th series.
func Series(i int) Color { return firstSeries + Color(i%seriesColors) }

// Point is a place in a scene. y grows downwards.
type Point struct{ X, Y float64 }

// Scene is a picture of Width x Height units, which are CSS pixels.
type Scene struct {
	ID            string // unique in a document; letters, digits, '-'
	Title, Desc   string // what is seen, for those who cannot see it
	Width, Height float64

	shapes []shape
}

// shape is a line, an area or a text. Exactly one of lines, areas and text is set.
type shape struct {
	color Color
	lines [][]Point // each is drawn as one stroke
	width float64
	dash  []float64
	areas [][]Point // filled polygons
	faint float64   // 0: opaque; else the opacity
	text  string
	at    Point
	size  float64
	bold  bool
	align align
}

type align int

const (
	left align = iota
	middle
	right
)

func (s *Scene) line(c Color, width float64, dash []float64, points ...[]Point) {
	if len(points) > 0 {
		s.shapes = append(s.shapes, shape{color: c, width: width, dash: dash, lines: points})
	}
}

func (s *Scene) area(c Color, polygons ...[]Point) {
	if len(polygons) > 0 {
		s.shapes = append(s.shapes, shape{color: c, areas: polygons})
	}
}

func (s *Scene) write(c Color, size float64, bold bool, a align, at Point, text string) {
	s.shapes = append(s.shapes, shape{color: c, size: size, bold: bold, align: a, at: at, text: text})
}

// box is a rectangle as a polygon.
func box(x0, y0, x1, y1 float64) []Point {
	return []Point{{x0, y0}, {x1, y0}, {x1, y1}, {x0, y1}}
}

// The look of all charts: a chart is as wide as the screen of a telephone, so its text is readable there. Wide pages show several
// charts side by side.
const (
	width      = 400.0
	titleSize  = 14.0
	textSize   = 12.0
	lineHeight = 17.0
	padding    = 8.0
)

// NameWidth is the width of the longest name of a series: it fits into a legend, and above a row of bars.
const NameWidth = (width - 2*padding - sampleWidth - 6) / 1.04

// sampleWidth is the room for the sample before a name in a legend.
const sampleWidth = 30.0

// TextWidth is the width of a name in a chart.
func TextWidth(name string) float64 { return textWidth(visible(name), textSize) }

// Fit shortens a name of a chart to a width, and replaces what no picture may hold.
func Fit(name string, most float64) string { return fit(visible(name), textSize, most) }

// textWidth estimates the width of a text in a sans-serif font. It is rather too large than too small: the widths are those of DejaVu Sans,
// the widest font that pages ask for. Texts in other scripts are drawn as wide as this says (see stretched).
func textWidth(text string, size float64) float64 {
	w := 0.0
	for _, r := range text {
		switch {
		case r >= 0x1100 || strings.ContainsRune("…—WM@%mw", r):
			w += 1
		case strings.ContainsRune("=+<>~#×±_^|", r):
			w += 0.84
		case strings.ContainsRune("iljtfrI.,:;'! ()[]-/\\", r):
			w += 0.42
		case r >= 'A' && r <= 'Z' || r >= 0x80:
			w += 0.79
		default:
			w += 0.64
		}
	}
	return w * size
}

// stretched says whether a text is of characters whose width nobody can tell without the font of the reader.
func stretched(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r >= 0x250 && (r < 0x2010 || r > 0x2026) })
}

// fit shortens a text to a width. It keeps both ends, because names differ there.
func fit(text string, size, most float64) string {
	if textWidth(text, size) <= most {
		return text
	}
	runes := []rune(text)
	for n := len(runes) - 1; n > 2; n-- {
		head := n / 2
		if cut := string(runes[:head]) + "…" + string(runes[len(runes)-(n-head):]); textWidth(cut, size) <= most {
			return cut
		}
	}
	return "…"
}

// visible replaces what a text must not hold in a picture: control characters, broken UTF-8, marks that turn the direction of writing.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r < ' ', r >= 0x7f && r < 0xa0, r == utf8.RuneError, r >= 0x200b && r <= 0x200f, r >= 0x2028 && r <= 0x202e,
			r >= 0x2060 && r <= 0x206f, r == 0xfeff, r >= 0xfff0 && r <= 0xffff:
			return '\ufffd'
		}
		return r
	}, strings.ToValidUTF8(text, "\ufffd"))
}

// largest is the largest size of a value that is drawn. Values beyond it would overflow when a range is computed.
const largest = 1e100

// drawable says whether a value has a place in a chart.
func drawable(v float64) bool { return math.Abs(v) <= largest }
