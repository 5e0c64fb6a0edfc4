// Package payload turns vectors of float32 into the bytes of messages, and back: unchanged, in half as many bytes, or
// only their largest elements. It is pure: it sees vectors and bytes, no message and no run.
//
// Dense codecs write every element in turn, in 2 or 4 bytes. Sparse ones write a count and that many pairs of index
// (uint32) and value (float32), the indices increasing. All numbers are little endian. The same input gives the same
// bytes on all machines; only the payload of a NaN may differ.
//
// A sparse codec leaves most elements out. With a residual, these are not lost but late: the codec adds the residual to
// the vector before it chooses, and keeps in the residual what it does not send. So the sum of all decoded vectors plus
// the residual is the sum of all vectors, up to the rounding of that addition.
package payload

import (
	"fmt"
	"math"
	"strings"

	"fluentps/internal/policy/named"
	"fluentps/internal/policy/terms"
)

// Codec encodes vectors of any length. It has scratch memory of its own: only one goroutine at a time may use it.
type Codec interface {
	// EncodedMax returns the most bytes that n elements take; n is at most 2^32.
	EncodedMax(n int) int
	// Encode writes src to dst, which has room for EncodedMax(len(src)) bytes, and returns the number of bytes written.
	// residual is nil or has the length of src; src stays as it is. A codec whose Entry says no Residual accepts only
	// nil. Encode panics on a wrong length.
	Encode(dst []byte, src, residual []float32) int
	// Decode fills dst from src, which must be exactly the output of an Encode of len(dst) elements by such a codec. It
	// returns an error for bytes that no Encode writes; the content of dst is then undefined.
	Decode(dst []float32, src []byte) error
}

// Entry is one row of the table: all that configuration, docs and summary know of a codec.
type Entry struct {
	Name     string
	Rule     string // one line: what is sent
	Paper    string // the source
	Evidence string // tag of the source, as in the README of ps/scheme: C its own manual, A its abstract, R reconstructed, M recalled
	Lossy    bool   // decoding does not give back what was encoded
	Residual bool   // Encode takes a residual
	Says     terms.Says
	make     func(Params) Codec
}

// Params are the numbers of a codec. A codec ignores those that it does not use.
type Params struct {
	Ratio      float64 `yaml:"ratio" above:"0" max:"1" when:"push=@sparse payloads" doc:"topk: the share of a piece's elements that is sent; threshold: the largest share"`
	Thresholds string  `yaml:"thresholds" values:"@thresholds" when:"push=topk" doc:"how topk finds the magnitude from which elements are sent: exact, for every push; reused, from every 32nd push for those that follow, with at most 1.25 times as many elements, in about a quarter of the time"`
	Threshold  float64 `yaml:"threshold" min:"0" max:"1e30" when:"push=threshold" as:"float32" doc:"elements of a magnitude up to it are not sent; a push is a sum over samples"`
}

// Defaults sends a hundredth of the elements, whatever is above a thousandth.
func Defaults() Params { return Params{Ratio: 0.01, Thresholds: "exact", Threshold: 0.001} }

// All is the table of codecs, the default first.
var All = named.Table[Entry]{
	{Name: "float32", Says: terms.Says{Papers: []terms.Paper{}},
		Rule: "every element as it is, 4 bytes", Paper: "IEEE 754-2008, binary32", Evidence: "M",
		make: func(Params) Codec { return dense{full} }},
	{Name: "float16", Rule: "every element rounded to 11 significant bits, ties to even, 2 bytes; from 65520 on infinite",
		Paper: "IEEE 754-2008, binary16", Evidence: "M", Lossy: true, Says: terms.Says{Papers: []terms.Paper{}, Terms: overflows},
		make: func(Params) Codec { return dense{half} }},
	{Name: "bfloat16", Says: terms.Says{Papers: []terms.Paper{}},
		Rule:  "every element rounded to 8 significant bits, ties to even, 2 bytes; the range of float32",
		Paper: "the upper half of a binary32, as in TensorFlow", Evidence: "M", Lossy: true,
		make: func(Params) Codec { return dense{brain} }},
	{Name: "topk", Says: terms.Says{Papers: terms.Cite("lin2018deep")},
		Rule: "the ceil(ratio*n) elements of largest magnitude, of equal ones those of lower index, with " +
			"their indices; the rest is added to the next vector",
		Paper: "Aji and Heafield (EMNLP 2017); the memory: Stich, Cordonnier and Jaggi (NeurIPS 2018), after Seide et " +
			"al. (Interspeech 2014)", Evidence: "A", Lossy: true, Residual: true,
		make: func(p Params) Codec {
			if p.Thresholds == "reused" {
				return &reusing{sparse{ratio: p.Ratio, slack: moreThanK}}
			}
			return &sparse{ratio: p.Ratio}
		}},
	{Name: "threshold", Says: terms.Says{Papers: []terms.Paper{}},
		Rule: "the elements of a magnitude above threshold with their indices, or where these are " +
			"more than ceil(ratio*n), so many of largest magnitude; the rest is added to the next vector",
		Paper: "Strom (Interspeech 2015) as told in DL4J's article on distributed training; there an element is sent as " +
			"its sign alone", Evidence: "R", Lossy: true, Residual: true,
		make: func(p Params) Codec { return &sparse{ratio: p.Ratio, threshold: float32(p.Threshold), cut: true} }},
}

// New returns a codec. The error names an unknown codec, or a number out of its range with the range.
func New(name string, p Params) (Codec, error) {
	e, ok := All.Lookup(name)
	switch {
	case !ok:
		return nil, fmt.Errorf("payload %q is not known; use one of %s", name, strings.Join(All.Names(), ", "))
	case e.Residual && !(p.Ratio > 0 && p.Ratio <= 1):
		return nil, fmt.Errorf("payload %s: ratio %v is out of range; use more than 0 and at most 1, such as 0.01", name, p.Ratio)
	case name == "threshold" && !(p.Threshold >= 0 && p.Threshold <= math.MaxFloat32):
		return nil, fmt.Errorf("payload threshold: threshold %v is out of range; use 0 or more, such as 0.001", p.Threshold)
	}
	return e.make(p), nil
}

// Key is the name in the YAML.
func (e Entry) Key() string { return e.Name }
