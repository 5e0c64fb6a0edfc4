package kernels

import "fmt"

// Check says whether a launch of k with a stays inside its vectors. Devices call it before they
// hand pointers to code that cannot check. Sizes must not be negative.
func (k *Kernel) Check(a Args) error {
	for i, n := range a.N {
		if n < 0 {
			return fmt.Errorf("kernels: %s: size %d is %d, must not be negative", k.Name, i, n)
		}
	}
	for i, need := range k.Need(a.N) {
		have := a.V[i].Len()
		if have >= need || (k.Optional[i] && have == 0) {
			continue
		}
		return fmt.Errorf("kernels: %s: vector %d has %d elements, sizes %v need %d", k.Name, i, have, a.N, need)
	}
	return nil
}
