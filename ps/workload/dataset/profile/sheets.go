package profile

import (
	"cmp"
	"fmt"
	"image"
	"image/color"
	"math"
	"slices"

	"fluentps/ps/workload/dataset"
	"fluentps/ps/workload/dataset/images"
)

const (
	stripsMost = 10  // of a sheet
	ofStrip    = 8   // pictures side by side
	sideMost   = 128 // pixels of a picture that is shown; larger ones are made smaller
	gap        = 2   // pixels between two pictures
)

// pictures looks at the values of pictures, and paints contact sheets.
func (p *Profile) pictures(set *dataset.Set, o Options, train *part) {
	plane := set.Image.Height * set.Image.Width
	step := max(1, train.rows*plane/shadesMost) // of so many pictures one is counted, whole
	for c := range min(set.Image.Channels, channelsMost) {
		var values []float64
		for r := 0; r < train.rows; r += step {
			for _, v := range train.row(r)[c*plane : (c+1)*plane] {
				values = append(values, float64(v))
			}
		}
		p.Shades = append(p.Shades, histogram(values, nil))
	}
	if !o.Sheets {
		return
	}
	b, groups := newBrush(set, train), groupsOf(set, train)
	examples := Sheet{ID: "examples", Title: "Training pictures", Note: b.note}
	for _, g := range groups {
		if len(examples.Strips) == stripsMost {
			break
		}
		var rows [][]float32
		for k := range min(ofStrip, len(g.rows)) {
			rows = append(rows, train.row(g.rows[k*len(g.rows)/min(ofStrip, len(g.rows))]))
		}
		examples.Strips = append(examples.Strips, b.strip(g.label, rows))
	}
	p.Sheets = append(p.Sheets, examples)
	if o.Augment != (images.Augment{}) {
		p.Sheets = append(p.Sheets, b.augmented(o, train, groups))
	}
	if set.Classes > 0 {
		p.Sheets = append(p.Sheets, b.means(train, groups))
	}
}

// shadesMost is about how many values of a channel are counted, and channelsMost how many channels have a histogram.
const shadesMost, channelsMost = 1 << 20, 8

// group is pictures that belong together.
type group struct {
	label string
	rows  []int
}

// groupsOf are the classes that rows have, or as many parts of their targets in order.
func groupsOf(set *dataset.Set, train *part) (groups []group) {
	if set.Classes > 0 {
		all := make([][]int, set.Classes)
		for r, y := range train.y {
			all[y] = append(all[y], r)
		}
		for k, rows := range all {
			label := digits(k)
			if k < len(set.ClassNames) {
				label = set.ClassNames[k]
			}
			if len(rows) > 0 {
				groups = append(groups, group{label, rows})
			}
		}
		return groups
	}
	order := make([]int, train.rows)
	for r := range order {
		order[r] = r
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(train.target[a], train.target[b]) })
	const parts = 5
	for k := range parts {
		rows := order[k*len(order)/parts : (k+1)*len(order)/parts]
		if len(rows) > 0 {
			groups = append(groups, group{fmt.Sprintf("%.4g to %.4g", train.target[rows[0]], train.target[rows[len(rows)-1]]), rows})
		}
	}
	return groups
}

// brush paints pictures of a set.
type brush struct {
	shape        images.Shape
	black, white []float32 // of each channel
	step         int       // every so many pixels one is shown
	note         string
}

// newBrush finds the values of black and white: those of the bytes 0 and 255, or the smallest and the largest of the pictures looked at.
func newBrush(set *dataset.Set, train *part) *brush {
	b := &brush{shape: set.Image, step: (max(set.Image.Height, set.Image.Width) + sideMost - 1) / sideMost}
	if b.black, b.white = set.Shades(); b.black == nil {
		lo, hi := float32(math.Inf(1)), float32(math.Inf(-1))
		for _, v := range train.x {
			if isFinite(float64(v)) {
				lo, hi = min(lo, v), max(hi, v)
			}
		}
		if lo > hi { // no value is finite
			lo, hi = 0, 1
		}
		for range set.Image.Channels {
			b.black, b.white = append(b.black, lo), append(b.white, hi)
		}
		b.note = fmt.Sprintf("Black is %.4g and white %.4g, the smallest and the largest value looked at. ", lo, hi)
	}
	if c := set.Image.Channels; c != 1 && c != 3 {
		b.note += fmt.Sprintf("Pictures have %d channels: the first is shown. ", c)
	}
	if b.step > 1 {
		b.note += fmt.Sprintf("Of %d pixels in each direction one is shown. ", b.step)
	}
	return b
}

// size is that of a picture as it is shown.
func (b *brush) size() (height, width int) {
	return (b.shape.Height + b.step - 1) / b.step, (b.shape.Width + b.step - 1) / b.step
}

// strip paints pictures side by side.
func (b *brush) strip(label string, rows [][]float32) Strip {
	h, w := b.size()
	to := image.NewNRGBA(image.Rect(0, 0, len(rows)*(w+gap)-gap, h))
	for k, x := range rows {
		for i := range h {
			for j := range w {
				to.SetNRGBA(k*(w+gap)+j, i, b.color(x, i*b.step*b.shape.Width+j*b.step))
			}
		}
	}
	return Strip{label, len(rows), to}
}

// color is that of a pixel.
func (b *brush) color(x []float32, at int) color.NRGBA {
	plane := b.shape.Height * b.shape.Width
	shade := func(c int) uint8 {
		v := (float64(x[c*plane+at]) - float64(b.black[c])) / (float64(b.white[c]) - float64(b.black[c]))
		if !(v > 0) { // also NaN, and where black is white
			return 0
		}
		return uint8(math.Round(255 * min(1, v)))
	}
	if b.shape.Channels == 3 {
		return color.NRGBA{shade(0), shade(1), shade(2), 255}
	}
	v := shade(0)
	return color.NRGBA{v, v, v, 255}
}

// augmented shows a picture of each group, and what training makes of it.
func (b *brush) augmented(o Options, train *part, groups []group) Sheet {
	s := Sheet{ID: "augmented", Title: "Pictures as training changes them",
		Note: b.note + fmt.Sprintf("The first of each row is the file's, and the others are as worker 0 would get it in its iterations 0 to %d.",
			ofStrip-2)}
	groups = groups[:min(len(groups), stripsMost)]
	var x []float32
	for _, g := range groups {
		x = append(x, train.row(g.rows[0])...)
	}
	strips := make([][][]float32, len(groups))
	a := images.NewAugmenter(o.Augment, b.shape, o.Seed, 0)
	for k := range ofStrip {
		now := slices.Clone(x)
		if k > 0 {
			a.Apply(now, int64(k-1))
		}
		for i := range groups {
			strips[i] = append(strips[i], now[i*train.cols:(i+1)*train.cols])
		}
	}
	for i, g := range groups {
		s.Strips = append(s.Strips, b.strip(g.label, strips[i]))
	}
	return s
}

// means shows the mean picture of each class.
func (b *brush) means(train *part, groups []group) Sheet {
	s := Sheet{ID: "means", Title: "Mean of each class", Note: b.note}
	for from := 0; from < len(groups) && len(s.Strips) < stripsMost; from += ofStrip {
		part := groups[from:min(len(groups), from+ofStrip)]
		var rows [][]float32
		for _, g := range part {
			sum, row := make([]float64, train.cols), make([]float32, train.cols)
			for _, r := range g.rows {
				for j, v := range train.row(r) {
					sum[j] += float64(v)
				}
			}
			for j, v := range sum {
				row[j] = float32(v / float64(len(g.rows)))
			}
			rows = append(rows, row)
		}
		label := part[0].label
		if len(part) > 1 {
			label += " to " + part[len(part)-1].label
		}
		s.Strips = append(s.Strips, b.strip(label, rows))
	}
	return s
}
