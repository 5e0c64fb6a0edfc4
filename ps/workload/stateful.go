package workload

import "slices"

// An optimizer may have numbers beside the trained parameters that are averaged over workers. To all others these are parameters of the
// layer, behind its own: statistics, which start at 0. The model neither reads nor writes them.

// StateName is the name of a number of the optimizer beside a parameter.
func StateName(param, state string) string { return param + "." + state }

// withStates adds numbers beside each trained parameter; without names it returns the layers themselves.
func withStates(layers []Layer, names []string) (all []Layer) {
	if len(names) == 0 {
		return layers
	}
	for _, l := range layers {
		with := Layer{Name: l.Name, Params: slices.Clone(l.Params)}
		for _, p := range l.Params {
			for _, name := range names {
				if !p.Stat {
					with.Params = append(with.Params, Param{Name: StateName(p.Name, name), Shape: p.Shape, Stat: true})
				}
			}
		}
		all = append(all, with)
	}
	return all
}

// stateful is a model that is bound to such numbers, too.
type stateful struct {
	Model
	own []bool // by parameter that Bind gets: it is the model's own
}

// besideStates makes a model of these layers take numbers beside its parameters; without names it returns the model itself.
func besideStates(m Model, layers []Layer, names []string) Model {
	if len(names) == 0 {
		return m
	}
	s := &stateful{Model: m}
	for l, with := range withStates(layers, names) {
		for i := range with.Params {
			s.own = append(s.own, i < len(layers[l].Params))
		}
	}
	return s
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

func (s *stateful) Clone() (Model, error) {
	m, err := s.Model.Clone()
	if err != nil {
		return nil, err
	}
	return &stateful{Model: m, own: s.own}, nil
}
