package workload

import (
	"slices"
	"strings"
)

// stateful is a model whose trained parameters have numbers beside them that are averaged over workers: the state of an optimizer. To all
// others they are parameters of the layer, behind its own: statistics, which start at 0. The model neither reads nor writes them.
type stateful struct {
	Model
	names []string // of the numbers of one parameter
	own   []bool   // by parameter: it is the model's own
}

// StateName is the name of a number of the optimizer beside a parameter.
func StateName(param, state string) string { return param + "." + state }

// withStates adds numbers beside each trained parameter; none: it returns the model itself.
func withStates(m Model, names []string) Model {
	if len(names) == 0 {
		return m
	}
	s := &stateful{Model: m, names: names}
	for _, l := range s.Layers() {
		for _, p := range l.Params {
			s.own = append(s.own, !s.isState(p.Name))
		}
	}
	return s
}

func (s *stateful) isState(name string) bool {
	return slices.ContainsFunc(s.names, func(state string) bool { return strings.HasSuffix(name, "."+state) })
}

func (s *stateful) Layers() (all []Layer) {
	for _, l := range s.Model.Layers() {
		with := Layer{Name: l.Name, Params: slices.Clone(l.Params)}
		for _, p := range l.Params {
			for _, name := range s.names {
				if !p.Stat {
					with.Params = append(with.Params, Param{Name: StateName(p.Name, name), Shape: p.Shape, Layer: p.Layer, Stat: true})
				}
			}
		}
		all = append(all, with)
	}
	return all
}

func (s *stateful) Bind(params, grads [][]float32) {
	s.Model.Bind(s.ofModel(params), s.ofModel(grads))
}

func (s *stateful) ofModel(all [][]float32) (own [][]float32) {
	for i, v := range all {
		if s.own[i] {
			own = append(own, v)
		}
	}
	return own
}

func (s *stateful) Clone() Model { return withStates(s.Model.Clone(), s.names) }
