package shapes

import (
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The limits of an architecture. A number of elements is an offset in an arena.
const (
	nameBytesMax   = 200
	dimensionsMax  = 8
	layersMax      = 100_000
	paramsMax      = 1_000_000
	tensorMax      = math.MaxInt32 // elements
	elementsMax    = 1 << 40       // of all tensors
	durationMaxDay = 86400         // seconds
)

// Check says why no run can take the architecture; nil: it can.
func (a *Architecture) Check() error {
	if err := checkName("the model", a.Model); err != nil {
		return err
	}
	switch {
	case len(a.Layers) == 0:
		return fmt.Errorf("model %s has no layers, need at least 1: group its parameters into layers, in the order in "+
			"which forward reads them", a.Model)
	case len(a.Layers) > layersMax:
		return fmt.Errorf("model %s has %d layers, the limit is %d: put several parameters into a layer", a.Model, len(a.Layers), layersMax)
	case a.Scratch.Fixed < 0 || a.Scratch.PerSample < 0:
		return fmt.Errorf("model %s: scratch is %d and %d bytes for each sample, need 0 or more", a.Model, a.Scratch.Fixed, a.Scratch.PerSample)
	case a.Compute.Fixed < 0 || a.Compute.PerSample < 0:
		return fmt.Errorf("model %s: compute is %v and %v for each sample, need 0 or more", a.Model, a.Compute.Fixed, a.Compute.PerSample)
	}
	seen := &names{layers: map[string]bool{}, params: map[string]bool{}}
	for l := range a.Layers {
		if err := seen.layer(&a.Layers[l]); err != nil {
			return err
		}
		for i := range a.Layers[l].Params {
			if err := seen.param(&a.Layers[l].Params[i]); err != nil {
				return err
			}
		}
		if len(a.Layers[l].Params) == 0 {
			return noParams(a.Layers[l].Name)
		}
	}
	return nil
}

func noParams(layer string) error {
	return fmt.Errorf("layer %s has no parameters, need at least 1: leave the layer out, or put it together with the next one", layer)
}

// names keeps what the layers and parameters before have used.
type names struct {
	layers, params map[string]bool
	elements       int64
}

func (s *names) layer(l *Layer) error {
	if err := checkName("a layer", l.Name); err != nil {
		return err
	}
	if s.layers[l.Name] {
		return fmt.Errorf("layer %s is there twice: give each layer a name of its own", l.Name)
	}
	s.layers[l.Name] = true
	return nil
}

// param checks a parameter by itself and against those before it.
func (s *names) param(p *Param) error {
	if err := checkName("a parameter", p.Name); err != nil {
		return err
	}
	n := int64(1)
	if len(p.Shape) < 1 || len(p.Shape) > dimensionsMax {
		return fmt.Errorf("parameter %s has %d dimensions, need 1 to %d", p.Name, len(p.Shape), dimensionsMax)
	}
	for _, d := range p.Shape {
		if d < 1 || int64(d) > tensorMax/n {
			return fmt.Errorf("parameter %s has the shape %s, need dimensions of at least 1 whose product is at most %d: "+
				"split the parameter", p.Name, shapeText(p.Shape), int64(tensorMax))
		}
		n *= int64(d)
	}
	switch s.elements += n; {
	case s.params[p.Name]:
		return fmt.Errorf("parameter %s is there twice: give each parameter a name of its own", p.Name)
	case len(s.params) >= paramsMax:
		return fmt.Errorf("parameter %s is one more than %d, the limit: join small parameters", p.Name, paramsMax)
	case s.elements > elementsMax:
		return fmt.Errorf("with parameter %s the model has %d elements, the limit is %d", p.Name, s.elements, int64(elementsMax))
	case p.Row < 0 || p.Row > 0 && n%int64(p.Row) != 0:
		return fmt.Errorf("parameter %s has rows of %d of its %d elements, need a number that divides them; 0: all "+
			"elements have a gradient", p.Name, p.Row, n)
	case p.Fan < 0 || p.Fan > tensorMax:
		return fmt.Errorf("parameter %s has the fan %d, need 0 to %d", p.Name, p.Fan, int64(tensorMax))
	case p.Fan > 0 && p.Start != 0:
		return fmt.Errorf("parameter %s has the fan %d and the start %g; need one of them: fan for random values, start "+
			"for equal ones", p.Name, p.Fan, p.Start)
	case math.IsNaN(float64(p.Start)) || math.IsInf(float64(p.Start), 0):
		return fmt.Errorf("parameter %s starts with %g, need a finite number", p.Name, p.Start)
	}
	s.params[p.Name] = true
	return nil
}

// checkName refuses names that a line of the file, a pattern of sync, or a table could not show.
func checkName(what, name string) error {
	way := "take letters, digits and . _ -"
	switch {
	case name == "":
		return fmt.Errorf("%s has no name: %s", what, way)
	case len(name) > nameBytesMax:
		return fmt.Errorf("%s has a name of %d bytes, %.40q..., the limit is %d", what, len(name), name, nameBytesMax)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }):
		return fmt.Errorf("%s has the name %q, which has spaces or characters that cannot be printed: %s", what, name, way)
	}
	return nil
}
