package station

import (
	"fluentps/comm"
	"fluentps/kernels"
)

// Announce tells a device with memory of its own of arenas that it will copy.
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
