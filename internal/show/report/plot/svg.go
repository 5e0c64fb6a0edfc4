package plot

import (
	"encoding/xml"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// SVG is the scene as an element for an HTML document that has Style.
func (s *Scene) SVG() string { return s.svg("") }

// File is the scene as an SVG file of its own.
func (s *Scene) File() []byte {
	return []byte(`<?xml version="1.0" encoding="UTF-8"?>` + "\n" + s.svg("<style>"+Style()+"</style>") + "\n")
}

func (s *Scene) svg(style string) string {
	var b strings.Builder
	size := ""
	if style != "" { // a file of its own has a size; in a document the style sheet gives it
		size = fmt.Sprintf(` width="%s" height="%s"`, coordinate(s.Width), coordinate(s.Height))
	}
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" class="plot"%s viewBox="0 0 %s %s" role="img" aria-labelledby="%s-t %s-d">`,
		size, coordinate(s.Width), coordinate(s.Height), s.ID, s.ID)
	fmt.Fprintf(&b, `<title id="%s-t">%s</title><desc id="%s-d">%s</desc>%s`+"\n", s.ID, escaped(s.Title), s.ID, escaped(s.Desc), style)
	for i := range s.shapes {
		s.shapes[i].svg(&b)
	}
	b.WriteString("</svg>")
	return b.String()
}

func (q *shape) svg(b *strings.Builder) {
	faint := ""
	if q.faint > 0 {
		faint = fmt.Sprintf(` opacity="%s"`, coordinate(q.faint))
	}
	switch {
	case q.areas != nil:
		fmt.Fprintf(b, `<path class="f %s"%s d="%s"/>`+"\n", roleName(q.color), faint, outline(q.areas, true))
	case q.lines != nil:
		dash := ""
		for i, d := range q.dash {
			if i > 0 {
				dash += " "
			}
			dash += coordinate(d)
		}
		if dash != "" {
			dash = ` stroke-dasharray="` + dash + `"`
		}
		fmt.Fprintf(b, `<path class="l %s" stroke-width="%s"%s%s d="%s"/>`+"\n", roleName(q.color), coordinate(q.width),
			dash, faint, outline(q.lines, false))
	default:
		anchor := [...]string{left: "", middle: ` text-anchor="middle"`, right: ` text-anchor="end"`}[q.align]
		weight := ""
		if q.bold {
			weight = ` font-weight="600"`
		}
		length := ""
		if stretched(q.text) {
			length = fmt.Sprintf(` textLength="%s" lengthAdjust="spacingAndGlyphs"`, coordinate(textWidth(q.text, q.size)))
		}
		fmt.Fprintf(b, `<text class="%s" x="%s" y="%s" font-size="%s"%s%s%s>%s</text>`+"\n",
			roleName(q.color), coordinate(q.at.X), coordinate(q.at.Y), coordinate(q.size), weight, anchor, length, escaped(q.text))
	}
}

// outline is the data of an SVG path.
func outline(parts [][]Point, closed bool) string {
	var b strings.Builder
	for _, points := range parts {
		for i, p := range points {
			switch i {
			case 0:
				b.WriteByte('M')
			case 1:
				b.WriteByte('L')
			default:
				b.WriteByte(' ')
			}
			b.WriteString(coordinate(p.X) + " " + coordinate(p.Y))
		}
		if closed {
			b.WriteByte('Z')
		}
	}
	return b.String()
}

// coordinate has two digits: a hundredth of a pixel cannot be seen.
func coordinate(v float64) string {
	return strconv.FormatFloat(math.Round(v*100)/100+0, 'f', -1, 64)
}

// escaped makes a text safe in XML and HTML, in attributes too.
func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(visible(text))) // a Builder accepts every write
	return b.String()
}
