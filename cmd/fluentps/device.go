package main

import (
	"fmt"

	"fluentps/kernels"
	"fluentps/kernels/cpu"
)

// openDevice opens what computes on this rank, by the values of device.kind.
func openDevice(kind string, threads int) (kernels.Device, error) {
	if kind != "cpu" && kind != "auto" {
		return nil, fmt.Errorf("device %q is not built into this binary, which has cpu; use cpu or auto", kind)
	}
	return cpu.New(threads), nil
}
