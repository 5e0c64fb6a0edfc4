package plot

import "math"

// Line is one series of a chart. Points with a coordinate that is not finite, or beyond 1e100, leave a gap.
type Line struct {
	Label  string // lines of one label share one entry in the legend
	Style  int    // color, dash and marker: 0, 1, 2, ...
	Points []Point
	Marked bool // a marker at each point, as far as there is room
	Thin   bool // one of many
}

// XY is a chart of lines. With Bars the points of the first line are columns of a histogram, BarWidth wide; others are drawn over them.
type XY struct {
	ID, Title, Desc string
	XLabel, YLabel  string
	WholeX          bool
	ZeroY           bool // the axis begins at 0
	Bars            bool
	BarWidth        float64 // in units of x; 0: each column is one whole number
	Goal            float64 // a horizontal mark; 0: none
	GoalLabel       string
	Lines           []Line
}

// Height of the area that data fill.
const dataHeight = 190.0

// pointsMax is the most points of a line that are drawn: more than two for each pixel cannot be seen.
const pointsMax = 600

// Scene lays the chart out. A chart without a point says so.
func (c *XY) Scene() *Scene {
	s := &Scene{ID: c.ID, Title: c.Title, Desc: c.Desc, Width: width}
	top := s.head(c.Title, c.legend())
	s.write(Muted, textSize, false, left, Point{padding, top + textSize}, fit(visible(c.YLabel), textSize, width-2*padding))
	top += lineHeight + 8
	bottom := top + dataHeight
	s.Height = bottom + 2*lineHeight + 6
	lo, hi, any := c.bounds()
	if !any {
		s.write(Muted, textSize, false, middle, Point{width / 2, top + dataHeight/2}, "nothing was recorded")
		return s
	}
	x := newAxis(lo.X, hi.X, 5, c.WholeX, true)
	if half := c.barWidth() / 2; c.Bars {
		x = newAxis(lo.X-half, hi.X+half, 6, c.BarWidth == 0, true)
	}
	y := newAxis(lo.Y, hi.Y, 5, false, false)
	margin := 0.0
	for _, v := range y.ticks() {
		margin = math.Max(margin, textWidth(number(v, y.step), textSize))
	}
	x.from, x.to = padding+margin+7, width-padding-6
	y.from, y.to = bottom, top
	c.frame(s, x, y)
	for i := range c.Lines {
		if i == 0 && c.Bars {
			c.columns(s, x, y)
			continue
		}
		c.Lines[i].draw(s, x, y)
	}
	c.goal(s, x, y)
	return s
}

// head writes title and legend, and returns where they end.
func (s *Scene) head(title string, entries []entry) float64 {
	s.write(Ink, titleSize, true, left, Point{padding, titleSize + 6}, fit(visible(title), titleSize, width-2*padding))
	x, y := padding, titleSize+6+lineHeight+2
	for i, e := range entries {
		text := fit(visible(e.label), textSize, NameWidth)
		w := sampleWidth + 1.04*textWidth(text, textSize) + 12
		if i > 0 && x+w > width {
			x, y = padding, y+lineHeight
		}
		e.draw(s, Point{x, y - 4})
		s.write(Muted, textSize, false, left, Point{x + sampleWidth, y}, text)
		x += w
	}
	if len(entries) == 0 {
		return titleSize + 14
	}
	return y + 8
}

// entry is one name of a legend with its sample.
type entry struct {
	label string
	draw  func(s *Scene, at Point)
}

func (c *XY) legend() (entries []entry) {
	seen := map[string]bool{}
	for i := range c.Lines {
		l := &c.Lines[i]
		if l.Label == "" || seen[l.Label] || len(c.Lines) == 1 {
			continue
		}
		seen[l.Label] = true
		if i == 0 && c.Bars {
			entries = append(entries, entry{l.Label, func(s *Scene, at Point) {
				s.area(Series(l.Style), box(at.X, at.Y-6, at.X+25, at.Y+6))
			}})
			continue
		}
		entries = append(entries, entry{l.Label, func(s *Scene, at Point) {
			s.line(Series(l.Style), 2, dashes[l.Style%len(dashes)], []Point{{at.X, at.Y}, {at.X + 25, at.Y}})
			if l.Marked {
				s.area(Series(l.Style), marker(l.Style, Point{at.X + 12.5, at.Y}, 3.4))
			}
		}})
	}
	return entries
}

// bounds are the smallest and the largest values that are drawn.
func (c *XY) bounds() (lo, hi Point, any bool) {
	lo, hi = Point{math.Inf(1), math.Inf(1)}, Point{math.Inf(-1), math.Inf(-1)}
	for i := range c.Lines {
		for _, p := range c.Lines[i].Points {
			if !drawable(p.X) || !drawable(p.Y) {
				continue
			}
			any = true
			lo = Point{math.Min(lo.X, p.X), math.Min(lo.Y, p.Y)}
			hi = Point{math.Max(hi.X, p.X), math.Max(hi.Y, p.Y)}
		}
	}
	if any && c.Goal != 0 && drawable(c.Goal) {
		lo.Y, hi.Y = math.Min(lo.Y, c.Goal), math.Max(hi.Y, c.Goal)
	}
	if c.ZeroY || c.Bars {
		lo.Y, hi.Y = math.Min(0, lo.Y), math.Max(0, hi.Y)
	}
	return lo, hi, any
}

// frame draws the grid, the axes and their numbers.
func (c *XY) frame(s *Scene, x, y axis) {
	var grid [][]Point
	for _, v := range y.ticks() {
		grid = append(grid, []Point{{x.from, y.at(v)}, {x.to, y.at(v)}})
		s.write(Muted, textSize, false, right, Point{x.from - 6, y.at(v) + 4}, number(v, y.step))
	}
	s.line(Grid, 1, nil, grid...)
	s.across(x, y.from, y.from)
	s.below(x, y.from, c.XLabel)
}

// goal draws the mark of the goal, over the lines.
func (c *XY) goal(s *Scene, x, y axis) {
	if c.Goal != 0 && drawable(c.Goal) {
		s.line(Muted, 1.2, []float64{3, 3}, []Point{{x.from, y.at(c.Goal)}, {x.to, y.at(c.Goal)}})
		label := fit(visible(c.GoalLabel), textSize-1, (x.to-x.from)/2)
		s.area(Paper, box(x.from+2, y.at(c.Goal)-16, x.from+8+textWidth(label, textSize-1), y.at(c.Goal)-2))
		s.write(Muted, textSize-1, false, left, Point{x.from + 4, y.at(c.Goal) - 5}, label)
	}
}

// below writes the label of an axis that is at y: under its middle, as far as the picture has room.
func (s *Scene) below(x axis, y float64, label string) {
	label = fit(visible(label), textSize, width-2*padding)
	half := textWidth(label, textSize) / 2
	at := math.Min(math.Max((x.from+x.to)/2, padding+half), width-padding-half)
	s.write(Muted, textSize, false, middle, Point{at, y + 2*lineHeight}, label)
}

// across draws an axis below data at place y, with lines up to top.
func (s *Scene) across(x axis, y, top float64) {
	s.line(Muted, 1, nil, []Point{{x.from, y}, {x.to, y}})
	var marks [][]Point
	last := math.Inf(-1)
	for _, v := range x.ticks() {
		text := number(v, x.step)
		half := textWidth(text, textSize) / 2
		marks = append(marks, []Point{{x.at(v), math.Min(y, top)}, {x.at(v), y + 4}})
		at := math.Min(math.Max(x.at(v), half+2), width-half-2)
		if at-half < last+4 {
			continue
		}
		last = at + half
		s.write(Muted, textSize, false, middle, Point{at, y + lineHeight}, text)
	}
	if top < y {
		s.line(Grid, 1, nil, marks...)
		return
	}
	s.line(Muted, 1, nil, marks...)
}

func (c *XY) barWidth() float64 {
	if c.BarWidth > 0 {
		return c.BarWidth
	}
	return 1
}

func (c *XY) columns(s *Scene, x, y axis) {
	var bars [][]Point
	half := math.Max(0.6, math.Min(20, 0.42*c.barWidth()*(x.to-x.from)/(x.hi-x.lo)))
	l := &c.Lines[0]
	for _, p := range l.Points {
		if drawable(p.X) && drawable(p.Y) && p.Y > 0 {
			bars = append(bars, box(x.at(p.X)-half, y.at(p.Y), x.at(p.X)+half, y.at(0)))
		}
	}
	s.area(Series(l.Style), bars...)
}

func (l *Line) draw(s *Scene, x, y axis) {
	width := 2.0
	if l.Thin {
		width = 1.2
	}
	var parts [][]Point
	var part []Point
	for _, p := range thinned(l.Points) {
		if !drawable(p.X) || !drawable(p.Y) {
			if len(part) > 0 {
				parts, part = append(parts, part), nil
			}
			continue
		}
		part = append(part, Point{x.at(p.X), y.at(p.Y)})
	}
	if len(part) > 0 {
		parts = append(parts, part)
	}
	var marks, strokes [][]Point
	last := Point{math.Inf(-1), 0}
	for _, part := range parts {
		if len(part) > 1 {
			strokes = append(strokes, part)
		}
		for _, p := range part {
			if far := math.Hypot(p.X-last.X, p.Y-last.Y); len(part) == 1 || l.Marked && far >= 12 {
				marks, last = append(marks, marker(l.Style, p, 3.2)), p
			}
		}
	}
	s.line(Series(l.Style), width, dashes[l.Style%len(dashes)], strokes...)
	s.area(Series(l.Style), marks...)
}

// thinned keeps at most pointsMax points: of each stretch the first, the smallest, the largest and the last, so the line looks the
// same. Points that cannot be drawn stay if they are the first of a stretch.
func thinned(points []Point) []Point {
	if len(points) <= pointsMax {
		return points
	}
	stretches := pointsMax / 4
	kept := make([]Point, 0, pointsMax)
	for k := range stretches {
		part := points[k*len(points)/stretches : (k+1)*len(points)/stretches]
		lo, hi := 0, 0
		for i, p := range part {
			if p.Y < part[lo].Y || !drawable(part[lo].Y) {
				lo = i
			}
			if p.Y > part[hi].Y || !drawable(part[hi].Y) {
				hi = i
			}
		}
		last := -1
		for _, i := range []int{0, min(lo, hi), max(lo, hi), len(part) - 1} {
			if i > last {
				kept, last = append(kept, part[i]), i
			}
		}
	}
	return kept
}
