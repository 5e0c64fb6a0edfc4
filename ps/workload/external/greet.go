package external

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"fluentps/ps/workload/shapes"
)

// Name is the name of the model in configurations.
const Name = "external"

// greet hears what the child binds.
func (c *Child) greet() error {
	m, err := c.receive()
	if err != nil {
		if errors.Is(err, errEnded) && c.process.hasEnded(tracebackMax) && c.process.cmd.ProcessState.ExitCode() == 0 {
			return errors.New("has ended with exit code 0 before it greeted its parent: does the program call fluentps.join()?")
		}
		return err
	}
	if m.A != Version {
		return fmt.Errorf("speaks version %d of the protocol, this program version %d: install the package that comes with it", m.A, Version)
	}
	if err := c.hello(); err != nil {
		return err
	}
	b := binder{params: map[string]bool{}, layers: map[string]bool{}}
	for {
		if m, err = c.receive(); err != nil {
			return err
		}
		if m.Kind == Bound {
			break
		}
		if err := b.tensor(&m); err != nil {
			return err
		}
	}
	if int(m.A) != b.count {
		return fmt.Errorf("says that it has bound %d tensors, and has sent %d", m.A, b.count)
	}
	if b.count == 0 {
		return errors.New("has bound no tensor: a model needs at least one parameter that is trained")
	}
	c.shapes = shapes.New(Name, b.list)
	c.order.ready = make([]bool, len(b.list))
	c.keepsState = m.Flags == KeepsState
	return nil
}

// binder collects the tensors of a child.
type binder struct {
	list           []shapes.Layer
	params, layers map[string]bool
	count          int
}

const tensorsMax = 100_000

func (b *binder) tensor(m *Message) error {
	lines := strings.Split(string(m.Text), "\n")
	if len(lines) != 3 {
		return fmt.Errorf("has sent TENSOR with %d lines, need 3: layer, name, shape", len(lines))
	}
	layer, name := lines[0], lines[1]
	switch {
	case !isName(layer) || !isName(name):
		return fmt.Errorf("has sent TENSOR %d with the layer %.80q and the name %.80q: need 1 to %d visible characters without spaces",
			b.count, layer, name, nameBytesMax)
	case int(m.A) != b.count:
		return fmt.Errorf("has sent TENSOR %d where %d comes next", m.A, b.count)
	case b.count == tensorsMax:
		return fmt.Errorf("has bound more than %d tensors, the limit", tensorsMax)
	case b.params[name]:
		return fmt.Errorf("has bound tensor %.80q twice", name)
	}
	shape, n, err := parseShape(name, lines[2])
	if err != nil {
		return err
	}
	if uint64(n) != m.B {
		return fmt.Errorf("has bound tensor %.80q of %d elements, but its shape %s has %d", name, m.B, lines[2], n)
	}
	b.params[name] = true
	b.count++
	p := shapes.Param{Name: name, Shape: shape, Stat: m.Flags == IsStatistic}
	if last := len(b.list) - 1; last >= 0 && b.list[last].Name == layer {
		b.list[last].Params = append(b.list[last].Params, p)
		return nil
	}
	if b.layers[layer] {
		return fmt.Errorf("has bound tensor %.80q of layer %.80q apart from the others of that layer: they must come one after the other",
			name, layer)
	}
	b.layers[layer] = true
	b.list = append(b.list, shapes.Layer{Name: layer, Params: []shapes.Param{p}})
	return nil
}

// nameBytesMax is the longest name. Files of shapes have the same limit.
const nameBytesMax = 200

// isName says whether errors and files can show a name as it is.
func isName(s string) bool {
	return s != "" && len(s) <= nameBytesMax && utf8.ValidString(s) &&
		!strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) })
}

// elementsMax is the largest tensor. A product of two numbers up to it does not overflow.
const elementsMax = 1<<31 - 1

func parseShape(name, text string) (shape []int, n int, err error) {
	n = 1
	for word := range strings.SplitSeq(text, "x") {
		d, err := strconv.Atoi(word)
		if err != nil || d < 1 || d > elementsMax {
			return nil, 0, fmt.Errorf("has bound tensor %.80q with the shape %.80q: need numbers from 1 to %d, such as 64x3x7x7",
				name, text, elementsMax)
		}
		if n *= d; n > elementsMax {
			return nil, 0, fmt.Errorf("has bound tensor %.80q of more than %d elements, the limit", name, elementsMax)
		}
		shape = append(shape, d)
	}
	return shape, n, nil
}

// differs says how the tensors of a child are others than those of the architecture that all ranks have; nil: they are the same.
func differs(is, want *shapes.Architecture) error {
	const way = ": all ranks need the same model; write the file of model.shapes again, with fluentps probe"
	for l := range max(len(is.Layers), len(want.Layers)) {
		switch {
		case l >= len(is.Layers):
			return fmt.Errorf("has no layer %s, which model.shapes has"+way, want.Layers[l].Name)
		case l >= len(want.Layers):
			return fmt.Errorf("has bound layer %s, which model.shapes does not have"+way, is.Layers[l].Name)
		case is.Layers[l].Name != want.Layers[l].Name:
			return fmt.Errorf("has layer %s as number %d, model.shapes has %s"+way, is.Layers[l].Name, l, want.Layers[l].Name)
		}
		if err := differsIn(&is.Layers[l], &want.Layers[l]); err != nil {
			return fmt.Errorf("%w"+way, err)
		}
	}
	return nil
}

func differsIn(is, want *shapes.Layer) error {
	for i := range max(len(is.Params), len(want.Params)) {
		switch {
		case i >= len(is.Params):
			return fmt.Errorf("has no tensor %s, which model.shapes has", want.Params[i].Name)
		case i >= len(want.Params):
			return fmt.Errorf("has bound tensor %s, which model.shapes does not have", is.Params[i].Name)
		}
		a, b := &is.Params[i], &want.Params[i]
		switch {
		case a.Name != b.Name:
			return fmt.Errorf("has bound tensor %s where model.shapes has %s", a.Name, b.Name)
		case !slices.Equal(a.Shape, b.Shape):
			return fmt.Errorf("has bound tensor %s with the shape %v, model.shapes has %v", a.Name, a.Shape, b.Shape)
		case a.Stat != b.Stat:
			return fmt.Errorf("has bound tensor %s as a %s, model.shapes has it as a %s", a.Name, role(a), role(b))
		}
	}
	return nil
}

func role(p *shapes.Param) string {
	if p.Stat {
		return "running statistic"
	}
	return "parameter"
}
