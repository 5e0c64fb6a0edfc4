package dataset

import (
	"fmt"

	"fluentps/ps/workload/dataset/files"
	"fluentps/ps/workload/dataset/images"
)

// pixels is a table of images with one byte a value.
type pixels struct{ *images.Bytes }

func (p pixels) label(row int) int32 { return p.Label(row) }

func (p pixels) holds() (own, common int64) { return p.Holds() }

func loadIDX(s Spec, in *files.Reading) (*Set, error) {
	return pixelSet(images.ReadIDX(s.Path, s.Classes, s.Scale, s.Normalize, in))
}

func loadCIFAR10(s Spec, in *files.Reading) (*Set, error) {
	return pixelSet(images.ReadCIFAR10(s.Path, in))
}

const imagesSet = "images"

func loadImages(s Spec, in *files.Reading) (*Set, error) {
	o := s.Pictures
	o.Classes, o.Scale, o.Normalize, o.Regress, o.Split, o.Seed = s.Classes, s.Scale, s.Normalize, s.Regress.On, s.Split.Test, s.Split.Seed
	if o.Normalize && o.Scale != 0 {
		return nil, fmt.Errorf("data: scale is %g, but normalize would undo it; leave out one of the two", o.Scale)
	}
	train, test, found, err := images.ReadPictures(s.Path, s.Test, o, in)
	if err != nil {
		return nil, err
	}
	set, err := pixelSet(train, test, found.Classes, nil)
	set.ClassNames = found.Names
	return set, err
}

func pixelSet(train, test *images.Bytes, classes int, err error) (*Set, error) {
	if err != nil {
		return nil, err
	}
	return &Set{Train: pixels{train}, Test: pixels{test}, Classes: classes, Image: train.Shape()}, nil
}
