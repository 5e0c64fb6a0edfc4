package images

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"

	"fluentps/ps/workload/dataset/classes"
	"fluentps/ps/workload/dataset/files"
)

// Options say how pictures become rows. They can be compared.
type Options struct {
	// Resize is the height and the width that pictures become; a width of 0: the shorter side becomes the first number; 0, 0: they stay.
	Resize [2]int
	// Crop is the height and the width of the middle that is left of each; 0, 0: all.
	Crop [2]int
	// Color is what rows become: rgb, grey, or what the first picture has.
	Color string
	// Classes is the number of classes, 0: as many as there are.
	Classes int
	// Scale divides all values; 0: 255. Normalize gives each channel the mean 0 and the deviation 1 over the training pictures instead.
	Scale     float64
	Normalize bool
	// Regress: labels are numbers to predict.
	Regress bool
	// Stream: pictures are decoded one after the other when Each asks for them, and Fill is not called. The set may be larger than memory.
	Stream bool
	// Split is the share of the rows that are test rows, where there are no test pictures. Seed picks them.
	Split float64
	Seed  uint64
}

// The values of Options.Color that are not the default.
const (
	ColorRGB  = "rgb"
	ColorGrey = "grey"
)

// Found is what reading pictures has found out.
type Found struct {
	Classes int
	Names   []string // of classes; nil: they are numbers from 0
}

// ReadPictures reads the pictures of a folder that has a folder for each class, or those that a file of csv names, into memory. test is the
// same for the test part; empty: path has folders for both parts, or there is none.
func ReadPictures(path, test string, o Options, in *files.Reading) (train, tests *Bytes, found Found, err error) {
	parts, err := partsOf(path, test, in)
	if err != nil {
		return nil, nil, found, err
	}
	if o.Split > 0 && len(parts) > 1 {
		return nil, nil, found, fmt.Errorf("data: %s has test pictures: leave out data.split", path)
	}
	y, count, names, err := labels(parts, &o, in)
	if err != nil {
		return nil, nil, found, err
	}
	found = Found{Classes: count, Names: names}
	if o.Split > 0 {
		if parts, y, err = splitOff(parts[0], y[0], &o, names, in); err != nil {
			return nil, nil, found, err
		}
	}
	train, tests = &Bytes{y: y[0]}, &Bytes{}
	if err := train.decode(&parts[0], &o, Shape{}, in); err != nil {
		return nil, nil, found, err
	}
	if len(parts) == 1 {
		in.Notes = append(in.Notes, fmt.Sprintf("data: %s: no test pictures, so nothing is evaluated: name them in data.test, or take some by "+
			"data.split.test: 0.2", path))
	}
	tests.image = train.image
	if len(parts) > 1 {
		tests.y = y[1]
		if err := tests.decode(&parts[1], &o, train.image, in); err != nil {
			return nil, nil, found, err
		}
	}
	i := train.image
	in.Found = append(in.Found, fmt.Sprintf("%s: %d pictures for training, %d for the test, %d x %d, %s", path, len(train.y), len(tests.y),
		i.Height, i.Width, map[int]string{1: "grey", 3: "rgb"}[i.Channels]))
	for range i.Channels {
		train.values = append(train.values, ByteValues(cmp.Or(o.Scale, 255), 0, 1))
	}
	if o.Normalize && !o.Stream {
		train.values = train.standardised()
	}
	tests.values = train.values
	return train, tests, found, nil
}

// splitOff makes a part of the pictures the test part.
func splitOff(p part, y []int32, o *Options, names []string, in *files.Reading) ([]part, [][]int32, error) {
	picked, err := files.TestRows(cmp.Or(p.list, p.root), len(y), o.Split, o.Seed)
	if err != nil {
		return nil, nil, err
	}
	test := part{root: p.root, list: p.list}
	p.all, test.all = files.Part(p.all, 1, picked)
	train, tests := files.Part(y, 1, picked)
	if !o.Regress {
		classes.NoteSplit(in, cmp.Or(p.list, p.root), train, tests, names)
	}
	return []part{p, test}, [][]int32{train, tests}, nil
}

// decode lists the pictures as rows of the table. Unless they are streamed it decodes them, several at once.
func (p *Bytes) decode(of *part, o *Options, shape Shape, in *files.Reading) error {
	root, err := os.OpenRoot(of.root)
	if err != nil {
		return fmt.Errorf("data: %w", err)
	}
	s := &stream{part: of, o: o, root: root, shape: shape}
	first := &decoder{Options: o, root: root, shape: shape}
	if _, _, err := first.read(of.all[0].name, nil); err != nil {
		return errors.Join(s.fail(0, err), root.Close())
	}
	s.shape, p.image = first.shape, first.shape
	size, n := int64(p.image.Values()), int64(len(of.all))
	if o.Stream {
		if o.Normalize {
			s.counts = make([][256]int, p.image.Channels)
		}
		p.stream = s
		return in.Take(nil, 4*n+pictureRoom*(size+sha256.Size))
	}
	defer root.Close()
	if err := in.Take(nil, n*(size+4+sha256.Size)); err != nil {
		return fmt.Errorf("%d pictures of %d bytes: %w; or make them smaller by data.pictures.resize, or write them to a file by "+
			"fluentps data pack", n, size, err)
	}
	defer in.Give(n * sha256.Size)
	p.data = make([]byte, n*size)
	if err := s.decode(0, int(n), p.data); err != nil {
		return err
	}
	s.end()
	in.Files = append(in.Files, s.sum)
	return nil
}

// stream decodes the pictures of a part.
type stream struct {
	part   *part
	o      *Options
	root   *os.Root
	shape  Shape
	counts [][256]int // of the bytes of each channel; nil: nobody needs them
	sum    files.Sum  // of the pictures that have been decoded so far, in order; whole after end
	hash   hash.Hash
}

// pictureRoom is how many pictures of a stream are in memory.
const pictureRoom = 256

// fail is the error of a picture.
func (s *stream) fail(at int, err error) error {
	return fmt.Errorf("data: %s: %w", filepath.Join(s.part.root, filepath.FromSlash(s.part.all[at].name)), err)
}

// each decodes some pictures at once, and hands them on in their order.
func (s *stream) each(p *Bytes, f func(row int, bytes []byte) error) error {
	size := s.shape.Values()
	room := make([]byte, min(pictureRoom, len(s.part.all))*size)
	s.hash, s.sum.Bytes = nil, 0
	clear(s.counts)
	for lo := 0; lo < len(s.part.all); lo += pictureRoom {
		hi := min(lo+pictureRoom, len(s.part.all))
		if err := s.decode(lo, hi, room); err != nil {
			return err
		}
		for r := lo; r < hi; r++ {
			row := room[(r-lo)*size:][:size]
			if s.counts != nil {
				count(s.counts, row)
			}
			if err := f(r, row); err != nil {
				return err
			}
		}
	}
	s.end()
	if s.counts != nil {
		p.values = standardisedBy(s.counts)
	}
	return nil
}

// decode decodes pictures lo to hi-1 into dst, several at once. The first picture that is wrong is the error, whichever is found first.
func (s *stream) decode(lo, hi int, dst []byte) error {
	size, all := s.shape.Values(), s.part.all
	sums, lengths := make([][sha256.Size]byte, hi-lo), make([]int64, hi-lo)
	var next atomic.Int64
	next.Store(int64(lo))
	var lock sync.Mutex
	bad, badAt := error(nil), hi
	var running sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), hi-lo) {
		d := &decoder{Options: s.o, root: s.root, shape: s.shape}
		running.Go(func() {
			for {
				at := int(next.Add(1) - 1)
				if at >= hi {
					return
				}
				_, sum, err := d.read(all[at].name, dst[(at-lo)*size:][:size])
				if err != nil {
					lock.Lock()
					if at < badAt {
						bad, badAt = err, at
					}
					lock.Unlock()
					next.Store(int64(hi)) // those before this one are already being decoded
					return
				}
				sums[at-lo], lengths[at-lo] = sum, int64(d.file.Len())
			}
		})
	}
	running.Wait()
	if bad != nil {
		return s.fail(badAt, bad)
	}
	if s.hash == nil {
		s.hash = sha256.New()
	}
	for i := range sums {
		fmt.Fprintf(s.hash, "%s %x\n", all[lo+i].name, sums[i])
		s.sum.Bytes += lengths[i]
	}
	return nil
}

// end completes the sum.
func (s *stream) end() {
	s.sum.Path, s.sum.Name, s.sum.SHA256 = s.part.root, filepath.Base(s.part.root), hex.EncodeToString(s.hash.Sum(nil))
}
