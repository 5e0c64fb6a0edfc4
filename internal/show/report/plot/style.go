package plot

import (
	"fmt"
	"image/color"
	"strings"
)

// theme has a color for each Color.
type theme [int(firstSeries) + seriesColors]color.RGBA

func rgb(hex uint32) color.RGBA {
	return color.RGBA{uint8(hex >> 16), uint8(hex >> 8), uint8(hex), 255}
}

// The colors of data are those of Okabe and Ito (Color Universal Design, 2008), which stay apart for color-blind readers. Those that
// are too pale on white, or too dark on black, have another lightness of the same hue: each has a contrast of at least 3 to its paper.
var (
	light = theme{rgb(0x1b1f24), rgb(0x57606a), rgb(0xd8dee4), rgb(0xffffff),
		rgb(0x0072b2), rgb(0xd55e00), rgb(0x009e73), rgb(0xb8558f), rgb(0xb07800), rgb(0x3a8fc4), rgb(0x3b3b3b), rgb(0x8c7f00)}
	dark = theme{rgb(0xf0f3f6), rgb(0xa6b0ba), rgb(0x353c45), rgb(0x14171b),
		rgb(0x4da6e0), rgb(0xff8c42), rgb(0x2ec99a), rgb(0xe39ac4), rgb(0xf0b030), rgb(0xa3d8f7), rgb(0xd9dde2), rgb(0xf0e442)}
)

// dashes and markers tell series apart without color. Their numbers have no common factor, so that pairs repeat late.
var dashes = [][]float64{nil, {7, 3}, {2, 2.5}, {9, 3, 2, 3}, {4, 2, 4, 2, 1, 2}}

const markers = 7

// marker is a small polygon around a point.
func marker(kind int, at Point, r float64) []Point {
	var shape []Point
	switch kind % markers {
	case 0: // a circle, as far as one sees
		shape = []Point{{0, -1}, {.71, -.71}, {1, 0}, {.71, .71}, {0, 1}, {-.71, .71}, {-1, 0}, {-.71, -.71}}
	case 1:
		shape = box(-.85, -.85, .85, .85)
	case 2:
		shape = []Point{{0, -1.15}, {1.05, .8}, {-1.05, .8}}
	case 3:
		shape = []Point{{0, -1.25}, {1.25, 0}, {0, 1.25}, {-1.25, 0}}
	case 4:
		shape = []Point{{0, 1.15}, {1.05, -.8}, {-1.05, -.8}}
	case 5: // a plus
		shape = []Point{{-.4, -1.2}, {.4, -1.2}, {.4, -.4}, {1.2, -.4}, {1.2, .4}, {.4, .4}, {.4, 1.2}, {-.4, 1.2},
			{-.4, .4}, {-1.2, .4}, {-1.2, -.4}, {-.4, -.4}}
	default: // an upright bar
		shape = box(-.45, -1.3, .45, 1.3)
	}
	for i, p := range shape {
		shape[i] = Point{at.X + p.X*r, at.Y + p.Y*r}
	}
	return shape
}

// roleNames are the names of the colors in style sheets.
func roleName(c Color) string {
	if c >= firstSeries {
		return fmt.Sprintf("s%d", c-firstSeries)
	}
	return [...]string{"ink", "muted", "grid", "paper"}[c]
}

func (t theme) variables() string {
	var b strings.Builder
	for c, v := range t {
		fmt.Fprintf(&b, "--%s:#%02x%02x%02x;", roleName(Color(c)), v.R, v.G, v.B)
	}
	return b.String()
}

// Style is the style sheet of all charts, for light and dark screens and for paper. A document has it once; its own rules may use the
// variables --ink, --muted, --grid, --paper and --s0 to --s7.
func Style() string {
	var b strings.Builder
	fmt.Fprintf(&b, ":root{color-scheme:light dark;%s}\n", light.variables())
	fmt.Fprintf(&b, "@media screen and (prefers-color-scheme:dark){:root{%s}}\n", dark.variables())
	b.WriteString("svg.plot{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',Arial,sans-serif;background:var(--paper)}\n" +
		"svg.plot text{fill:currentColor}svg.plot " +
		".l{fill:none;stroke:currentColor;stroke-linejoin:round;stroke-linecap:butt}svg.plot .f{fill:currentColor}\n")
	for c := range light {
		fmt.Fprintf(&b, "svg.plot .%s{color:var(--%s)}", roleName(Color(c)), roleName(Color(c)))
	}
	return b.String() + "\n"
}
