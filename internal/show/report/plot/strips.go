package plot

import "math"

// Strips is a chart of rows of bars: shares of a whole, or what happened when.
type Strips struct {
	ID, Title, Desc string
	XLabel          string
	From, To        float64 // of the axis; both 0: from 0 to the end of the longest row
	Kinds           []Kind
	Rows            []Row
}

// Kind is what a bar means.
type Kind struct {
	Label string
	Style int // the color: 0, 1, 2, ...; negative: without one, as a frame
	Hatch int // 0: plain; else lines across: 1 rising, 2 falling, 3 upright
}

// Row is one row of bars.
type Row struct {
	Label string
	Bars  []Bar
	Note  string // behind the last bar
}

// Bar is one bar. A bar whose ends are not finite is left out.
type Bar struct {
	From, To float64
	Kind     int // index of Kinds
}

const (
	rowHeight = 20.0
	rowGap    = 7.0
)

// Stacked lays values end to end. Values[k] is of kind k; what is not a positive number takes no room.
func Stacked(values []float64) (bars []Bar) {
	at := 0.0
	for k, v := range values {
		if v > 0 && drawable(v) {
			bars = append(bars, Bar{at, at + v, k})
			at += v
		}
	}
	return bars
}

// Scene lays the chart out.
func (c *Strips) Scene() *Scene {
	s := &Scene{ID: c.ID, Title: c.Title, Desc: c.Desc, Width: width}
	top := s.head(c.Title, c.legend()) + 2
	labels, notes := c.texts()
	rise := rowHeight + rowGap // from row to row
	above := labels > labelsMax*width
	if above { // names that need the whole width stand above their bars
		labels, rise = 0, rise+lineHeight
	}
	bottom := top + math.Max(1, float64(len(c.Rows)))*rise
	s.Height = bottom + 2*lineHeight + 6
	lo, hi := c.bounds()
	if len(c.Rows) == 0 || !apart(lo, hi) {
		s.write(Muted, textSize, false, middle, Point{width / 2, (top + bottom) / 2}, "nothing was recorded")
		return s
	}
	x := newAxis(lo, hi, 5, false, true)
	x.from, x.to = padding+labels+7, width-padding-6
	if notes > 0 {
		x.to -= notes + 4
	}
	s.across(x, bottom, top-2)
	s.below(x, bottom, c.XLabel)
	parts := make([][][]Point, len(c.Kinds))
	for i, r := range c.Rows {
		y := top + float64(i)*rise
		if above {
			y += lineHeight
			s.write(Muted, textSize, false, left, Point{padding, y - 5}, fit(visible(r.Label), textSize, width-2*padding))
		} else {
			s.write(Muted, textSize, false, right, Point{x.from - 6, y + rowHeight/2 + 4}, visible(r.Label))
		}
		end := x.from
		for _, b := range r.Bars {
			if !drawable(b.From) || !drawable(b.To) || b.Kind < 0 || b.Kind >= len(c.Kinds) {
				continue
			}
			from, to := x.at(math.Max(b.From, lo)), x.at(math.Min(b.To, hi))
			if to > from {
				parts[b.Kind] = append(parts[b.Kind], box(from, y, to, y+rowHeight))
				end = math.Max(end, to)
			}
		}
		if r.Note != "" {
			s.write(Muted, textSize, false, left, Point{end + 5, y + rowHeight/2 + 4}, fit(visible(r.Note), textSize, notes))
		}
	}
	for k, boxes := range parts {
		c.Kinds[k].fill(s, boxes)
	}
	return s
}

// labelsMax and notesMax are the parts of the width that names beside bars and notes behind them may take.
const (
	labelsMax = 0.36
	notesMax  = 0.2
)

// texts are the widths of the longest name and of the longest note.
func (c *Strips) texts() (labels, notes float64) {
	for _, r := range c.Rows {
		labels = math.Max(labels, textWidth(visible(r.Label), textSize))
		notes = math.Max(notes, textWidth(visible(r.Note), textSize))
	}
	return labels, math.Min(notes, notesMax*width)
}

func (c *Strips) bounds() (lo, hi float64) {
	if (c.From != 0 || c.To != 0) && drawable(c.From) && drawable(c.To) {
		return c.From, c.To
	}
	for _, r := range c.Rows {
		for _, b := range r.Bars {
			if drawable(b.To) {
				hi = math.Max(hi, b.To)
			}
		}
	}
	return 0, hi
}

func (c *Strips) legend() (entries []entry) {
	used := map[int]bool{}
	for _, r := range c.Rows {
		for _, b := range r.Bars {
			used[b.Kind] = true
		}
	}
	for k := range c.Kinds {
		if used[k] && len(c.Kinds) > 1 {
			entries = append(entries, entry{c.Kinds[k].Label, func(s *Scene, at Point) {
				c.Kinds[k].fill(s, [][]Point{box(at.X, at.Y-6, at.X+25, at.Y+6)})
			}})
		}
	}
	return entries
}

// fill draws boxes of a kind.
func (k *Kind) fill(s *Scene, boxes [][]Point) {
	if len(boxes) == 0 {
		return
	}
	if k.Style < 0 {
		var frames [][]Point
		for _, b := range boxes {
			frames = append(frames, append(append([]Point(nil), b...), b[0]))
		}
		s.line(Muted, 1, nil, frames...)
	} else {
		s.area(Series(k.Style), boxes...)
	}
	if k.Hatch == 0 {
		return
	}
	var strokes [][]Point
	for _, b := range boxes {
		strokes = append(strokes, hatched(b[0], b[2], k.Hatch)...)
	}
	s.line(Paper, 1.3, nil, strokes...)
}

// hatched are the strokes inside a box.
func hatched(lo, hi Point, kind int) (strokes [][]Point) {
	const gap = 5.0
	h := hi.Y - lo.Y
	slope := h // how far a stroke moves to the right from the bottom to the top
	switch kind {
	case 2:
		slope = -h
	case 3:
		slope = 0
	}
	// x is where the stroke meets the bottom. Strokes keep to a grid of the whole picture, so that neighbours join.
	for x := math.Ceil((lo.X-math.Max(slope, 0))/gap) * gap; x < hi.X-math.Min(slope, 0); x += gap {
		a, b := 0.0, 1.0 // the part of the stroke that is inside
		if slope != 0 {
			t0, t1 := (lo.X-x)/slope, (hi.X-x)/slope
			a, b = math.Max(a, math.Min(t0, t1)), math.Min(b, math.Max(t0, t1))
		} else if x <= lo.X {
			continue
		}
		if b-a > 0.05 {
			strokes = append(strokes, []Point{{x + a*slope, hi.Y - a*h}, {x + b*slope, hi.Y - b*h}})
		}
	}
	return strokes
}
