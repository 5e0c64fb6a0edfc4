package dataset

// Sample is a row as a model gets it.
type Sample struct {
	X []float32
	Y int32 // the class, or the bits of the target: TargetOf
}

// The most rows of a sample, and the most values of a row in it.
const (
	sampleRows = 5
	sampleCols = 64
)

// sample takes the first training rows, if they are short.
func (s *Set) sample() (all []Sample) {
	if s.Elsewhere || s.Train.Cols() > sampleCols {
		return nil
	}
	y := make([]int32, 1)
	for r := range min(sampleRows, s.Train.Rows()) {
		x := make([]float32, s.Train.Cols())
		s.Train.Fill(x, y, []int32{int32(r)})
		all = append(all, Sample{x, y[0]})
	}
	return all
}

// labelled is a table that returns the class of a row without its values. A row may have many more values than its file.
type labelled interface{ label(row int) int32 }

func (s *Set) count(t Table, counts []int) {
	rows := t.Rows()
	if l, ok := classesOf(t); ok {
		for r := range rows {
			counts[l.label(r)]++
		}
		return
	}
	x, y := make([]float32, t.Cols()), make([]int32, 1)
	for r := range rows {
		t.Fill(x, y, []int32{int32(r)})
		counts[y[0]]++
	}
}

// Shades are the values of the darkest and the brightest byte of each channel of images; nil: the rows are no bytes.
func (s *Set) Shades() (black, white []float32) {
	b, ok := whole(s.Train).(byteRows)
	if !ok || s.Image == (Image{}) {
		return nil, nil
	}
	values := b.byteValues()
	for c := range s.Image.Channels {
		if len(values) == 0 {
			return nil, nil
		}
		of := &values[min(c, len(values)-1)]
		black, white = append(black, of[0]), append(white, of[255])
	}
	return black, white
}
