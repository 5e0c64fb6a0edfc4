package shapes

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// The first words of a file, and the version of the form.
const (
	magic   = "fluentps shapes"
	version = 1
)

// FileBytesMax is the largest file of an architecture.
const FileBytesMax = 256 << 20

// Write writes the file of an architecture. It fails for one that Check refuses.
func (a *Architecture) Write(w io.Writer) error {
	text, err := a.text()
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

func (a *Architecture) text() ([]byte, error) {
	if err := a.Check(); err != nil {
		return nil, fmt.Errorf("shapes: %w", err)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %d\nmodel %s\n", magic, version, a.Model)
	if a.Scratch != (Scratch{}) {
		fmt.Fprintf(&b, "scratch %d %d\n", a.Scratch.Fixed, a.Scratch.PerSample)
	}
	if a.Compute != (Cost{}) {
		fmt.Fprintf(&b, "compute %v %v\n", a.Compute.Fixed, a.Compute.PerSample)
	}
	params, elements := 0, 0
	for _, l := range a.Layers {
		fmt.Fprintf(&b, "layer %s\n", l.Name)
		for _, p := range l.Params {
			kind := "param"
			if p.Stat {
				kind = "stat"
			}
			fmt.Fprintf(&b, "%s %s %s", kind, p.Name, shapeText(p.Shape))
			if p.Fan > 0 {
				fmt.Fprintf(&b, " fan %d", p.Fan)
			}
			if p.Start != 0 || math.Signbit(float64(p.Start)) {
				fmt.Fprintf(&b, " start %s", strconv.FormatFloat(float64(p.Start), 'g', -1, 32))
			}
			if p.Row > 0 {
				fmt.Fprintf(&b, " row %d", p.Row)
			}
			b.WriteByte('\n')
			params, elements = params+1, elements+p.N()
		}
	}
	fmt.Fprintf(&b, "end %d %d\n", params, elements)
	return b.Bytes(), nil
}

func shapeText(shape []int) string {
	dims := make([]string, len(shape))
	for i, d := range shape {
		dims[i] = strconv.Itoa(d)
	}
	return strings.Join(dims, "x")
}

// reader is a file that is being read.
type reader struct {
	a        *Architecture
	layers   []Layer
	seen     names
	count    int
	elements int64
	hasModel bool
	ended    bool
}

// Read reads the file of an architecture; name names it in errors, which say the line, the value, the limit and the way out.
func Read(name string, from io.Reader) (*Architecture, error) {
	r := &reader{a: &Architecture{}, seen: names{layers: map[string]bool{}, params: map[string]bool{}}}
	limited := &io.LimitedReader{R: from, N: FileBytesMax + 1}
	lines := bufio.NewScanner(limited)
	lines.Buffer(make([]byte, 0, 4096), lineBytesMax)
	number := 0
	for lines.Scan() {
		number++
		if err := r.line(number, strings.TrimSuffix(lines.Text(), "\r")); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, number, err)
		}
	}
	err := lines.Err()
	switch {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("%s:%d: the line is longer than %d bytes; is it a file that fluentps wrote?", name, number+1, lineBytesMax)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	case limited.N <= 0:
		return nil, fmt.Errorf("%s: the file is larger than %d bytes, the limit", name, FileBytesMax)
	case number == 0:
		return nil, fmt.Errorf("%s:1: the file is empty; its first line must be %q", name, fmt.Sprintf("%s %d", magic, version))
	case !r.ended:
		return nil, fmt.Errorf("%s:%d: the file ends without a line end PARAMETERS ELEMENTS: it was cut short; write it again", name, number+1)
	}
	for _, l := range r.layers {
		r.a.add(l)
	}
	return r.a, nil
}

const lineBytesMax = 4096

// line reads one line.
func (r *reader) line(number int, text string) error {
	if number == 1 {
		return checkMagic(text)
	}
	words := strings.Fields(text)
	switch {
	case len(words) == 0 || strings.HasPrefix(words[0], "#"):
		return nil
	case r.ended:
		return fmt.Errorf("%.40q stands behind the line end, which must be the last one: remove it", text)
	case !r.hasModel && words[0] != "model":
		return fmt.Errorf("%.40q stands before the line model NAME, which must come first", text)
	}
	key, rest := words[0], words[1:]
	switch key {
	case "model":
		return r.model(rest)
	case "scratch":
		return r.scratch(rest)
	case "compute":
		return r.compute(rest)
	case "layer":
		return r.layer(rest)
	case "param", "stat":
		return r.param(key, rest)
	case "end":
		return r.end(rest)
	}
	return fmt.Errorf("%.40q is not known; a line begins with model, scratch, compute, layer, param, stat or end", key)
}

func checkMagic(text string) error {
	given, is := strings.CutPrefix(text, magic+" ")
	if !is {
		return fmt.Errorf("%.40q is not the head of a file of shapes, %q; write one with Architecture.Write", text,
			fmt.Sprintf("%s %d", magic, version))
	}
	if v, err := strconv.Atoi(strings.TrimSpace(given)); err != nil || v != version {
		return fmt.Errorf("version %.20q of the form is not known, this program reads %d; write the file again with this program", given, version)
	}
	return nil
}

// need fails unless there are so many words.
func need(key string, form string, words []string, n int) error {
	if len(words) != n {
		return fmt.Errorf("%s has %d values, need %d: %s %s", key, len(words), n, key, form)
	}
	return nil
}

// whole reads a whole number from 0 to most.
func whole(what, word string, most int64) (int64, error) {
	v, err := strconv.ParseInt(word, 10, 64)
	if err != nil || v < 0 || v > most {
		return 0, fmt.Errorf("%s is %.40q, need a whole number from 0 to %d", what, word, most)
	}
	return v, nil
}

func (r *reader) model(words []string) error {
	if r.hasModel {
		return fmt.Errorf("the line model is there twice: remove one")
	}
	if err := need("model", "NAME", words, 1); err != nil {
		return err
	}
	r.hasModel, r.a.Model = true, words[0]
	return checkName("the model", words[0])
}

func (r *reader) scratch(words []string) (err error) {
	if err := need("scratch", "BYTES BYTES_PER_SAMPLE", words, 2); err != nil {
		return err
	}
	if r.a.Scratch.Fixed, err = whole("scratch", words[0], math.MaxInt64); err == nil {
		r.a.Scratch.PerSample, err = whole("scratch of a sample", words[1], math.MaxInt64)
	}
	return err
}

func (r *reader) compute(words []string) error {
	if err := need("compute", "TIME TIME_PER_SAMPLE", words, 2); err != nil {
		return err
	}
	for i, to := range []*time.Duration{&r.a.Compute.Fixed, &r.a.Compute.PerSample} {
		d, err := time.ParseDuration(words[i])
		if err != nil || d < 0 || d > durationMaxDay*time.Second {
			return fmt.Errorf("compute is %.40q, need a time from 0s to %ds, such as 250us", words[i], durationMaxDay)
		}
		*to = d
	}
	return nil
}

func (r *reader) layer(words []string) error {
	if err := need("layer", "NAME", words, 1); err != nil {
		return err
	}
	if err := r.full(); err != nil {
		return err
	}
	if len(r.layers) == layersMax {
		return fmt.Errorf("layer %s is one more than %d, the limit: put several parameters into a layer", words[0], layersMax)
	}
	r.layers = append(r.layers, Layer{Name: words[0]})
	return r.seen.layer(&r.layers[len(r.layers)-1])
}

// full fails if the last layer has no parameters.
func (r *reader) full() error {
	if n := len(r.layers); n > 0 && len(r.layers[n-1].Params) == 0 {
		return noParams(r.layers[n-1].Name)
	}
	return nil
}

func (r *reader) param(kind string, words []string) error {
	const form = "NAME SHAPE [fan N] [start VALUE] [row N]"
	if len(words) < 2 || len(words)%2 != 0 {
		return fmt.Errorf("%s has %d values, need a name, a shape, and pairs of a word and its value: %s %s", kind, len(words), kind, form)
	}
	at := len(r.layers) - 1
	if at < 0 {
		return fmt.Errorf("%s %.40s stands before the first line layer NAME: put that above it", kind, words[0])
	}
	p := Param{Name: words[0], Layer: at, Stat: kind == "stat"}
	for _, d := range strings.Split(words[1], "x") {
		n, err := whole("a dimension of "+words[0], d, tensorMax)
		if err != nil {
			return err
		}
		p.Shape = append(p.Shape, int(n))
	}
	for given := map[string]bool{}; len(words) > 2; words = append(words[:2:2], words[4:]...) {
		word, value := words[2], words[3]
		if given[word] {
			return fmt.Errorf("%s is given twice for %s: remove one", word, p.Name)
		}
		given[word] = true
		if err := p.take(word, value); err != nil {
			return err
		}
	}
	if err := r.seen.param(&p); err != nil {
		return err
	}
	r.layers[at].Params = append(r.layers[at].Params, p)
	r.count, r.elements = r.count+1, r.elements+int64(p.N())
	return nil
}

// take reads a word behind the shape, with its value.
func (p *Param) take(word, value string) error {
	switch word {
	case "fan", "row":
		n, err := whole(word+" of "+p.Name, value, tensorMax)
		if err != nil {
			return err
		}
		if word == "fan" {
			p.Fan = int(n)
		} else {
			p.Row = int(n)
		}
		return nil
	case "start":
		v, err := strconv.ParseFloat(value, 32)
		if err != nil {
			return fmt.Errorf("start of %s is %.40q, need a number in float32, such as 1", p.Name, value)
		}
		p.Start = float32(v)
		return nil
	}
	return fmt.Errorf("%.40q behind the shape of %s is not known; choose fan, start or row", word, p.Name)
}

func (r *reader) end(words []string) error {
	if err := need("end", "PARAMETERS ELEMENTS", words, 2); err != nil {
		return err
	}
	if len(r.layers) == 0 {
		return fmt.Errorf("model %s has no layers, need at least 1", r.a.Model)
	}
	if err := r.full(); err != nil {
		return err
	}
	params, err := whole("the number of parameters", words[0], paramsMax)
	if err != nil {
		return err
	}
	elements, err := whole("the number of elements", words[1], elementsMax)
	if err != nil {
		return err
	}
	if params != int64(r.count) || elements != r.elements {
		return fmt.Errorf("end says %d parameters of %d elements, but the lines above have %d of %d: lines were lost or "+
			"added; write the file again", params, elements, r.count, r.elements)
	}
	r.ended = true
	return nil
}
