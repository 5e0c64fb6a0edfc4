package metrics

import "fmt"

// ConstantFactor is how many times the loss of a constant prediction the loss at the end of a run may be. A run that learns ends below 1;
// one that fits its training data too closely ends at a few times it.
const ConstantFactor = 10

// BesideConstant says that the loss at the end is more than ConstantFactor times that of a constant prediction; "" if
// it is not, or is not known.
func (s *Summary) BesideConstant() string {
	loss, of := s.TestLoss, "test"
	if loss == nil {
		loss, of = s.TrainLoss, "train"
	}
	if loss == nil || s.ConstantLoss == nil || *s.ConstantLoss <= 0 || float64(*loss) <= ConstantFactor*float64(*s.ConstantLoss) {
		return ""
	}
	text := fmt.Sprintf("the %s loss at the end, %.4g, is more than %d times that of a constant prediction, %.4g: the "+
		"run has diverged or has learnt nothing",
		of, float64(*loss), ConstantFactor, float64(*s.ConstantLoss))
	if s.WorseHint != "" {
		text += "; " + s.WorseHint
	}
	return text
}
