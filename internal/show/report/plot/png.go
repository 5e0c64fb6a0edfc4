package plot

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"
)

// density is the number of pixels of a PNG for each unit of a scene: enough for print at the width of a column.
const density = 3

// PNG paints the scene in the light theme.
func (s *Scene) PNG() ([]byte, error) {
	p := &painter{img: image.NewRGBA(image.Rect(0, 0, int(math.Ceil(s.Width*density)),
		int(math.Ceil(s.Height*density)))), faces: map[face]font.Face{}}
	draw.Draw(p.img, p.img.Bounds(), image.NewUniform(light[Paper]), image.Point{}, draw.Src)
	for i := range s.shapes {
		if err := p.paint(&s.shapes[i]); err != nil {
			return nil, fmt.Errorf("plot: %w", err)
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, p.img); err != nil {
		return nil, fmt.Errorf("plot: %w", err)
	}
	return b.Bytes(), nil
}

type face struct {
	size float64
	bold bool
}

type painter struct {
	img   *image.RGBA
	faces map[face]font.Face
}

func (p *painter) paint(q *shape) error {
	c := light[q.color]
	switch {
	case q.areas != nil:
		for _, polygon := range q.areas {
			p.fill(c, polygon)
		}
	case q.lines != nil:
		for _, points := range q.lines {
			for _, stroke := range dashed(points, q.dash) {
				p.stroke(c, stroke, q.width)
			}
		}
	default:
		return p.text(c, q)
	}
	return nil
}

// fill paints a polygon. The rasterizer covers only its bounding box.
func (p *painter) fill(c color.RGBA, polygons ...[]Point) {
	lo, hi := Point{math.Inf(1), math.Inf(1)}, Point{math.Inf(-1), math.Inf(-1)}
	for _, polygon := range polygons {
		for _, q := range polygon {
			lo, hi = Point{math.Min(lo.X, q.X), math.Min(lo.Y, q.Y)}, Point{math.Max(hi.X, q.X), math.Max(hi.Y, q.Y)}
		}
	}
	at := image.Rect(int(math.Floor(lo.X*density)), int(math.Floor(lo.Y*density)), int(math.Ceil(hi.X*density))+1,
		int(math.Ceil(hi.Y*density))+1)
	r := vector.NewRasterizer(at.Dx(), at.Dy())
	for _, polygon := range polygons {
		for i, q := range polygon {
			x, y := float32(q.X*density-float64(at.Min.X)), float32(q.Y*density-float64(at.Min.Y))
			if i == 0 {
				r.MoveTo(x, y)
			} else {
				r.LineTo(x, y)
			}
		}
		r.ClosePath()
	}
	r.Draw(p.img, at, image.NewUniform(c), image.Point{})
}

// stroke paints a line as one shape: a box along each segment, and a small disc where two segments meet. All have the same
// orientation, so their overlaps are filled once.
func (p *painter) stroke(c color.RGBA, points []Point, width float64) {
	var parts [][]Point
	h := width / 2
	for i := 1; i < len(points); i++ {
		a, b := points[i-1], points[i]
		d := math.Hypot(b.X-a.X, b.Y-a.Y)
		if d == 0 {
			continue
		}
		nx, ny := -(b.Y-a.Y)/d*h, (b.X-a.X)/d*h
		parts = append(parts, []Point{{a.X - nx, a.Y - ny}, {b.X - nx, b.Y - ny}, {b.X + nx, b.Y + ny}, {a.X + nx, a.Y + ny}})
		if i > 1 {
			parts = append(parts, marker(0, a, h))
		}
	}
	if len(parts) > 0 {
		p.fill(c, parts...)
	}
}

// dashed cuts a line into its dashes.
func dashed(points []Point, dash []float64) [][]Point {
	if len(dash) == 0 || len(points) < 2 {
		return [][]Point{points}
	}
	var out [][]Point
	k, left, on := 0, dash[0], true
	part := []Point{points[0]}
	for i := 1; i < len(points); i++ {
		a, b := points[i-1], points[i]
		length := math.Hypot(b.X-a.X, b.Y-a.Y)
		for done := 0.0; length-done > 1e-9; {
			step := math.Min(left, length-done)
			done, left = done+step, left-step
			at := Point{a.X + (b.X-a.X)*done/length, a.Y + (b.Y-a.Y)*done/length}
			if on {
				part = append(part, at)
			}
			if left > 1e-9 {
				continue
			}
			if on {
				out = append(out, part)
			}
			k, on = (k+1)%len(dash), !on
			left, part = dash[k], []Point{at}
		}
	}
	if on && len(part) > 1 {
		out = append(out, part)
	}
	return out
}

func (p *painter) text(c color.RGBA, q *shape) error {
	key := face{q.size, q.bold}
	if p.faces[key] == nil {
		data := goregular.TTF
		if q.bold {
			data = gobold.TTF
		}
		parsed, err := opentype.Parse(data)
		if err != nil {
			return err
		}
		if p.faces[key], err = opentype.NewFace(parsed,
			&opentype.FaceOptions{Size: q.size * density, DPI: 72, Hinting: font.HintingNone}); err != nil {
			return err
		}
	}
	d := font.Drawer{Dst: p.img, Src: image.NewUniform(c), Face: p.faces[key]}
	x := fixed.Int26_6(q.at.X * density * 64)
	switch w := d.MeasureString(q.text); q.align {
	case middle:
		x -= w / 2
	case right:
		x -= w
	}
	d.Dot = fixed.Point26_6{X: x, Y: fixed.Int26_6(q.at.Y * density * 64)}
	d.DrawString(q.text)
	return nil
}
