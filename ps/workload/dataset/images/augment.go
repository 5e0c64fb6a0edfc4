package images

import (
	"fmt"
	"slices"

	"fluentps/ps/workload/dataset/draw"
)

// Augment says how training images are changed at random (He et al. 2015, section 4.2, for CIFAR-10): an image is padded with Crop
// zeros on each side and cropped to its size at a random place. With Flip half of the images are mirrored, left to right. Zero is
// the mean of a channel if values are normalised.
type Augment struct {
	Crop int  `yaml:"crop" min:"0" max:"65535" when:"set=idx,cifar10,images,npy,packed" doc:"training images are padded with so many zeros on each side, and cut back to their size at random"`
	Flip bool `yaml:"flip" when:"set=idx,cifar10,images,npy,packed" doc:"half of the training images are mirrored, left to right"`
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
	return nil
}

// Augmenter changes the batches of one worker. The change of an image is a pure function of (seed, worker, iteration, position in
// the batch), so a run can be repeated and resumed.
type Augmenter struct {
	Augment
	image Shape
	key   uint64
}

// augmentStream separates these draws from those of partitions and samplers with the same seed.
const augmentStream = 0x6175676d656e74

// NewAugmenter makes the Augmenter of a worker. It panics if Check fails.
func NewAugmenter(a Augment, image Shape, seed uint64, worker int) *Augmenter {
	if err := a.Check(image); err != nil {
		panic("images: augmenter: " + err.Error())
	}
	return &Augmenter{Augment: a, image: image, key: draw.Mix(draw.Mix(seed, augmentStream), uint64(worker))}
}

// Apply changes the images of an iteration in place. x is in the form of Table.Fill.
func (a *Augmenter) Apply(x []float32, iter int64) {
	if a.Augment == (Augment{}) {
		return
	}
	key, plane := draw.Mix(a.key, uint64(iter)), a.image.Height*a.image.Width
	for at, i := 0, uint64(0); at < len(x); i++ {
		down, right, mirror := a.draw(draw.Mix(key, i))
		for range a.image.Channels {
			shift(x[at:at+plane], a.image.Width, down, right, mirror)
			at += plane
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
