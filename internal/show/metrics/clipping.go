package metrics

// Clipping counts the gradients that train.clip looked at, over all ranks. In a run that has resumed they are those since then.
type Clipping struct {
	Gradients int64 `json:"gradients"`
	Clipped   int64 `json:"clipped"` // those whose norm was above train.clip.norm
}

// AddClipped counts clipped gradients of a rank among so many; a rank that clips none has 0 of 0.
func (s *Summary) AddClipped(clipped, of int64) {
	if of == 0 {
		return
	}
	if s.Clipping == nil {
		s.Clipping = &Clipping{}
	}
	s.Clipping.Clipped, s.Clipping.Gradients = s.Clipping.Clipped+clipped, s.Clipping.Gradients+of
}
