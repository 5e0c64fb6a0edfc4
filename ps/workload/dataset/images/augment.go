package images

import (
	"fmt"
	"math"
	"slices"

	"fluentps/ps/workload/dataset/draw"
)

// Augment says how training images are changed at random (He et al. 2015, section 4.2, for CIFAR-10): an image is padded with Crop
// zeros on each side and cropped to its size at a random place. With Flip half of the images are mirrored, left to right. Zero is
// the mean of a channel if values are normalised. Then each image is turned about its middle by an angle of up to Rotate degrees, its
// values are multiplied and shifted by up to Jitter, and a square of Cutout pixels a side, whose middle is anywhere in the image, becomes
// zero (DeVries and Taylor, arXiv 1708.04552, section 3.2, recalled [M]).
type Augment struct {
	Crop   int     `yaml:"crop" min:"0" max:"65535" when:"set=idx,cifar10,images,npy,packed" doc:"training images are padded with so many zeros on each side, and cut back to their size at random"`
	Flip   bool    `yaml:"flip" when:"set=idx,cifar10,images,npy,packed" doc:"half of the training images are mirrored, left to right"`
	Rotate float64 `yaml:"rotate" min:"0" max:"180" when:"set=idx,cifar10,images,npy,packed" as:"float32" doc:"training images are turned by an angle of up to so many degrees, to either side; what comes from outside is zero"`
	Jitter float64 `yaml:"jitter" min:"0" below:"1" when:"set=idx,cifar10,images,npy,packed" as:"float32" doc:"the values of a training image are multiplied by 1-jitter to 1+jitter, and shifted by -jitter to jitter"`
	Cutout int     `yaml:"cutout" min:"0" max:"65535" when:"set=idx,cifar10,images,npy,packed" doc:"a square of so many pixels a side, at a random place of a training image, becomes zero"`
}

// Check fails if images of this shape cannot be augmented like that.
func (a Augment) Check(image Shape) error {
	limit := min(image.Height, image.Width) - 1
	switch {
	case a == Augment{}:
		return nil
	case image == Shape{}:
		return fmt.Errorf("data.augment: the rows of the data set are no images; leave it out")
	case a.Crop < 0 || a.Crop > limit:
		return fmt.Errorf("data.augment.crop is %d, must be 0 to %d, less than the images have: %d x %d pixels", a.Crop,
			limit, image.Height, image.Width)
	}
	switch {
	case !(a.Rotate >= 0 && a.Rotate <= 180):
		return fmt.Errorf("data.augment.rotate is %g, must be 0 to 180 degrees", a.Rotate)
	case !(a.Jitter >= 0 && a.Jitter < 1):
		return fmt.Errorf("data.augment.jitter is %g, must be at least 0 and below 1", a.Jitter)
	case a.Cutout < 0 || a.Cutout > 2*limit:
		return fmt.Errorf("data.augment.cutout is %d, must be 0 to %d: larger ones leave nothing of images of %d x %d pixels", a.Cutout, 2*limit,
			image.Height, image.Width)
	}
	return nil
}

// Augmenter changes the batches of one worker. The change of an image is a pure function of (seed, worker, iteration, position in
// the batch), so a run can be repeated and resumed.
type Augmenter struct {
	Augment
	image  Shape
	key    uint64
	turned []float32 // a plane, scratch
}

// augmentStream separates these draws from those of partitions and samplers with the same seed.
const augmentStream = 0x6175676d656e74

// NewAugmenter makes the Augmenter of a worker. It panics if Check fails.
func NewAugmenter(a Augment, image Shape, seed uint64, worker int) *Augmenter {
	if err := a.Check(image); err != nil {
		panic("images: augmenter: " + err.Error())
	}
	t := &Augmenter{Augment: a, image: image, key: draw.Mix(draw.Mix(seed, augmentStream), uint64(worker))}
	if a.Rotate > 0 {
		t.turned = make([]float32, image.Height*image.Width)
	}
	return t
}

// Apply changes the images of an iteration in place. x is in the form of Table.Fill.
func (a *Augmenter) Apply(x []float32, iter int64) {
	if a.Augment == (Augment{}) {
		return
	}
	key, plane := draw.Mix(a.key, uint64(iter)), a.image.Height*a.image.Width
	for at, i := 0, uint64(0); at < len(x); i++ {
		bits := draw.Mix(key, i)
		down, right, mirror := a.draw(bits)
		for c := range a.image.Channels {
			shift(x[at+c*plane:][:plane], a.image.Width, down, right, mirror)
		}
		a.change(x[at:at+a.image.Channels*plane], bits)
		at += a.image.Channels * plane
	}
}

// The streams of the draws of one image, beside those of draw.
const (
	rotateStream = 1 + iota
	factorStream
	shiftStream
	cutoutStream
)

// uniform is a number from -1 to 1, both of which are as likely.
func uniform(bits uint64, stream uint64) float64 {
	return 2*(float64(draw.Mix(bits, stream)>>11)+0.5)/(1<<53) - 1
}

// change turns the image, changes its values, and cuts a square out of it.
func (a *Augmenter) change(x []float32, bits uint64) {
	h, w := a.image.Height, a.image.Width
	if a.Rotate > 0 {
		angle := uniform(bits, rotateStream) * a.Rotate * math.Pi / 180
		for c := range a.image.Channels {
			plane := x[c*h*w:][:h*w]
			turn(a.turned, plane, w, angle)
			copy(plane, a.turned)
		}
	}
	if a.Jitter > 0 {
		factor, more := float32(1+uniform(bits, factorStream)*a.Jitter), float32(uniform(bits, shiftStream)*a.Jitter)
		for i, v := range x {
			x[i] = float32(v*factor) + more // rounded twice, on every processor
		}
	}
	if a.Cutout > 0 {
		place := draw.Mix(bits, cutoutStream)
		top, left := int(place>>32*uint64(h)>>32)-a.Cutout/2, int(place&(1<<32-1)*uint64(w)>>32)-a.Cutout/2
		for c := range a.image.Channels {
			for y := max(0, top); y < min(h, top+a.Cutout); y++ {
				clear(x[(c*h+y)*w:][:w][max(0, left):min(w, left+a.Cutout)])
			}
		}
	}
}

// turn writes a plane turned about its middle by an angle, counter-clockwise where rows go down. A value is the mean of the four around the
// place that it comes from, by their distance; outside of the plane they are zero.
func turn(to, from []float32, width int, angle float64) {
	height := len(from) / width
	sin, cos := math.Sincos(angle)
	at := func(y, x int) float64 {
		if y < 0 || x < 0 || y >= height || x >= width {
			return 0
		}
		return float64(from[y*width+x])
	}
	middleY, middleX := float64(height-1)/2, float64(width-1)/2
	for y := range height {
		for x := range width {
			dy, dx := float64(y)-middleY, float64(x)-middleX
			// each product is rounded, so that no processor fuses it with a sum
			sy, sx := float64(dy*cos)-float64(dx*sin)+middleY, float64(dy*sin)+float64(dx*cos)+middleX
			top, left := math.Floor(sy), math.Floor(sx)
			fy, fx := sy-top, sx-left
			i, j := int(top), int(left)
			above := float64(at(i, j)*(1-fx)) + float64(at(i, j+1)*fx)
			below := float64(at(i+1, j)*(1-fx)) + float64(at(i+1, j+1)*fx)
			to[y*width+x] = float32(float64(above*(1-fy)) + float64(below*fy))
		}
	}
}

// draw cuts 64 random bits into the place where the cropped image begins, -Crop to Crop in each direction, and whether it is
// mirrored.
func (a *Augmenter) draw(bits uint64) (down, right int, mirror bool) {
	places := uint64(2*a.Crop + 1)
	down = int((bits>>32)*places>>32) - a.Crop
	right = int((bits>>1&(1<<31-1))*places>>31) - a.Crop
	return down, right, a.Flip && bits&1 == 1
}

// shift moves the content of a plane up and left by down and right, and fills the rest with zeros. With mirror it then mirrors the
// plane. Rows are processed in an order in which no row is read after it has been written.
func shift(plane []float32, width, down, right int, mirror bool) {
	height := len(plane) / width
	for i := range height {
		row := i
		if down < 0 {
			row = height - 1 - i
		}
		to := plane[row*width:][:width]
		if from := row + down; from < 0 || from >= height {
			clear(to)
			continue
		} else if from := plane[from*width:][:width]; right >= 0 {
			copy(to, from[right:])
			clear(to[width-right:])
		} else {
			copy(to[-right:], from)
			clear(to[:-right])
		}
		if mirror {
			slices.Reverse(to)
		}
	}
}
