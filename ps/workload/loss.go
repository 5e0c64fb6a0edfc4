package workload

import (
	"fmt"

	"fluentps/kernels"
)

// The values of ModelSpec.Loss.
const (
	LossAuto  = "auto"
	LossMSE   = "mse"
	LossHuber = "huber"
)

// Labels is what a model predicts.
type Labels uint8

const (
	Classes Labels = iota // the class of a row
	Targets               // its target, a number
	Either                // what the rows have
)

// takes says whether a model that predicts l takes rows that have targets, or those that have classes.
func (l Labels) takes(regress bool) bool { return l == Either || (l == Targets) == regress }

// WithTargets lists the models that take rows with targets.
func WithTargets() (names []string) {
	return namesOf(func(e *ModelEntry) bool { return e.Labels.takes(true) })
}

// TakesTargets says whether a model takes rows with targets, and whether it takes rows with classes.
func TakesTargets(name string) (targets, classes bool) {
	e := modelOf(name)
	return e.Labels.takes(true), e.Labels.takes(false) && !e.Ratings
}

// namesOf lists the models that fit.
func namesOf(fits func(e *ModelEntry) bool) (names []string) {
	for i := range models {
		if fits(&models[i]) {
			names = append(names, models[i].Name)
		}
	}
	return names
}

// HuberDelta is the size of an error up to which the loss of a model is half its square; 0: its loss is another one.
func (s ModelSpec) HuberDelta() float64 {
	if s.Loss == LossHuber {
		return s.Delta
	}
	return 0
}

// head is the kernel at the end of a model: it takes outputs and labels, and makes losses and gradients.
type head struct {
	kernel   *kernels.Kernel
	scalars  kernels.Scalars
	isErrors bool // its last vector has the sizes of errors, not hits
}

// outputs is how many numbers a model computes for a sample, of which its last kernel makes a loss.
func outputs(s ModelSpec, from Samples) int {
	if from.Regress || isBinary(s.Name) {
		return 1
	}
	return from.Classes
}

func isBinary(name string) bool { return name == "logistic" || name == "sparse_logistic" }

func headOf(s ModelSpec, from Samples) head {
	switch {
	case from.Regress && s.Loss == LossHuber:
		return head{kernel: kernels.HuberLoss, scalars: kernels.Scalars{float32(s.Delta)}, isErrors: true}
	case from.Regress:
		return head{kernel: kernels.MSELoss, isErrors: true}
	case isBinary(s.Name):
		return head{kernel: kernels.SigmoidXent}
	}
	return head{kernel: kernels.SoftmaxXent}
}

// checkLabels fails if a model does not predict what rows have, or if its loss is of something else.
func checkLabels(e ModelEntry, s ModelSpec, from Samples) error {
	hasLoss := s.Loss != "" && s.Loss != LossAuto
	switch {
	case e.Ratings:
		return nil
	case from.Regress && !e.Labels.takes(true):
		return fmt.Errorf("model %s: rows have targets (data.task: regress), and %s predicts classes; choose linear or mlp", s.Name, s.Name)
	case !from.Regress && !e.Labels.takes(false):
		return fmt.Errorf("model %s: rows have classes, and %s predicts targets; set data.task: regress, or choose softmax", s.Name, s.Name)
	case hasLoss && !from.Regress:
		return fmt.Errorf("model %s: loss %s is one of targets, and rows have classes; set data.task: regress, or loss: auto", s.Name, s.Loss)
	case s.Loss == LossHuber && !(s.Delta > 0):
		return fmt.Errorf("model %s: huber_delta is %g, must be above 0", s.Name, s.Delta)
	}
	return nil
}

// Errors are the errors of targets in sums over samples: of their sizes, and of their squares.
type Errors struct{ Absolute, Squared float64 }

// add takes the sizes of errors of some samples.
func (e *Errors) add(sizes []float32) {
	for _, v := range sizes {
		e.Absolute, e.Squared = e.Absolute+float64(v), e.Squared+float64(v)*float64(v)
	}
}

// Regressor is a Model that predicts numbers: targets, or ratings.
type Regressor interface {
	Model
	// Errors are those over the samples of the last Eval.
	Errors() Errors
}

// ErrorsOf are the errors over the samples of a model's last Eval; none if it predicts no numbers, or does not tell.
func ErrorsOf(m Model) Errors {
	if s, ok := m.(*stateful); ok {
		m = s.Model
	}
	if r, ok := m.(Regressor); ok {
		return r.Errors()
	}
	return Errors{}
}
