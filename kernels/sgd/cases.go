package sgd

import (
	"fmt"

	"fluentps/kernels/kernel"
)

func sgdCases() []kernel.Case {
	return RuleCases(func(c *kernel.Case, _ Start) {
		c.Scalars[3] = 0
		wantNext(c, func(i int, w, g float64) float64 { return w - float64(c.Scalars[0])*g })
	})
}

func momentumCases() []kernel.Case {
	return RuleCases(func(c *kernel.Case, s Start) {
		lr, state := float64(c.Scalars[0]), withState(c, s)
		wantNext(c, func(i int, w, g float64) float64 { return w - lr*state(i, g) })
	})
}

func nesterovCases() []kernel.Case {
	return RuleCases(func(c *kernel.Case, s Start) {
		lr, mu := float64(c.Scalars[0]), float64(c.Scalars[3])
		state := withState(c, s)
		wantNext(c, func(i int, w, g float64) float64 {
			return w - lr*(g+mu*state(i, g))
		})
	})
}

// withState gives the case a state as vector 3. The function that it returns computes element i of the state after a step
// with gradient g, and records it as wanted.
func withState(c *kernel.Case, s Start) func(i int, g float64) float64 {
	c.In[3], c.Want[3] = s.State, make([]float64, len(s.State))
	return func(i int, g float64) float64 {
		c.Want[3][i] = float64(c.Scalars[3])*float64(s.State[i]) + g
		return c.Want[3][i]
	}
}

// wantNext sets the wanted parameters after the step. step computes them from the parameters before and the gradient.
func wantNext(c *kernel.Case, step func(i int, w, g float64) float64) {
	k, decay := float64(c.Scalars[1]), float64(c.Scalars[2])
	c.Want[2] = make([]float64, len(c.In[0]))
	for i, x := range c.In[0] {
		w := float64(x)
		c.Want[2][i] = step(i, w, k*float64(c.In[1][i])+decay*w)
	}
}

// Start is the state before the step of a case.
type Start struct {
	First bool      // the step is the first one, and State is 0
	State []float32 // as long as the parameters
}

// RuleCases returns the cases of an update rule: first and later steps, without and with weight decay. next has memory of
// its own, or is the memory of the parameters. Cases have W, G and next, and F is lr, k, wd, mu. complete adds the rest.
func RuleCases(complete func(c *kernel.Case, s Start)) (cases []kernel.Case) {
	for _, n := range kernel.Lengths {
		for variant := range 4 {
			c := ruleCase(n, variant&1 == 0, float32(variant&1)*0.01, complete)
			if variant >= 2 {
				c.Name += " in place"
				c.Over(2, 0)
			}
			cases = append(cases, c)
		}
	}
	return cases
}

// ruleCase returns one case of an update rule, with n parameters.
func ruleCase(n int, first bool, decay float32, complete func(c *kernel.Case, s Start)) kernel.Case {
	c := kernel.Case{Name: fmt.Sprintf("n=%d first=%t decay=%g", n, first, decay), Sizes: kernel.Sizes{n}, Terms: 1}
	c.In[0], c.In[1], c.In[2] = kernel.Random(n, 30), kernel.Random(n, 31), kernel.NaNs(n)
	for i := range c.In[1] {
		c.In[1][i] *= 96
	}
	c.Scalars = kernel.Scalars{0.5, float32(1. / 96), decay, 0.9}
	s := Start{First: first, State: make([]float32, n)}
	if !first {
		s.State = kernel.Random(n, 32)
	}
	complete(&c, s)
	return c
}
