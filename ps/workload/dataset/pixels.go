package dataset

import (
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

func pixelSet(train, test *images.Bytes, classes int, err error) (*Set, error) {
	if err != nil {
		return nil, err
	}
	return &Set{Train: pixels{train}, Test: pixels{test}, Classes: classes, Image: train.Shape()}, nil
}
