package station

import (
	"fluentps/internal/comm"
	"fluentps/kernels"
)

// Announce pins the arenas that a device with memory of its own will copy.
func Announce(device kernels.Device, arenas ...*comm.Buf) error {
	if p, ok := device.(kernels.Pinner); ok {
		for _, b := range arenas {
			if err := p.Pin(b.F32()); err != nil {
				return err
			}
		}
	}
	return nil
}
