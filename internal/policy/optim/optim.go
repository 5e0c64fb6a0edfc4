// Package optim holds the update rules: how a pending sum of gradients becomes the next version of a
// shard's parameters. It works on float32 vectors only; it does no I/O and reads no clock.
//
// All arithmetic except that of norms is element by element, and no product is fused into a following sum: the explicit float32
// conversions in the loops forbid it. So the bits of a result depend neither on where a shard is cut nor on the machine. That makes
// BSP bit-equal for all numbers of shards and servers.
package optim

import (
	"fmt"
	"math"
	"strings"
)

// Spec names a rule and its constants, as in the YAML. LR is per version for BSP, per N pushes for schemes that apply each push.
// It is checked here but applied through Args, WeightDecay likewise: a Rule itself knows neither the schedule nor which segment
// is spared.
type Spec struct {
	Name        string  `yaml:"name" values:"@optimizers" doc:"the update rule"`
	LR          float64 `yaml:"lr,required" above:"0" as:"float32" doc:"learning rate of one update"`
	Momentum    float64 `yaml:"momentum" min:"0" below:"1" when:"name=momentum,nesterov,lars,muon" as:"float32" doc:"share of the last step in the next; muon: share of the mean of gradients that remains in the next, 0.95 unless set"`
	Trust       float64 `yaml:"trust" above:"0" when:"name=lars" as:"float32" doc:"norm of a layer's step beside that of its parameters, at lr 1 and without momentum"`
	Beta1       float64 `yaml:"beta1" min:"0" below:"1" when:"name=adam,adamw" as:"float32" doc:"share of the mean of gradients that remains in the next"`
	Beta2       float64 `yaml:"beta2" min:"0" below:"1" when:"name=adam,adamw" as:"float32" doc:"the same of the mean of their squares"`
	Epsilon     float64 `yaml:"epsilon" min:"1e-30" max:"1e30" when:"name=adam,adamw" as:"float32" doc:"added to the root of that mean: bounds the step where gradients are tiny"`
	WeightDecay float64 `yaml:"weight_decay" min:"0" as:"float32" doc:"L2 penalty, added to the gradient; with adamw and muon the share of the parameters that a step at lr 1 takes away"`
	Nesterov    bool    `yaml:"nesterov" when:"name=muon" doc:"the step goes along the newest gradient, too; false: along the mean of gradients alone"`
	Scale       string  `yaml:"scale" values:"original,match_rms_adamw" when:"name=muon" doc:"what multiplies lr: original: the root of rows / columns, at least 1; match_rms_adamw: 0.2 times the root of the larger of the two, so that the lr of adamw fits"`
	Others      Others  `yaml:"others"`
}

// Others is how muon trains what is no matrix, and what it should not take as one: by adamw.
type Others struct {
	Match       []string `yaml:"match" form:"glob" when:"name=muon" doc:"matrices that adamw trains, such as embeddings and the last layer; it trains all other tensors anyway"`
	LR          float64  `yaml:"lr" above:"0" when:"name=muon" as:"float32" doc:"learning rate of adamw; train.schedule multiplies it, too"`
	Beta1       float64  `yaml:"beta1" min:"0" below:"1" when:"name=muon" as:"float32" doc:"as of adamw"`
	Beta2       float64  `yaml:"beta2" min:"0" below:"1" when:"name=muon" as:"float32" doc:"as of adamw"`
	Epsilon     float64  `yaml:"epsilon" min:"1e-30" max:"1e30" when:"name=muon" as:"float32" doc:"as of adamw"`
	WeightDecay float64  `yaml:"weight_decay" min:"0" as:"float32" when:"name=muon" doc:"share of these parameters that a step at lr 1 takes away"`
}

// Defaults is a rule of which only the learning rate is missing.
func Defaults() Spec {
	return Spec{Name: "sgd", Momentum: 0.9, Trust: 0.001, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, Nesterov: true, Scale: Original,
		Others: Others{LR: 0.001, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}}
}

// Args are the scalars of one update. The gradient used is GradScale*grad + Decay*src; of adamw and muon it is GradScale*grad.
type Args struct {
	LR        float32 // already scheduled and weighted
	GradScale float32 // 1/samples: grad holds a sum over samples
	Decay     float32 // weight decay of this segment; 0 for a segment without weight decay
	Step      int64   // the number of this step of the shard, from 1; adam's bias correction depends on it
	Stream    bool    // dst is not src, and is so large that writing around the caches is faster; changes no bit
	Inner     float32 // learning rate of the workers' own steps; 0 where the rule does not ask for it
}

// Rule is one update rule. It holds constants only, so one Rule serves any number of shards at once.
type Rule interface {
	// State is the number of float32 vectors of the shard's length that the rule keeps in addition to the parameters. They start
	// as zeros and are updated in place.
	State() int
	// Step writes the next parameters to dst in one pass. dst, src, grad and the State() vectors of state have the same length;
	// otherwise it panics. dst may be src, but no other vectors may overlap. It returns the largest magnitude that it wrote to dst,
	// as bits without the sign.
	Step(dst, src, grad []float32, state [][]float32, a Args) uint32
}

var names = []string{"sgd", "momentum", "nesterov", "adam", "adamw", "lars", "muon"}

// Names lists the rules that New knows.
func Names() []string { return append([]string(nil), names...) }

// StateNames names the vectors that the rule of that name keeps, in the order of its state.
func StateNames(rule string) []string {
	switch rule {
	case "sgd":
		return nil
	case "adam", "adamw", "muon":
		return []string{"first_moment", "second_moment"} // of muon those of what is no matrix
	case "delayed_nesterov":
		return []string{"velocity", "accumulated"}
	}
	return []string{"velocity"}
}

// Check reports the first constant that is out of its range, or a name that is not known.
func (s Spec) Check() error {
	known := false
	for _, n := range names {
		known = known || n == s.Name
	}
	switch {
	case !known:
		return fmt.Errorf("optimizer name %q is not known; use one of %s", s.Name, strings.Join(names, ", "))
	case !(s.LR > 0) || math.IsInf(s.LR, 0):
		return fmt.Errorf("optimizer lr %v is out of range; use a number greater than 0, such as 0.05", s.LR)
	case !(s.Momentum >= 0 && s.Momentum < 1):
		return fmt.Errorf("optimizer momentum %v is out of range; use at least 0 and less than 1, such as 0.9", s.Momentum)
	case !(s.WeightDecay >= 0) || math.IsInf(s.WeightDecay, 0):
		return fmt.Errorf("optimizer weight_decay %v is out of range; use 0 or more, such as 0.0005", s.WeightDecay)
	}
	switch {
	case s.Name == "adam", s.Name == "adamw":
		return s.checkAdam()
	case s.Name == "muon":
		return s.checkMuon()
	case s.Name == "lars" && (!(s.Trust > 0) || math.IsInf(s.Trust, 0)):
		return fmt.Errorf("optimizer trust %v is out of range; use a number greater than 0, such as 0.001", s.Trust)
	}
	return nil
}

func (s Spec) checkMuon() error {
	o := s.Others
	switch {
	case s.Scale != Original && s.Scale != MatchRMS:
		return fmt.Errorf("optimizer scale %q is not known; use %s or %s", s.Scale, Original, MatchRMS)
	case !(o.LR > 0) || math.IsInf(o.LR, 0):
		return fmt.Errorf("optimizer others.lr %v is out of range; use a number greater than 0, such as 0.001", o.LR)
	case !(o.WeightDecay >= 0) || math.IsInf(o.WeightDecay, 0):
		return fmt.Errorf("optimizer others.weight_decay %v is out of range; use 0 or more, such as 0.01", o.WeightDecay)
	}
	return Spec{Beta1: o.Beta1, Beta2: o.Beta2, Epsilon: o.Epsilon}.checkAdam()
}

func (s Spec) checkAdam() error {
	switch {
	case !(s.Beta1 >= 0 && s.Beta1 < 1):
		return fmt.Errorf("optimizer beta1 %v is out of range; use at least 0 and less than 1, such as 0.9", s.Beta1)
	case !(s.Beta2 >= 0 && s.Beta2 < 1):
		return fmt.Errorf("optimizer beta2 %v is out of range; use at least 0 and less than 1, such as 0.999", s.Beta2)
	case !(s.Epsilon >= EpsilonMin) || math.IsInf(s.Epsilon, 0):
		return fmt.Errorf("optimizer epsilon %v is out of range; use at least %v, such as 1e-8", s.Epsilon, EpsilonMin)
	}
	return nil
}

// EpsilonMin is the smallest epsilon. A smaller one may be 0 as a float32, and an element whose gradient is 0 would become NaN.
const EpsilonMin = 1e-30

// New makes the rule that s names. It fails if Check does.
//
// With g the gradient of Args, m the state and mu the momentum:
//
//	sgd       w' = w - lr*g
//	momentum  m' = mu*m + g,  w' = w - lr*m'
//	nesterov  m' = mu*m + g,  w' = w - lr*(g + mu*m')
//	adam      m' = b1*m + (1-b1)*g,  v' = b2*v + (1-b2)*g*g,
//	          w' = w - lr * m'/(1-b1^t) / (sqrt(v'/(1-b2^t)) + epsilon)
//	adamw     as adam of the gradient without decay, from w - lr*wd*w
//	lars      r = trust*|w| / (|g-wd*w| + |wd*w|),  m' = mu*m + r*g,  w' = w - lr*m'
//	muon      m' = m + (1-mu)*(g-m),  u = m' + (1-mu)*(g-m'),  w' = w - lr*wd*w - lr*scale*O(u)
//
// sgd, momentum and nesterov have the form of PyTorch's torch.optim.SGD (documentation, "SGD", dampening 0): the
// learning rate stands outside the momentum, unlike Polyak (1964) and Sutskever et al. (ICML 2013), so that a drop
// of the rate takes effect at once. adam is Algorithm 1 of Kingma and Ba (ICLR 2015), with b1^t for beta1 to the
// power of t; t is Args.Step, the shard's own count of commits, which the clock of the schedule does not affect. adamw is
// Algorithm 2 of Loshchilov and Hutter (ICLR 2019) as PyTorch has it: lr times weight_decay of a parameter goes, the schedule
// included. lars is Algorithm 1 of You, Gitman and Ginsburg (arXiv 1708.03888, 2017), but with lr outside the momentum, too. Its norms
// are those of a shard. The Store computes them and scales g by r, so the Step of lars is that of momentum. muon is that of Jordan et
// al. (2024) for whole matrices, which the Store makes orthogonal (O, internal/policy/orthogonal); its Step, of other tensors, is adamw's.
func New(s Spec) (Rule, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	switch s.Name {
	case "sgd":
		return sgd{}, nil
	case "momentum":
		return momentum{mu: float32(s.Momentum)}, nil
	case "nesterov":
		return nesterov{mu: float32(s.Momentum)}, nil
	case "lars":
		return lars{momentum{mu: float32(s.Momentum)}, s.Trust}, nil
	case "adam":
		return adam{s.Beta1, s.Beta2, s.Epsilon}, nil
	case "adamw":
		return adamw{adam{s.Beta1, s.Beta2, s.Epsilon}}, nil
	case "muon":
		o := s.Others
		return muon{float32(1 - s.Momentum), s.Nesterov, s.Scale == MatchRMS, adamw{adam{o.Beta1, o.Beta2, o.Epsilon}}}, nil
	}
	panic("optim: a name in the table has no rule: " + s.Name)
}

// mustFit panics unless all vectors have the length of dst.
func mustFit(dst, src, grad []float32, state [][]float32, states int) {
	if len(src) != len(dst) || len(grad) != len(dst) || len(state) != states {
		panic(fmt.Sprintf("optim: dst %d, src %d, grad %d elements, %d state vectors; want equal lengths and %d",
			len(dst), len(src), len(grad), len(state), states))
	}
	for i, m := range state {
		if len(m) != len(dst) {
			panic(fmt.Sprintf("optim: state vector %d has %d elements, want %d", i, len(m), len(dst)))
		}
	}
}
