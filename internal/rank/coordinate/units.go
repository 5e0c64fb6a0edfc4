package coordinate

import (
	"fmt"
	"slices"

	"fluentps/internal/show/metrics"
	"fluentps/kernels"
)

// UnitReport is what rank 0 knows of a rank's unit. Name, ID and CUDAAware are empty for a rank that computes no gradients.
type UnitReport struct {
	Name, ID  string
	CUDAAware string // whether MPI reaches its memory; "": it is not a GPU
	KernelSet string // of the unit; for a rank that only evaluates, of the host's processor
	Weak      string // what keeps its kernels below what the hardware can do
}

// Describe sets the kernels of a device.
func (u *UnitReport) Describe(device kernels.Device) {
	if d, ok := device.(kernels.Describer); ok {
		u.KernelSet, u.Weak = d.KernelSet(), d.Weak()
	}
}

// unitWarnings warns of unusual devices of a run.
func unitWarnings(units []UnitReport, hosts []string) []string {
	warnings := kernelWarnings(units)
	gpus, cpus := 0, 0
	ranks, ids := map[string]int{}, map[string][]string{}
	var order []string
	for rank, u := range units {
		switch h := hosts[rank]; {
		case u.ID != "":
			gpus++
			if ranks[h]++; ranks[h] == 1 {
				order = append(order, h)
			}
			if !slices.Contains(ids[h], u.ID) {
				ids[h] = append(ids[h], u.ID)
			}
		case u.Name != "":
			cpus++
		}
	}
	if gpus > 0 && cpus > 0 {
		warnings = append(warnings, fmt.Sprintf("%s on GPUs and %s on CPUs: results differ in the last bits, and speeds by far",
			verbed(gpus, "computes", "compute"), verbed(cpus, "computes", "compute")))
	}
	for _, h := range order {
		if n := len(ids[h]); ranks[h] > n {
			warnings = append(warnings, fmt.Sprintf("host %s: %s on %s: they take turns, so their computing times depend on "+
				"each other; start as many workers as GPUs, or MPS",
				h, verbed(ranks[h], "computes", "compute"), metrics.Count(n, "GPU")))
		}
	}
	return warnings
}

func verbed(n int, one, many string) string {
	if n == 1 {
		return metrics.Count(n, "rank") + " " + one
	}
	return metrics.Count(n, "rank") + " " + many
}
